"""Random fleets that are too small for what a tree of tenants is guaranteed and asks for."""

from dataclasses import replace
from random import Random

from hypothesis import strategies as st

from scheduler.core.snapshot import HoldingView, PendingView, Snapshot
from tests.core.build import Quota, cohort_of, cpu_pods, job, node, pods, queue_of, runs, snapshot

PARENTS = {"a": "vision", "b": "vision", "c": "lab", "d": "", "e": "institute"}
"""Of projects; vision is a department of lab, and deeper than institute."""
NODES, GPUS = 3, 4


def trees() -> st.SearchStrategy[Snapshot]:
    return st.builds(contested, st.integers(0, 2**32))


def contested(seed: int) -> Snapshot:
    """All that holds is of one device each, and whoever holds it."""
    pick = Random(seed)
    cohorts = [
        cohort_of("lab", _quotas(pick)),
        cohort_of("vision", _quotas(pick), parent=pick.choice(["lab", "lab", ""])),
        cohort_of("institute", _quotas(pick)),
    ]
    queues = [
        replace(
            queue_of(project, _quotas(pick, own=True), tenant=tenant),
            min_run_time_s=pick.choice([0, 0, 0, 300]),
        )
        for project, tenant in PARENTS.items()
    ]
    where = [f"n{n}/{device}" for n in range(NODES) for device in range(GPUS)]
    full = pick.random() < 0.7
    holding = [_held(pick, f"was-{at}", at) for at in where if full or pick.random() < 0.5]
    return snapshot(
        nodes=[node(f"n{n}", GPUS, cores=8) for n in range(NODES)],
        cohorts=cohorts,
        queues=queues,
        pending=[_asks(pick, f"w{i}") for i in range(pick.randint(1, 8))],
        holding=holding,
    )


def _quotas(pick: Random, *, own: bool = False) -> dict[str, Quota]:
    """A project has always a row, a tenant often."""
    limits = [None, None, None, None, 0, 1]
    return {
        flavor: Quota(
            pick.choice([0, 0, 1, 2, 3] if flavor == "h100" else [0, 4, 8]),
            pick.choice(limits),
            pick.choice(limits),
        )
        for flavor in ("h100", "cpu")
        if own or pick.random() < 0.7
    }


def _held(pick: Random, name: str, at: str) -> HoldingView:
    project = pick.choice(list(PARENTS))
    made = runs(
        name.replace("/", "-"), project, at,
        priority=pick.randrange(3), since_s=pick.randrange(900),
        preemptible=pick.random() < 0.9, releasing=pick.random() < 0.1,
    )  # fmt: skip
    return replace(made, pod_sets=(pods(),))


def _asks(pick: Random, name: str) -> PendingView:
    asked = [pods(pick.choice([1, 1, 2, 3]), gpus=pick.choice([1, 1, 2]), least=1)]
    if pick.random() < 0.5:
        asked = [replace(asked[0], min_count=asked[0].count)]
    if pick.random() < 0.2:
        asked.append(cpu_pods(cores=pick.choice([1, 3]), name="cores"))
    made = job(
        name, pick.choice(list(PARENTS)), *asked,
        priority=pick.randrange(3), submitted_at=pick.randrange(4),
    )  # fmt: skip
    return replace(made, preemptible=pick.random() < 0.8)
