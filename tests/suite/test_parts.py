"""The suite's own plugin: which part a test counts for, what a run prints, CI's strictness.

What must not live here: tests of Berth itself.
"""

import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
import redis

from controlplane.embedded.backing import broker_url, with_database
from tests import parts


@pytest.mark.parametrize(
    ("nodeid", "keywords", "part"),
    [
        ("tests/core/test_fit.py::test_it_fits", (), parts.CORE),
        ("tests/scheduler/test_apply.py::test_it_applies", (), parts.DATABASE),
        ("tests/api/test_workloads.py::test_it_lists", (), parts.WEB),
        ("tests/contract/test_port.py::test_it_binds[simulator]", (), parts.SIMULATOR),
        ("tests/contract/test_port.py::test_it_binds[kube]", (), parts.KUBERNETES),
        ("tests/contract/test_port.py::test_it_binds[gang-kube]", (), parts.KUBERNETES),
        ("tests/contract/test_port.py::test_it_binds", ("kube",), parts.KUBERNETES),
        ("tests/flows/test_flow.py::test_it_flows", ("part_browser",), parts.BROWSER),
        ("tests/flows/test_flow.py::test_it_flows", (), parts.OTHER),
    ],
)
def test_a_test_counts_for_its_marker_then_its_parameters_then_its_folder(
    nodeid: str, keywords: tuple[str, ...], part: str
) -> None:
    assert parts.part_of(nodeid, keywords) == part


def run(folder: Path, *options: str, ci: bool = False) -> subprocess.CompletedProcess[str]:
    """A small suite of its own in `folder`, on the servers of this run."""
    (folder / "tests/core").mkdir(parents=True, exist_ok=True)
    (folder / "tests/browser").mkdir(exist_ok=True)
    (folder / "tests/core/test_sum.py").write_text("def test_it_adds():\n    assert 1 + 1 == 2\n")
    (folder / "tests/browser/test_page.py").write_text(
        "from tests.parts import BROWSER, missing\n"
        "def test_it_opens():\n    missing(BROWSER, 'Chromium (Debian: apt install chromium)')\n"
    )
    (folder / "tests/browser/test_module.py").write_text(
        "from tests.parts import BROWSER, missing\nmissing(BROWSER, 'a screen')\n"
    )
    outer = {"CI", "PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER"}  # of this run, not of that one
    environ = {name: value for name, value in os.environ.items() if name not in outer}
    if ci:
        environ["CI"] = "true"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.plugin", "-p", "no:django"]
    return subprocess.run(
        [*command, "-p", "no:cacheprovider", *options],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("options", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_what_could_not_run_is_said_in_one_line_each_before_the_last(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    ran = run(tmp_path, *options)
    lines = ran.stdout.splitlines()
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "core 1, " in ran.stdout
    assert "browser 0 (1 not run)" in ran.stdout
    assert lines[-3:-1] == [
        "not run: browser: needs Chromium (Debian: apt install chromium)",
        "not run: browser: needs a screen",
    ]
    assert lines[-1].startswith("1 passed, 2 skipped in ")


def test_in_ci_a_part_that_can_not_run_fails(tmp_path: Path) -> None:
    ran = run(tmp_path, ci=True)
    assert ran.returncode != 0
    assert "every part has to run" in ran.stdout
    assert "not run:" not in ran.stdout


def test_in_ci_any_skip_fails(tmp_path: Path) -> None:
    (tmp_path / "test_lazy.py").write_text(
        "import pytest\ndef test_it():\n    pytest.skip('later')\n"
    )
    ran = run(tmp_path, "test_lazy.py", ci=True)
    assert ran.returncode == 1
    assert "skipped with CI=true" in ran.stdout


def test_the_servers_of_this_run_answer_and_redis_is_this_worker_s_own() -> None:
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        assert connection.execute("SHOW listen_addresses").fetchone() == ("",)
    client = redis.Redis.from_url(os.environ["REDIS_URL"])
    assert client.ping()
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    number = int(worker.removeprefix("gw")) + 1 if worker else 0
    assert client.connection_pool.connection_kwargs["db"] == number
    assert os.environ["CELERY_BROKER_URL"] == broker_url(os.environ["REDIS_URL"])


@pytest.mark.parametrize(
    ("url", "numbered", "broker"),
    [
        (
            "unix:///t/v.sock?db=0",
            "unix:///t/v.sock?db=3",
            "redis+socket:///t/v.sock?virtual_host=3",
        ),
        ("redis://h:6379/0", "redis://h:6379/3", "redis://h:6379/3"),
        ("redis://h:6379", "redis://h:6379/3", "redis://h:6379/3"),
    ],
)
def test_a_numbered_database_is_spelled_as_redis_and_as_celery_want_it(
    url: str, numbered: str, broker: str
) -> None:
    assert with_database(url, 3) == numbered
    assert broker_url(numbered) == broker
