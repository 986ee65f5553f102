"""What a benchmark's steps beside a running Berth have in common: waiting, counting, costs."""

import os
import time
from collections.abc import Callable, Mapping
from typing import Any

from controlplane.trace import usage

LOOK_S = 0.2
_WORKERS = 3  # schedule, dispatch, periodic

type Report = dict[str, tuple[float, str]]
"""(value, unit) by name, without what all names begin with."""


def until(done: Callable[[], bool], otherwise: str, *, within_s: float) -> None:
    """Look until it is so. Raises SystemExit, with `otherwise`, when it is not in time."""
    deadline = time.monotonic() + within_s
    while not done():
        if time.monotonic() > deadline:
            raise SystemExit(f"{otherwise} within {within_s:.0f} s")
        time.sleep(LOOK_S)


def ready(nodes: int) -> bool:
    """So many nodes are known, and each worker has compiled what it needs."""
    from controlplane.celery import app  # needs the settings

    known = len(rows("SELECT 1 FROM clusters_node WHERE ready")) == nodes
    return known and len(app.control.ping(timeout=1.0) or ()) == _WORKERS


def usages(services: Mapping[str, tuple[str, ...]]) -> dict[str, usage.Usage]:
    """What each service of the installation has cost so far."""
    return usage.measure(usage.families(os.getppid(), services))


def cpu(
    before: Mapping[str, usage.Usage],
    after: Mapping[str, usage.Usage],
    *,
    simulator: str,
    workloads: int,
) -> Report:
    """Milliseconds of processor time a workload, `simulator` apart from Berth's own."""
    spent = {
        "simulator" if name == simulator else name: (used.cpu_s - before[name].cpu_s) / workloads
        for name, used in after.items()
    }
    ours = sum(value for name, value in spent.items() if name != "simulator")
    return {"cpu_ms": (ours * 1000, "ms")} | {
        f"cpu_ms_{name}": (value * 1000, "ms") for name, value in spent.items()
    }


def rows(sql: str) -> list[tuple[Any, ...]]:
    """Any: columns of many types."""
    from scheduler.selectors import fleet  # needs the apps

    return fleet.rows(sql)
