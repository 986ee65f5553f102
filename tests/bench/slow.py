"""Submit to running in one cluster while another one answers late, or nothing any more.

Run by itself it is the steps that `manage.py smoke` runs beside a fresh installation with two
simulated clusters. The other one's process is stopped (SIGSTOP): it takes connections, and never
answers; or it is stopped over and over, and answers so late that no time-out finds it. Work for it
is submitted at once, so that there is something to ask it for.
"""

import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from controlplane.trace.usage import processes
from tests.bench.latency import WARM_UP, Api, beside_berth, body, once, ready, tell
from tests.bench.report import Figures, percentile

SUBMISSIONS = 60
STUCK = 12
GOOD, SLOW = "north", "south"
LATE_S, AWAKE_S = 2.0, 0.02
"""For how long it is stopped at a time, less than an answer may take (tasks.READ_S), and runs."""


def take(figures: Figures) -> None:
    """Start Berth apart, submit, and add the figures."""
    found: dict[str, list[float]] = beside_berth("tests.bench.slow")
    for percent in (50, 90):
        for when, seconds in found.items():
            name = f"submit_to_running_{when}_p{percent}_ms"
            figures.add(name, percentile(seconds, percent) * 1000, "ms")


def main(url: str, tokens_file: str) -> int:
    tokens: dict[str, str] = json.loads(Path(tokens_file).read_text())
    api = Api(url, tokens["cleo"])
    project = ready(api)

    def some(when: str, count: int) -> list[float]:
        names = [f"{when}-{index}" for index in range(count)]
        return [once(api, body(project, name, clusters=[GOOD])) for name in names]

    some("warm-up", WARM_UP)

    def beside(how: str, other: AbstractContextManager[None]) -> list[float]:
        with other:
            for index in range(STUCK):
                name = f"stuck-{how}-{index}"
                api.ask("POST", "workloads", body(project, name, clusters=[SLOW]))
            return some(how, SUBMISSIONS)

    other = _process()
    found = {
        "of_two": some("both", SUBMISSIONS),
        "beside_a_late_one": beside("late", _late(other)),
        "beside_a_hung_one": beside("hung", _hung(other)),
    }
    tell(found)
    return 0


@contextmanager
def _hung(process: int) -> Iterator[None]:
    os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process, signal.SIGCONT)


@contextmanager
def _late(process: int) -> Iterator[None]:
    over = threading.Event()

    def naps() -> None:
        while not over.is_set():
            with _hung(process):
                over.wait(LATE_S)
            over.wait(AWAKE_S)

    napping = threading.Thread(target=naps)
    napping.start()
    try:
        yield
    finally:
        over.set()
        napping.join()


def _process() -> int:
    """That of the slow cluster, a child of the installation as these steps are."""
    [pid] = [
        process.pid
        for process in processes().values()
        if process.parent == os.getppid() and SLOW in process.words
    ]
    return pid


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
