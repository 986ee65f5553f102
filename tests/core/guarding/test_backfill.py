"""Room is kept for who has waited long, and only what ends in time goes ahead."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from scheduler.core.cycle import plan
from scheduler.core.guarding.backfill import MOST_IN_VAIN, MOST_IN_VAIN_EACH, Backfill
from scheduler.core.held.runs import OVERDUE_S
from scheduler.core.laws.invariants import violations
from scheduler.core.node.fit import Room, let_in
from scheduler.core.plan import Keep, Place, Plan
from scheduler.core.policy import Policy
from scheduler.core.reasons import Reason, ReasonCode, describe
from scheduler.core.snapshot import (
    HeldView,
    HoldingView,
    PendingView,
    ReservationView,
    Snapshot,
)
from scheduler.core.units import FlavorId, NodeId, ProjectId, WorkloadId
from tests.core.build import (
    AT,
    BY_NAME,
    T4,
    Outcome,
    Quota,
    cluster,
    decide,
    holds,
    job,
    node,
    pods,
    queue,
    runs,
    snapshot,
)
from tests.core.drawn import fleets
from tests.core.drawn.fleets import shuffled, snapshots
from tests.core.rounds import carried_out

GUARD_S = 600
OLD, NEW = AT - GUARD_S, AT - GUARD_S + 1
POLICY = Policy(guard_s=GUARD_S, preemption=False)


def running(name: str, *, gpus: int = 1, limit_s: int | None, since_s: int = 100) -> HoldingView:
    """Work of project b that began `since_s` ago, alone in the fleet of two nodes."""
    started = job(name, "b", pods(gpus=gpus), limit_s=limit_s)
    made = decide(snapshot(nodes=NODES, queues=QUEUES, pending=[started]))
    return holds(made.plan.admits[0], started, since_s=since_s)


NODES = [node("n1", gpus=2), node("n2", gpus=2)]
QUEUES = [queue("a", h100=8), queue("b", h100=8)]


def gang(name: str, *, submitted_at: int = OLD, limit_s: int | None = None) -> PendingView:
    """All four GPUs."""
    return job(name, "a", pods(2, gpus=2), submitted_at=submitted_at, limit_s=limit_s)


def single(name: str, *, limit_s: int | None = None) -> PendingView:
    return job(name, "b", pods(), submitted_at=AT, limit_s=limit_s)


def fleet(*pending: PendingView, limit_s: int | None = 500) -> Snapshot:
    """One of four GPUs is in use, for 400 s more."""
    return snapshot(
        nodes=NODES,
        queues=QUEUES,
        pending=pending,
        holding=[running("r", limit_s=limit_s)],
    )


def test_room_is_kept_until_the_work_in_its_way_ends_by_its_limit() -> None:
    made = Outcome(plan(fleet(gang("w")), POLICY))
    assert [(keep.workload, keep.starts_at) for keep in made.plan.keeps] == [("w", AT + 400)]
    assert made.reason("w") is ReasonCode.ROOM_KEPT
    text = describe(made.holds[WorkloadId("w")].reason)
    assert text == (
        "4 h100 are kept for it from those who come after it; by the run-time limits of what runs"
        " there, the last of them is free in 7 min."
    )


def test_what_might_still_run_then_does_not_start_on_it() -> None:
    made = Outcome(plan(fleet(gang("w"), single("x"), single("y", limit_s=401)), POLICY))
    assert made.reason("x") is made.reason("y") is ReasonCode.KEPT_FOR_OTHERS
    assert describe(made.holds[WorkloadId("x")].reason).startswith(
        "1 h100 would fit, but are kept"
    )


def test_what_ends_by_then_goes_ahead_in_order() -> None:
    three = [single(f"x{i}", limit_s=400) for i in range(4)]
    made = Outcome(plan(fleet(gang("w"), *three), POLICY))
    assert sorted(made.admits) == ["x0", "x1", "x2"]
    assert made.reason("w") is ReasonCode.ROOM_KEPT


def test_who_has_not_waited_so_long_is_overtaken() -> None:
    made = Outcome(plan(fleet(gang("w", submitted_at=NEW), single("x")), POLICY))
    assert list(made.admits) == ["x"]
    assert made.plan.keeps == ()


def test_without_a_guard_nothing_is_kept() -> None:
    made = Outcome(plan(fleet(gang("w"), single("x")), Policy(preemption=False)))
    assert (list(made.admits), made.plan.keeps) == (["x"], ())


def test_work_without_a_limit_gives_no_time_and_nothing_goes_ahead() -> None:
    made = Outcome(plan(fleet(gang("w"), single("x", limit_s=1), limit_s=None), POLICY))
    assert [keep.starts_at for keep in made.plan.keeps] == [None]
    assert made.reason("x") is ReasonCode.KEPT_FOR_OTHERS
    assert "without a run-time limit" in describe(made.holds[WorkloadId("w")].reason)


def test_what_it_does_not_need_is_not_kept() -> None:
    three = job("w", "a", pods(1, gpus=2), submitted_at=OLD)
    of = snapshot(
        nodes=[node("n1", gpus=2), node("n2", gpus=1)],
        queues=QUEUES,
        pending=[three, single("x")],
        holding=[running("r", gpus=2, limit_s=500)],
    )
    made = Outcome(plan(of, POLICY))
    assert list(made.admits) == ["x"]
    assert made.reason("w") is ReasonCode.ROOM_KEPT


def three_nodes(*pending: PendingView) -> Snapshot:
    """One GPU each, all in use for the same time."""
    fleet = [node(f"n{i}", gpus=1) for i in range(3)]
    busy = [job(f"r{i}", "b", pods(), limit_s=500) for i in range(3)]
    begun = Outcome(plan(snapshot(nodes=fleet, queues=QUEUES, pending=busy), POLICY))
    asked = {each.id: each for each in busy}
    running = [holds(a, asked[a.workload], since_s=100) for a in begun.plan.admits]
    return snapshot(nodes=fleet, queues=QUEUES, pending=pending, holding=running)


@pytest.mark.parametrize(("most", "kept"), [(1, ["w1"]), (2, ["w1", "w2"])])
def test_easy_keeps_for_the_first_and_conservative_for_the_next_beside_it(
    most: int, kept: list[str]
) -> None:
    waits = [job(name, "a", pods(), submitted_at=OLD) for name in ("w1", "w2", "w3")]
    made = plan(three_nodes(*waits), replace(POLICY, most_kept=most))
    assert [keep.workload for keep in made.keeps] == kept
    assert len({place.node for keep in made.keeps for place in keep.places}) == most


def test_what_is_on_its_way_back_comes_first() -> None:
    of = fleet(gang("w"))
    leaving = tuple(replace(held, releasing=True) for held in of.holding)
    [keep] = plan(replace(of, holding=leaving), POLICY).keeps
    assert keep.starts_at == AT + 1


def test_work_past_its_limit_has_no_end_that_anybody_knows() -> None:
    late = replace(fleet(gang("w"), limit_s=500), at=AT + 400 + OVERDUE_S + 1)
    [keep] = plan(late, POLICY).keeps
    assert keep.starts_at is None


def asked_for(of: Snapshot, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """For whom a plan asks what may be kept."""
    asked: list[str] = []
    keep = Backfill.keep

    def counted(self: Backfill, *, pending: PendingView, **more: Any) -> Keep | Reason | None:
        asked.append(pending.id)
        return keep(self, pending=pending, **more)

    monkeypatch.setattr(Backfill, "keep", counted)
    assert plan(of, POLICY).keeps == ()
    return asked


def test_in_vain_it_looks_at_some_of_a_project_and_at_some_in_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of who asks for what no end of others gives: more cores than a node has."""
    vain = [
        job(f"w{i:02}", f"p{i // 5}", pods(2, gpus=2, cores=40 + i), submitted_at=OLD)
        for i in range(60)
    ]
    queues = [queue(f"p{i}", h100=8) for i in range(12)]
    nodes = [node(f"n{n}", gpus=2, cores=32) for n in (1, 2)]
    asked = asked_for(snapshot(nodes=nodes, queues=queues, pending=vain), monkeypatch)
    assert len(asked) == MOST_IN_VAIN
    assert max(Counter(int(id[1:]) // 5 for id in asked).values()) == MOST_IN_VAIN_EACH


def test_who_asks_for_what_is_not_there_stands_in_nobodys_way() -> None:
    """A cluster is lost, and many kinds of work for it have waited long: more than are looked at
    in vain."""
    lost = cluster("c2", [node("m1", gpus=4, model=T4)], usable=False)
    of = fleet(gang("w"))
    vain = [
        job(f"v{i:02}", f"p{i // 2}", pods(gpus=4, flavors="t4", cores=1 + i), submitted_at=0)
        for i in range(2 * MOST_IN_VAIN)
    ]
    queues = [queue(f"p{i}", t4=Quota(4, None)) for i in range(MOST_IN_VAIN)]
    there = replace(
        of,
        clusters=(*of.clusters, lost),
        queues=(*of.queues, *queues),
        pending=(*vain, *of.pending),
    )
    assert [keep.workload for keep in plan(there, POLICY).keeps] == ["w"]


def test_a_lack_of_quota_keeps_no_room() -> None:
    poor = [queue("a", h100=3), queue("b", h100=8)]
    of = replace(fleet(gang("w"), single("x")), queues=tuple(poor))
    made = Outcome(plan(of, POLICY))
    assert (list(made.admits), made.plan.keeps) == (["x"], ())


def test_the_head_starts_in_the_plan_after_the_end() -> None:
    first = fleet(gang("w"), *(single(f"x{i}", limit_s=400) for i in range(3)))
    assert len(Outcome(plan(first, POLICY)).admits) == 3
    after = replace(first, at=AT + 400, holding=(), pending=(gang("w"), single("late")))
    assert "w" in Outcome(plan(after, POLICY)).admits


@settings(max_examples=300, deadline=None)
@given(of=snapshots(10), waited_s=st.integers(0, 2), most=st.integers(1, 3))
@example(of=fleets.fleet(38740, 9, 7), waited_s=0, most=1)  # reclaims by flavor and by model
def test_what_goes_ahead_never_delays_the_head(of: Snapshot, waited_s: int, most: int) -> None:
    policy = Policy(guard_s=AT - waited_s, most_kept=most)
    made = plan(of, policy)
    assert violations(of, made) == ()
    assert plan(shuffled(of, 3), policy) == made
    for keep in made.keeps:
        if keep.starts_at is not None:
            rooms = rooms_at(of, made, keep.starts_at)
            assert let_in(places=keep.places, rooms=rooms, flavors=BY_NAME), keep


def rooms_at(of: Snapshot, made: Plan, at: int) -> dict[NodeId, Room]:
    """The fleet when each that has a limit has ended by it, and nothing new has come."""
    holders: list[HeldView | Place] = []
    evicted = {preempt.victim for preempt in made.preempts}
    for held in of.holding:
        since = held.admitted_at if held.started_at is None else held.started_at
        ends_at = None if held.run_time_limit_s is None else since + held.run_time_limit_s
        if ends_at is not None and ends_at + OVERDUE_S < of.at:
            ends_at = None
        lasts = ends_at is None or max(of.at + 1, ends_at) > at
        if lasts and not held.releasing and held.id not in evicted:
            holders += held.placements
    limits = {pending.id: pending.run_time_limit_s for pending in of.pending}
    for admit in made.admits:
        limit_s = limits[admit.workload]
        if limit_s is None or of.at + limit_s > at:
            holders += admit.places
    rooms = {n.id: Room(node=n) for c in of.clusters for n in c.nodes}
    for holder in holders:
        if holder.node in rooms:
            rooms[holder.node].take(holder=holder, flavor=BY_NAME[holder.flavor])
    return rooms


def test_what_goes_ahead_up_to_a_moment_moves_nobody_for_whom_room_is_kept_at_it() -> None:
    """On n1 one GPU is never given back; all of n2 is back after 540 s. Three GPUs, one of them on
    n1, are kept for the first, two on one node for the second. On n1 another goes ahead, and ends
    at that moment too: after n2's, where ends are taken one by one."""
    beside = [
        runs("forever", "b", "n1/0"),
        replace(runs("a-full", "b", "n2/0", "n2/1", "n2/2"), run_time_limit_s=540, started_at=AT),
    ]
    waits = [
        job("first", "a", pods(3), submitted_at=OLD - 1),
        job("second", "a", pods(gpus=2), submitted_at=OLD),
        job("short", "b", submitted_at=AT, limit_s=540),
    ]
    before = snapshot(
        nodes=[node("n1", gpus=3), node("n2", gpus=3)],
        queues=QUEUES,
        pending=waits,
        holding=beside,
    )
    policy = replace(POLICY, most_kept=2)
    made = plan(before, policy)
    assert [(keep.workload, keep.starts_at) for keep in made.keeps] == [
        ("first", AT + 540),
        ("second", AT + 540),
    ]
    assert [admit.workload for admit in made.admits] == ["short"]
    later, _ = carried_out(before, made)
    assert [(keep.workload, keep.starts_at) for keep in plan(later, policy).keeps] == [
        ("first", AT + 540),
        ("second", AT + 540),
    ]


def test_what_is_kept_for_another_is_what_that_one_has_of_its_reservation() -> None:
    """Both start when all four come free; two are reserved for the project of the first."""
    stays = runs("stays", "b", *(f"n1/{n}" for n in range(4)), limit_s=1000)
    of = snapshot(
        nodes=[node("n1", gpus=4)],
        queues=QUEUES,
        pending=[job(f"w{n}", p, pods(gpus=2), submitted_at=n) for n, p in enumerate("ab")],
        holding=[replace(stays, preemptible=False)],
    )
    soon = ReservationView(ProjectId("a"), FlavorId("h100"), 2000, AT + 500, AT + 10**5)
    made = plan(replace(of, reservations=(soon,)), replace(POLICY, most_kept=2))
    assert [keep.workload for keep in made.keeps] == ["w0", "w1"]
