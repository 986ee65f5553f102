"""Of like requests room is kept for the first that has waited long, by hand and swept."""

from dataclasses import replace

import pytest

from scheduler.core import cycle
from scheduler.core.policy import Policy
from scheduler.core.reasons import ReasonCode
from scheduler.core.snapshot import PendingView, Snapshot
from scheduler.core.units import ProjectId
from tests.core.build import AT, Outcome, job, node, pods, queue, runs, snapshot

GUARD_S = 600
POLICY = Policy(guard_s=GUARD_S, preemption=False)


@pytest.fixture(params=[0, 1 << 30], ids=["swept", "by hand"], autouse=True)
def _way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cycle, "LEAST_SWEPT", request.param)


def gang(name: str, *, since_s: int, priority: int = 0) -> PendingView:
    """All of the four GPUs."""
    at = AT - since_s
    return job(name, "a", pods(2, gpus=2), submitted_at=at, priority=priority)


def fleet(*pending: PendingView) -> Snapshot:
    """One GPU is in use, for 400 s more, of project b, of which one more is asked for. Of a third
    project two that are alike come first, so that a sweep knows the hardware would do."""
    known = [
        replace(gang(f"c{i}", since_s=1, priority=90 + i), project=ProjectId("c"))
        for i in range(2)
    ]
    return snapshot(
        nodes=[node("n1", gpus=2), node("n2", gpus=2)],
        queues=[queue("a", h100=8), queue("b", h100=8), queue("c", h100=8)],
        pending=[*pending, *known, job("small", "b", pods(), submitted_at=AT)],
        holding=[runs("r", "b", "n1/0", limit_s=500, since_s=100)],
    )


def planned(*pending: PendingView, policy: Policy = POLICY) -> Outcome:
    return Outcome(cycle.plan(fleet(*pending), policy))


def test_the_oldest_of_its_like_has_room_kept_though_newer_ones_come_before_it() -> None:
    newer = [gang(f"new{i}", since_s=10, priority=9 - i) for i in range(3)]
    made = planned(*newer, gang("old", since_s=GUARD_S), gang("older", since_s=900))
    [keep] = made.plan.keeps
    assert (keep.workload, keep.starts_at) == ("older", AT + 400)
    assert made.reason("older") is ReasonCode.ROOM_KEPT
    assert made.started() == []
    assert made.reason("small") is ReasonCode.KEPT_FOR_OTHERS
    others = [made.reason(name) for name in ("new0", "new1", "new2", "old")]
    assert others == [ReasonCode.NO_FREE_CAPACITY] * 4


def test_newer_ones_alone_have_nothing_kept() -> None:
    made = planned(gang("new", since_s=10, priority=9), gang("old", since_s=GUARD_S - 1))
    assert (made.plan.keeps, made.started()) == ((), ["small"])


def test_room_is_kept_for_as_many_as_may_have_it() -> None:
    """A node for each, where one GPU is in use."""
    waiting = [
        job(f"o{i}", "a", pods(gpus=2), submitted_at=AT - 900 + i, priority=i) for i in range(3)
    ]
    of = fleet(job("new", "a", pods(gpus=2), submitted_at=AT, priority=9), *waiting)
    other = runs("s", "b", "n2/0", limit_s=900, since_s=100)
    of = replace(of, holding=(*of.holding, other))
    made = Outcome(cycle.plan(of, replace(POLICY, most_kept=2)))
    kept = [(keep.workload, keep.starts_at) for keep in made.plan.keeps]
    assert kept == [("o2", AT + 400), ("o1", AT + 800)]
    assert made.reason("o0") is made.reason("new") is ReasonCode.NO_FREE_CAPACITY


def test_of_two_that_are_alike_the_last_behind_its_like_is_decided_once() -> None:
    made = planned(gang("new", since_s=10, priority=9), gang("old", since_s=GUARD_S))
    assert sorted(made.holds) == ["c0", "c1", "new", "old", "small"]
    assert made.plan.keeps[0].workload == "old"


def test_who_comes_before_it_may_be_first_when_room_is_there() -> None:
    of = fleet(gang("new", since_s=10, priority=9), gang("old", since_s=GUARD_S))
    of = replace(of, holding=(), pending=tuple(p for p in of.pending if p.project != "c"))
    assert Outcome(cycle.plan(of, POLICY)).started()[0] == "new"
