"""Nobody is evicted, and no plan is kept busy, for what can't start all the same."""

from dataclasses import replace

import pytest

from scheduler.core.cycle import plan
from scheduler.core.evicting import preempt
from scheduler.core.evicting.preempt import MOST_SEARCHES_EACH
from scheduler.core.policy import Policy
from scheduler.core.reasons import ReasonCode
from scheduler.core.snapshot import HoldingView, ReservationView, Snapshot
from scheduler.core.units import FlavorId, ProjectId
from tests.core.build import AT, Outcome, Quota, decide, holds, job, node, pods, queue, snapshot

GUARD = Policy(guard_s=1800)


def running(name: str, project: str, on: str, *, limit_s: int | None = None) -> HoldingView:
    """One GPU of a node of one, for 10 s so far; it queues again when it is evicted."""
    asked = job(name, project, pods(), limit_s=limit_s)
    of = snapshot(nodes=[node(on, gpus=1)], queues=[queue(project, h100=1)], pending=[asked])
    return holds(decide(of).plan.admits[0], asked, since_s=10)


def beside_kept_room(victim: str, nominal: float | Quota) -> Snapshot:
    """n1 has a free GPU, which is kept for `old`; `new` would need that beside the victim's."""
    stays = replace(running("stays", "z", "n1", limit_s=100_000), preemptible=False)
    return snapshot(
        nodes=[node("n1", gpus=2), node("n2", gpus=1)],
        queues=[queue("a", h100=10), queue("b", h100=2), queue("v", h100=nominal)],
        pending=[
            job("old", "a", pods(gpus=2), priority=10, submitted_at=0),
            job("new", "b", pods(2), priority=5, submitted_at=AT - 10),
        ],
        holding=[stays, running("victim", victim, "n2")],
    )


@pytest.mark.parametrize(("victim", "nominal"), [("b", 0), ("v", Quota(0, None))])
def test_room_that_is_kept_is_not_what_somebody_is_evicted_for(
    victim: str, nominal: float | Quota
) -> None:
    made = Outcome(plan(beside_kept_room(victim, nominal), GUARD))
    assert made.victims() == []
    assert made.reason("old") is ReasonCode.ROOM_KEPT


def test_nobody_is_evicted_for_cores_that_are_reserved() -> None:
    of = snapshot(
        nodes=[node("n1", gpus=1, cores=8)],
        queues=[queue("a", h100=10), queue("c", cpu=8)],
        pending=[job("high", "a", pods(cores=4), priority=5)],
        holding=[running("low", "a", "n1")],
    )
    cores = ReservationView(ProjectId("c"), FlavorId("cpu"), 6000, AT + 10**5, AT + 2 * 10**5)
    assert Outcome(plan(of, Policy())).victims() != []
    assert Outcome(plan(replace(of, reservations=(cores,)), Policy())).victims() == []


def test_a_window_leaves_the_least_start_of_what_may_grow() -> None:
    grows = job("grows", "a", pods(4, least=1))
    of = snapshot(
        nodes=[node("n1", gpus=4)],
        queues=[queue("a", h100=8), queue("c", h100=8)],
        pending=[grows],
    )
    kept = ReservationView(ProjectId("c"), FlavorId("h100"), 2000, AT + 100, AT + 200)
    [admit] = plan(replace(of, reservations=(kept,)), Policy()).admits
    assert len(admit.places) == 1


def test_a_project_that_asks_for_many_sizes_is_searched_for_so_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each search may look at the whole fleet."""
    searched: list[str] = []
    search = preempt.Evictions._search

    def counted(self: preempt.Evictions, pending: object, *more: object) -> object:
        searched.append(pending.project)  # type: ignore[attr-defined]
        return search(self, pending, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(preempt.Evictions, "_search", counted)
    of = snapshot(
        nodes=[node(f"n{i}", gpus=1) for i in range(4)],
        queues=[queue("a", h100=4), queue("b", h100=Quota(1, None))],
        pending=[
            job(f"w{i:03}", "a", pods(4, memory_gib=1 + i / 1024), submitted_at=AT)
            for i in range(60)
        ],
        holding=[running(f"r{i}", "b", f"n{i}") for i in range(3)],
    )
    assert Outcome(plan(of, Policy())).victims() == []
    assert searched == ["a"] * MOST_SEARCHES_EACH


def test_work_that_holds_twice_stops_no_plan() -> None:
    once = running("r", "a", "n1", limit_s=500)
    of = snapshot(
        nodes=[node("n1", gpus=1)],
        queues=[queue("a", h100=8)],
        pending=[job("w", "a", submitted_at=0)],
        holding=[once, once],
    )
    assert Outcome(plan(of, GUARD)).reason("w") is ReasonCode.NO_FREE_CAPACITY
