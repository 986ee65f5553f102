"""`make bench-recovery`: how soon work goes on after a kill -9, by who was killed, as a table and
as tests/bench/results/recovery.json.

    python -m tests.bench.recovery [--runs N] [--json FILE]

With the settings of production. The scheduler dies in the middle of storing a plan, holding the
lease; the dispatcher with pods created and claims held; the watcher while pods start. Others are
then asked as often as the beat asks them, and a watcher is started at once, as a supervisor does;
the clock goes from the kill until all that waited is admitted, has its gates open, or runs.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.bench.report import RESULTS, ROOT, Figures, percentile
from tests.bench.servers import servers

GOAL_S = 20.0
LOAD = 10
WITHIN_S = 120.0


def take(figures: Figures, runs: int) -> None:
    from django.conf import settings
    from django.core.management import call_command
    from django.db import connection

    from tests.crash.children import Children
    from tests.flows.world import build
    from tests.simulation import simulation

    call_command("migrate", verbosity=0, interactive=False)
    database = str(connection.settings_dict["NAME"])
    children = Children.start(database=database, hold_s=settings.BERTH_CLAIM_S)
    with simulation(layout="demo-north", bookmark_s=1.0) as simulator:
        world = build(simulator)
        simulator.store_credential(world.cluster)
        world.quota(world.vision, "h100", LOAD)
        for name, recover in (
            ("scheduler", scheduler),
            ("dispatcher", dispatcher),
            ("watcher", watcher),
        ):
            seconds = [recover(world, children) for _ in range(runs)]
            print(name, *(f"{each:.1f}" for each in seconds), "s", flush=True)
            figures.add(f"recovery_{name}_p50_s", percentile(seconds, 50), "s")
            figures.add(f"recovery_{name}_max_s", max(seconds), "s", at_most=GOAL_S)
    figures.add("recovery_runs", runs, "kills of each")
    children.stop()


# Any: of a module that can only be imported once Django is set up.


def scheduler(world: Any, children: Any) -> float:
    _submit(world)
    children.run("cycle", crash="B3")
    took = _until("ADMITTED", asking=lambda: children.run("cycle"), every_s=_beat("cycle"))
    _over(world)
    return took


def dispatcher(world: Any, children: Any) -> float:
    _submit(world)
    world.cycle()
    children.run("dispatch", crash="D3")
    took = _until("BOUND", asking=lambda: children.run("dispatch"), every_s=_beat("dispatch"))
    _over(world)
    return took


def watcher(world: Any, _: Any) -> float:
    from clusters.models import Cluster

    def follow() -> "subprocess.Popen[bytes]":
        Cluster.objects.update(last_error="not heard yet")
        return subprocess.Popen([sys.executable, "manage.py", "watch_clusters"], cwd=ROOT)

    unheard = Cluster.objects.exclude(last_error="")
    first = follow()
    _wait("it is heard", lambda: not unheard.exists())
    _submit(world)
    world.cycle()
    os.kill(first.pid, signal.SIGKILL)
    killed = time.monotonic()
    first.wait()
    second = follow()
    try:
        world.dispatch()
        _until("RUNNING", asking=lambda: None, every_s=0.1)
        return time.monotonic() - killed
    finally:
        second.terminate()
        second.wait()
        _over(world)


def _beat(name: str) -> float:
    """How often that is asked for without any hint."""
    from controlplane.celery import app

    return float(app.conf.beat_schedule[name]["schedule"])


def _submit(world: Any) -> None:
    from tests.flows.world import spec

    world.submit(*[spec("h100", name=f"w{nth}", command=("sleep", "600")) for nth in range(LOAD)])


def _until(state: str, *, asking: Callable[[], None], every_s: float) -> float:
    """Seconds until all of the load is in that state."""
    from scheduler.models import Workload

    began = time.monotonic()
    reached = Workload.objects.filter(state=state)
    while reached.count() < LOAD:
        if time.monotonic() - began > WITHIN_S:
            raise SystemExit(f"not all is {state} after {WITHIN_S:.0f} s")
        time.sleep(every_s)
        asking()
    return time.monotonic() - began


def _wait(what: str, reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not reached():
        if time.monotonic() > deadline:
            raise SystemExit(f"not within {WITHIN_S:.0f} s: {what}")
        time.sleep(0.05)


def _over(world: Any) -> None:
    """All of it is cancelled and gone."""
    from controlplane.kernel.clock import now
    from scheduler.core.lifecycle import TERMINAL
    from scheduler.models import Workload
    from scheduler.services import workloads

    live = Workload.objects.exclude(state__in=sorted(TERMINAL))
    for workload in list(live.all()):
        workloads.cancel(actor=world.ada, workload=workload, at=now())
    world.until(lambda: not live.exists())


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.recovery", description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="kills of each")
    parser.add_argument("--json", type=Path, default=RESULTS / "recovery.json")
    options = parser.parse_args()
    figures = Figures()
    with servers("recovery"):
        take(figures, options.runs)
    print(figures.table())
    figures.write(options.json)
    if figures.missed:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
