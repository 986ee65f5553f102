"""Small fleets of work that stays and work that may go, in which somebody has waited long."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from scheduler.core.snapshot import HoldingView, PendingView, Snapshot
from tests.core.build import AT, Quota, cohort, job, node, pods, queue, runs, snapshot

GUARD_S = 600
HOURS_S = 36_000
LIMITS = (None, 300, 600, 900, HOURS_S)


def head(*, gpus: int, priority: int = 2) -> PendingView:
    """Of a project with quota enough, and it has waited long."""
    return job("head", "a", pods(gpus=gpus), submitted_at=AT - GUARD_S, priority=priority)


def stays(name: str, *devices: str, limit_s: int | None = HOURS_S) -> HoldingView:
    """Not to be evicted."""
    return replace(runs(name, "z", *devices, limit_s=limit_s), preemptible=False)


def held(
    pick: Random,
    devices: Sequence[str],
    projects: str,
    *,
    limits: Sequence[int | None],
    staying: float,
) -> list[HoldingView]:
    """One by each workload; such a part of them stays."""
    return [
        stays(f"r{nth}", device, limit_s=pick.choice(limits))
        if pick.random() < staying
        else runs(
            f"r{nth}",
            pick.choice(projects),
            device,
            limit_s=pick.choice(limits),
            priority=pick.randrange(3),
            since_s=pick.choice((10, 300)),
        )
        for nth, device in enumerate(devices)
    ]


def crowded(seed: int) -> tuple[Snapshot, int]:
    """A node or two, full of work that stays and work that may go; one job has waited long, and
    others come after and before it, with and without limits. And for how many room is kept."""
    pick = Random(seed)
    sizes = [pick.choice((2, 4)) for _ in range(pick.choice((1, 1, 2)))]
    total, free = sum(sizes), [f"n{n}/{d}" for n, size in enumerate(sizes) for d in range(size)]
    pick.shuffle(free)
    limits = None, 900, HOURS_S
    holding = held(pick, free[: pick.randrange(total)], "ab", limits=limits, staying=0.5)
    others = [
        job(
            f"w{nth}",
            pick.choice("ab"),
            pods(gpus=pick.choice((1, 1, 2))),
            submitted_at=AT - pick.randrange(1, 900),
            priority=pick.randrange(3),
            limit_s=pick.choice((None, 300, 600)),
        )
        for nth in range(pick.randrange(2, 7))
    ]
    of = snapshot(
        nodes=[node(f"n{n}", gpus=size) for n, size in enumerate(sizes)],
        queues=[
            queue("a", h100=Quota(2 * total, 0)),
            queue("b", h100=Quota(pick.randrange(total + 1), pick.choice((None, 0)))),
            queue("z", h100=2 * total),
        ],
        pending=[head(gpus=max(sizes), priority=pick.randrange(1, 4)), *others],
        holding=holding,
    )
    return of, pick.choice((1, 1, 3))


def crowded_tree(seed: int) -> tuple[Snapshot, int]:
    """As `crowded`, of projects of tenants that lend and borrow."""
    pick = Random(seed)
    sizes = [pick.choice((2, 4)) for _ in range(pick.choice((1, 1, 2, 3)))]
    total, free = sum(sizes), [f"n{n}/{d}" for n, size in enumerate(sizes) for d in range(size)]
    pick.shuffle(free)
    holding = held(pick, free[: pick.randrange(total)], "abcd", limits=LIMITS, staying=0.2)
    pending = [
        job(
            f"w{nth}",
            pick.choice("abcd"),
            pods(pick.choice((1, 1, 1, 2)), gpus=pick.choice((1, 1, 2, max(sizes)))),
            submitted_at=AT - pick.randrange(1, 900),
            priority=pick.randrange(3),
            limit_s=pick.choice((None, None, 300, 600)),
        )
        for nth in range(pick.randrange(3, 9))
    ]

    def quota() -> Quota:
        nominal = pick.randrange(total // 2 + 1)
        return Quota(nominal, pick.choice((None, None, 0, 1)), pick.choice((None, None, 0, 1)))

    tenants = {project: pick.choice(("", "t", "t", "u")) for project in "abcd"}
    of = snapshot(
        nodes=[node(f"n{n}", gpus=size) for n, size in enumerate(sizes)],
        cohorts=[
            cohort("t", h100=quota()),
            cohort("u", parent=pick.choice(("", "t")), h100=quota()),
        ],
        queues=[
            *(queue(project, tenant=of, h100=quota()) for project, of in tenants.items()),
            queue("z", h100=2 * total),
        ],
        pending=pending,
        holding=holding,
    )
    return of, pick.choice((1, 1, 3))
