"""Who goes ahead on room that is kept does so in the order of a plan."""

from dataclasses import replace

from scheduler.core.cycle import plan
from scheduler.core.plan import Plan
from scheduler.core.policy import Policy
from scheduler.core.snapshot import HoldingView, PendingView, QueueView, Snapshot
from tests.core.build import AT, Quota, job, node, pods, queue, runs, snapshot

GUARD_S, HOUR_S = 600, 3600
BORROWS = Quota(0, None)


def fleet(queues: list[QueueView], *pending: PendingView, holding: list[HoldingView]) -> Snapshot:
    """One node of four, of which some one holds a device for an hour and will not go. All of it is
    kept for one who has waited long; who comes after wants less, and ends before."""
    stays = replace(runs("stays", "z", "n1/0", limit_s=HOUR_S), preemptible=False)
    head = job("head", "h", pods(gpus=4), submitted_at=AT - GUARD_S)
    return snapshot(
        nodes=[node("n1", gpus=4)],
        queues=[queue("z", h100=10), queue("h", h100=Quota(4, None)), *queues],
        pending=[head, *pending],
        holding=[stays, *holding],
    )


def short(name: str, project: str, *, ago_s: int) -> PendingView:
    return job(name, project, limit_s=60, submitted_at=AT - ago_s)


def ahead(of: Snapshot) -> list[str]:
    made: Plan = plan(of, Policy(guard_s=GUARD_S))
    assert [keep.workload for keep in made.keeps] == ["head"]
    return [admit.workload for admit in made.admits]


def test_who_borrows_less_comes_before_who_came_earlier() -> None:
    """x has one of the devices already."""
    of = fleet(
        [queue("x", h100=BORROWS), queue("y", h100=BORROWS)],
        *(short(f"x{n}", "x", ago_s=100) for n in range(2)),
        *(short(f"y{n}", "y", ago_s=10) for n in range(2)),
        holding=[replace(runs("r", "x", "n1/1", limit_s=HOUR_S), preemptible=False)],
    )
    assert ahead(of) == ["y0", "x0"]


def test_an_owner_comes_before_borrowers_who_came_earlier() -> None:
    of = fleet(
        [queue("x", h100=BORROWS), queue("o", h100=Quota(1, 0))],
        *(short(f"x{n}", "x", ago_s=100) for n in range(3)),
        short("o0", "o", ago_s=1),
        holding=[],
    )
    assert ahead(of) == ["o0", "x0", "x1"]
