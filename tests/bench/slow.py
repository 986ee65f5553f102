"""Submit to running in one cluster while another one answers nothing any more.

Run by itself it is the steps that `manage.py smoke` runs beside a fresh installation with two
simulated clusters. The other one's process is stopped (SIGSTOP): it takes connections, and never
answers. Work for it is submitted at once, so that there is something to ask it for.
"""

import json
import os
import signal
import sys
from pathlib import Path

from controlplane.trace.usage import processes
from tests.bench.latency import WARM_UP, Api, beside_berth, body, once, ready, tell
from tests.bench.report import Figures, percentile

SUBMISSIONS = 60
STUCK = 12
GOOD, SLOW = "north", "south"


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
    both = some("both", SUBMISSIONS)
    stopped = _process()
    os.kill(stopped, signal.SIGSTOP)
    try:
        for index in range(STUCK):
            api.ask("POST", "workloads", body(project, f"stuck-{index}", clusters=[SLOW]))
        beside = some("beside", SUBMISSIONS)
    finally:
        os.kill(stopped, signal.SIGCONT)
    tell({"of_two": both, "beside_a_hung_one": beside})
    return 0


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
