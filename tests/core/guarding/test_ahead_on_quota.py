"""Quota that is kept is not kept from what ends before it is back: by hand and swept."""

from dataclasses import replace

import pytest

from scheduler.core import cycle
from scheduler.core.admitting.kept_quota import LEAVES_IN_S
from scheduler.core.plan import Plan
from scheduler.core.policy import Policy
from scheduler.core.snapshot import HoldingView, PendingView, Snapshot
from tests.core.build import AT, T4, Outcome, Quota, job, node, pods, queue, runs, snapshot
from tests.core.rounds import carried_out

GUARD_S, HOUR_S = 600, 3600
POLICY = Policy(guard_s=GUARD_S)
LENT = [runs(f"b{n}", "b", f"n1/{n}", since_s=60) for n in range(1, 8)]


@pytest.fixture(params=[0, 1 << 30], ids=["swept", "by hand"], autouse=True)
def _way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cycle, "LEAST_SWEPT", request.param)


def fleet(*pending: PendingView, holding: list[HoldingView], known: bool = True) -> Snapshot:
    """Eight GPUs, all guaranteed to project a, of which it uses one for a day; all are asked for
    since long. `known`: when that ends."""
    uses = runs("r", "a", "n1/0", limit_s=24 * HOUR_S if known else None)
    large = job("large", "a", pods(gpus=8), submitted_at=AT - GUARD_S)
    return snapshot(
        nodes=[node("n1", gpus=8)],
        queues=[queue("a", h100=8), queue("b", h100=Quota(0, None))],
        pending=[large, *pending],
        holding=[uses, *holding],
    )


def small(
    name: str, *, limit_h: int | None, priority: int = 0, gpus: int = 1, ago_s: int = 0
) -> PendingView:
    limit_s = None if limit_h is None else limit_h * HOUR_S
    at = AT - ago_s
    return job(name, "a", pods(gpus=gpus), limit_s=limit_s, priority=priority, submitted_at=at)


def planned(of: Snapshot) -> Plan:
    return cycle.plan(of, POLICY)


def evicted(made: Plan) -> list[str]:
    return sorted(f"{preempt.victim} for {preempt.preemptor}" for preempt in made.preempts)


def test_it_takes_back_what_others_borrow_and_starts() -> None:
    short = [small(f"x{n}", limit_h=9, ago_s=9 - n) for n in range(3)]
    of = fleet(*short, holding=LENT)
    made = planned(of)
    assert evicted(made) == ["b1 for x0", "b2 for x1", "b3 for x2"]
    for _ in range(3):
        of, _ = carried_out(of, made)
        made = planned(of)
        assert not made.preempts
    assert {held.id for held in of.holding} >= {"x0", "x1", "x2", "b4"}


def test_nobody_is_evicted_for_what_may_end_later() -> None:
    for limit_h in (25, None):
        made = planned(fleet(small("x", limit_h=limit_h), holding=LENT))
        assert (made.preempts, made.admits) == ((), ())


def test_nor_for_any_while_nobody_knows_when_the_quota_is_back() -> None:
    made = planned(fleet(small("x", limit_h=1), holding=LENT, known=False))
    assert (made.preempts, made.admits) == ((), ())


def test_nobody_is_evicted_for_what_may_end_too_late_once_they_have_left() -> None:
    """Of those that end in time the last few minutes before start where there is room."""
    edge = replace(small("x", limit_h=24), run_time_limit_s=24 * HOUR_S - LEAVES_IN_S + 1)
    assert not planned(fleet(edge, holding=LENT)).preempts
    sooner = replace(edge, run_time_limit_s=24 * HOUR_S - LEAVES_IN_S)
    assert evicted(planned(fleet(sooner, holding=LENT))) == ["b1 for x"]
    assert Outcome(planned(fleet(edge, holding=[]))).started() == ["x"]


def test_those_behind_a_like_that_may_not_start_after_all_others() -> None:
    """x0 says nothing, x1 ends too late; who borrows is asked before x2 and x3."""
    of = fleet(
        small("x0", limit_h=None, ago_s=9),
        small("x1", limit_h=30, ago_s=8),
        small("x2", limit_h=9, ago_s=7),
        small("x3", limit_h=9, ago_s=6, priority=-1),
        job("c", "b", pods(gpus=2), submitted_at=AT),
        small("x4", limit_h=9, gpus=4, ago_s=4),
        holding=[],
    )
    made = Outcome(planned(of))
    assert made.started() == ["x4", "c", "x2"]


def test_nobody_is_evicted_for_those_behind_a_like_that_may_not() -> None:
    of = fleet(small("x0", limit_h=None, ago_s=9), small("x1", limit_h=9), holding=LENT)
    assert not planned(of).preempts


def test_who_ends_before_the_one_flavor_is_back_starts_where_another_like_of_it_may_not() -> None:
    """Of the second flavor the quota is back in two hours, of the first in ten, but it is full."""
    of = snapshot(
        nodes=[node("n1", gpus=8), node("m1", gpus=8, model=T4)],
        queues=[queue("a", h100=8, t4=8)],
        pending=[
            job("w", "a", pods(gpus=8), submitted_at=AT - 900),
            job("v", "a", pods(gpus=8, flavors="t4"), submitted_at=AT - 800),
            *(
                job(name, "a", pods(flavors="h100 t4"), submitted_at=AT, limit_s=limit_s)
                for name, limit_s in [("h", None), ("i", 9 * HOUR_S), ("x", HOUR_S)]
            ),
        ],
        holding=[
            runs("r", "a", *(f"n1/{n}" for n in range(8)), limit_s=10 * HOUR_S),
            runs("s", "a", "m1/0", flavor="t4", limit_s=2 * HOUR_S),
        ],
    )
    assert Outcome(planned(of)).started() == ["x"]


def test_no_room_is_kept_for_who_stands_behind_the_one_for_whom_quota_is() -> None:
    """It ends in time and would have room in ten hours; what comes after it may be on it then."""
    waits = replace(small("s", limit_h=1, gpus=8), submitted_at=AT - GUARD_S)
    of = fleet(waits, holding=[runs("b", "b", "n1/1", limit_s=10 * HOUR_S)])
    of = replace(of, queues=(queue("a", h100=16), queue("b", h100=Quota(1, None))))
    of = replace(of, pending=tuple(
        replace(p, pod_sets=tuple(replace(s, count=2, min_count=2) for s in p.pod_sets))
        if p.id == "large" else p for p in of.pending
    ))  # fmt: skip
    of = replace(of, clusters=snapshot(nodes=[node("n1", gpus=8), node("n2", gpus=8)]).clusters)
    of = replace(of, holding=(*of.holding, runs("c", "a", "n2/0", limit_s=24 * HOUR_S)))
    assert planned(of).keeps == ()


def test_what_is_guaranteed_to_it_comes_before_what_others_borrow() -> None:
    """Who borrows has waited longer, and is of higher priority."""
    borrows = [job(f"c{n}", "b", pods(), submitted_at=AT - 5000, priority=9) for n in range(7)]
    made = Outcome(planned(fleet(small("x", limit_h=1), *borrows, holding=[])))
    assert made.started()[0] == "x"


def test_what_goes_ahead_leaves_the_quota_when_it_is_wanted() -> None:
    """In a day all have ended by their limits."""
    of = fleet(*(small(f"x{n}", limit_h=9, gpus=7) for n in range(2)), holding=[])
    made = planned(of)
    assert Outcome(made).started() == ["x0"]
    of, _ = carried_out(of, made)
    ends = [(held.started_at or AT) + (held.run_time_limit_s or 0) for held in of.holding]
    assert max(ends) <= AT + 24 * HOUR_S


def test_who_ends_in_time_and_lacks_quota_too_takes_nobodys_place() -> None:
    """It has waited as long, and stands behind: what is kept stays the first one's."""
    three = job("three", "a", pods(gpus=3), submitted_at=AT - GUARD_S, limit_s=HOUR_S)
    uses = runs("s", "a", *(f"n1/{n}" for n in range(1, 6)), limit_s=25 * HOUR_S)
    made = planned(fleet(three, small("x", limit_h=None), holding=[uses]))
    assert made.admits == ()
    assert Outcome(made).numbers("x")["kept_milli"] == 8000
