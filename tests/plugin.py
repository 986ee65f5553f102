"""Starts PostgreSQL and Valkey for the suite, once, and counts what ran by part.

Loaded by `-p tests.plugin`, so that the URLs are set before pytest-django reads the settings.
What must not live here: fixtures (conftest.py) and anything that imports Django.
"""

import atexit
import os
import shutil
from collections import Counter
from typing import Any

import pytest

from controlplane.embedded.backing import Backing, broker_url, with_database
from controlplane.embedded.place import temporary
from controlplane.embedded.postgres import THROWAWAY
from controlplane.embedded.process import StartFailed, server_account
from tests import parts
from tests.groups import Grouped

# Set by the process that started the servers and inherited by xdist's workers.
_STARTED = "BERTH_TEST_SERVICES"


def _start() -> None:
    folder, lock = temporary("test", server_account())
    backing = Backing(data=folder / "postgres", run=folder, logs=folder, settings=THROWAWAY)

    def finish() -> None:
        backing.stop()
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)

    # A run that is killed leaves this to the kernel (the servers) and the next run (the folder).
    atexit.register(finish)
    try:
        backing.start()
    except StartFailed as error:
        raise SystemExit(error.message) from error
    os.environ.update(backing.environ)
    os.environ[_STARTED] = str(folder)


def _separate_redis() -> None:
    """Give each xdist worker a Redis database of its own: gw0 has number 1, and so on."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    if worker.startswith("gw"):
        url = with_database(os.environ["REDIS_URL"], int(worker.removeprefix("gw")) + 1)
        os.environ["REDIS_URL"] = url
        os.environ["CELERY_BROKER_URL"] = broker_url(url)


os.environ["DJANGO_SETTINGS_MODULE"] = "controlplane.settings.test"
if _STARTED not in os.environ:
    _start()
_separate_redis()


class Counts:
    """What ran, by part; kept by the process that prints the summary."""

    def __init__(self) -> None:
        self.by_part: dict[str, Counter[str]] = {part: Counter() for part in parts.PARTS}

    def add(self, report: pytest.TestReport) -> None:
        outcome = "passed" if hasattr(report, "wasxfail") else report.outcome
        if report.when == "call" or outcome != "passed":
            self.by_part[parts.part_of(report.nodeid, report.keywords)][outcome] += 1

    def line(self) -> str:
        """All parts, also those of which nothing ran."""
        return ", ".join(f"{part} {_tally(count)}" for part, count in self.by_part.items())


def _tally(count: Counter[str]) -> str:
    notes = [
        f"{count[outcome]} {word}"
        for outcome, word in (("failed", "failed"), ("skipped", "not run"))
        if count[outcome]
    ]
    return f"{count['passed']}{f' ({", ".join(notes)})' if notes else ''}"


_counts = Counts()


def pytest_configure(config: pytest.Config) -> None:
    for marker, part in parts.MARKERS.items():
        config.addinivalue_line("markers", f"{marker}: the test counts for the part {part}.")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _counts.add(report)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Any:  # Any: pluggy's wrapper protocol
    return _strict((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Any:  # Any: pluggy's wrapper protocol
    return _strict((yield))


def _strict[Report: (pytest.TestReport, pytest.CollectReport)](report: Report) -> Report:
    """In CI a skip, however it was asked for, is a failure."""
    if parts.in_ci() and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped with CI=true: {report.longrepr}"
    return report


@pytest.hookimpl(optionalhook=True, tryfirst=True)  # before xdist's own, which counts cores
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: many tests wait for servers as long as they compute."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Grouped:  # Any: xdist's own
    return Grouped(config, log)


def pytest_sessionfinish(session: pytest.Session) -> None:
    output = getattr(session.config, "workeroutput", None)  # only in an xdist worker
    if output is not None:
        output["not_run"] = sorted(parts.not_run)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:  # Any: xdist has no types
    for part, need in getattr(node, "workeroutput", {}).get("not_run", ()):
        parts.not_run.add((part, need))


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    if config.option.collectonly:
        return
    terminalreporter.ensure_newline()
    terminalreporter.write_line(f"ran: {_counts.line()}")
    for part, need in sorted(parts.not_run):
        terminalreporter.write_line(f"not run: {part}: needs {need}", yellow=True)
