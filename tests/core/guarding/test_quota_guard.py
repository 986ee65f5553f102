"""Quota is kept in its project for who has waited long: its later work does not overtake it."""

from dataclasses import replace

import pytest

from scheduler.core import cycle
from scheduler.core.cycle import plan
from scheduler.core.policy import Policy
from scheduler.core.reasons import ReasonCode, describe
from scheduler.core.snapshot import (
    ComingView,
    HoldingView,
    NodeView,
    PendingView,
    QueueView,
    ReservationView,
    Snapshot,
)
from scheduler.core.units import WHOLE_DEVICE, FlavorId, ProjectId, WorkloadId
from tests.core.build import (
    AT,
    T4,
    Outcome,
    Quota,
    cluster,
    job,
    node,
    pods,
    queue,
    runs,
    snapshot,
)
from tests.core.rounds import carried_out

GUARD_S = 600
OLD, NEW = AT - GUARD_S, AT - GUARD_S + 1
POLICY = Policy(guard_s=GUARD_S)
CODE = ReasonCode


def large(name: str = "w", *, gpus: int = 8, submitted_at: int = OLD) -> PendingView:
    return job(name, "a", pods(gpus=gpus), submitted_at=submitted_at)


def small(name: str = "x", project: str = "a", *, limit_s: int | None = None) -> PendingView:
    return job(name, project, pods(), submitted_at=AT, limit_s=limit_s)


def one_runs(project: str = "a", *, limit_s: int | None = 500) -> HoldingView:
    """On one GPU since 100 s."""
    return runs("r", project, "n1/0", limit_s=limit_s, since_s=100)


def used_by_others() -> NodeView:
    """One of its eight GPUs is."""
    made = node("n1", gpus=8)
    return replace(made, foreign=((made.devices[7].id, WHOLE_DEVICE),))


def in_rack(name: str, rack: str) -> NodeView:
    return replace(node(name, gpus=4), topology=("z", rack))


def fleet(
    *pending: PendingView,
    queues: list[QueueView] | None = None,
    holding: list[HoldingView] | None = None,
) -> Snapshot:
    """Eight GPUs, as many as project a is guaranteed, of which it uses one for 400 s more."""
    return snapshot(
        nodes=[node("n1", gpus=8)],
        queues=queues or [queue("a", h100=8)],
        pending=pending,
        holding=[one_runs()] if holding is None else holding,
    )


def made(of: Snapshot) -> Outcome:
    return Outcome(plan(of, POLICY))


def test_small_work_of_its_project_does_not_overtake_who_has_waited_long() -> None:
    found = made(fleet(large(), small()))
    assert not found.admits
    assert found.reason("w") is CODE.QUOTA_USED
    assert found.reason("x") is CODE.QUOTA_KEPT
    assert describe(found.holds[WorkloadId("x")].reason) == (
        "1 h100 asked and 7 to be had, but 8 are kept for work of its project that comes first and"
        " has waited long; what ends before by its own limit may go ahead."
    )


def test_who_has_not_waited_so_long_is_overtaken() -> None:
    assert list(made(fleet(large(submitted_at=NEW), small())).admits) == ["x"]


def test_without_a_guard_all_are_overtaken() -> None:
    assert list(Outcome(plan(fleet(large(), small()), Policy())).admits) == ["x"]


def test_what_ends_before_the_quota_is_back_goes_ahead() -> None:
    found = made(fleet(large(), small("x", limit_s=400), small("y", limit_s=401)))
    assert (list(found.admits), found.reason("y")) == (["x"], CODE.QUOTA_KEPT)


def test_what_goes_ahead_does_not_put_it_off() -> None:
    """Seven go ahead, and end with what runs: then it starts."""
    of = fleet(large(), *(small(f"x{n}", limit_s=400) for n in range(9)))
    found = made(of)
    assert len(found.admits) == 7
    then, _ = carried_out(of, found.plan)
    assert len(then.holding) == 8  # all of which end by then
    then = replace(then, at=AT + 400, holding=(), pending=(*then.pending, small("late")))
    assert list(made(then).admits) == ["w"]


def test_nothing_goes_ahead_while_nobody_knows_when_the_quota_is_back() -> None:
    holding = [one_runs(limit_s=None)]
    found = made(fleet(large(), small("x", limit_s=1), holding=holding))
    assert not found.admits


def test_what_it_leaves_of_the_quota_is_used() -> None:
    """Of 8 GPUs 7 are left, and 6 are kept, for who lacks room alone: two are free elsewhere."""
    of = snapshot(
        nodes=[node("n1", gpus=8), node("n2", gpus=2)],
        queues=[queue("a", h100=8), queue("b", h100=2)],
        pending=[large(gpus=6), small("x"), small("y")],
        holding=[one_runs(), runs("other", "b", "n1/1", "n1/2")],
    )
    found = made(of)
    assert list(found.admits) == ["x"]
    assert found.reason("w") is CODE.ROOM_KEPT
    assert found.reason("y") is CODE.QUOTA_KEPT


def test_who_stands_before_it_in_the_queue_is_first() -> None:
    urgent = job("u", "a", pods(), priority=5, submitted_at=AT)
    assert list(made(fleet(large(), small(), urgent)).admits) == ["u"]


def test_others_still_borrow_what_it_waits_for() -> None:
    queues = [queue("a", h100=8), queue("b", h100=Quota(0, None))]
    found = made(fleet(large(), small("x", "b"), queues=queues))
    assert list(found.admits) == ["x"]


def test_other_flavors_of_the_project_go_on() -> None:
    queues = [queue("a", h100=8, cpu=64)]
    cores = job("x", "a", pods(gpus=0, cores=1, flavors="cpu"), submitted_at=AT)
    assert list(made(fleet(large(), cores, queues=queues)).admits) == ["x"]


def test_what_others_hold_does_not_stop_the_project() -> None:
    """Two are lent to b, whose work may not be stopped: without its own work it would still lack
    quota."""
    lent = [one_runs(), *(runs(f"b{n}", "b", f"n1/{n}") for n in (1, 2))]
    queues = [queue("a", h100=8), queue("b", h100=Quota(0, None))]
    of = fleet(large(), small(), queues=queues, holding=lent)
    found = Outcome(plan(of, Policy(guard_s=GUARD_S, preemption=False)))
    assert list(found.admits) == ["x"]


def apart(*pending: PendingView, nodes: list[NodeView], quota: int) -> Snapshot:
    """One GPU of n1 is in use for 400 s more."""
    queues = [queue("a", h100=quota, h100all=70, _1g=8)]
    return snapshot(
        nodes=nodes, queues=queues, pending=pending, holding=[one_runs()], levels="zone rack"
    )


SMALL = [node("n1", gpus=4), node("n2", gpus=4)]
ROOMY = [node("n1", gpus=8), node("n2", gpus=8)]
IN_RACKS = job("w", "a", pods(2, gpus=4), submitted_at=OLD, within="rack")


@pytest.mark.parametrize(
    "of",
    [
        apart(large(gpus=9), small(), nodes=ROOMY, quota=8),
        apart(large(gpus=16), small(), nodes=ROOMY, quota=16),
        apart(large(), small(), nodes=[*SMALL, node("n3", gpus=8, usable=False)], quota=8),
        apart(large(), small(), nodes=[used_by_others(), node("n2", gpus=4)], quota=8),
        apart(IN_RACKS, small(), nodes=[in_rack("n1", "r1"), in_rack("n2", "r2")], quota=8),
        apart(
            job("w", "a", pods(8, flavors="1g"), submitted_at=OLD),
            small(),
            nodes=[node("n1", gpus=4), node("m1", gpus=1, dynamic=True)],
            quota=4,
        ),
    ],
    ids=["quota", "node", "cordoned", "foreign", "rack", "slices"],
)
@pytest.mark.parametrize("least", [0, 10**9], ids=["swept", "by hand"])
def test_who_would_find_no_room_in_a_vacant_fleet_keeps_nothing(
    of: Snapshot, least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cycle, "LEAST_SWEPT", least)
    assert list(made(of).admits) == ["x"]


def test_nodes_that_can_come_are_room() -> None:
    of = apart(large(gpus=2), small(), nodes=[node("n1", gpus=1)], quota=2)
    assert list(made(of).admits) == []  # no room either
    assert made(of).reason("x") is CODE.NO_FREE_CAPACITY
    [only] = of.clusters
    comes = ComingView("pool", "pool", node("new", gpus=2), 1)
    there = replace(of, clusters=(replace(only, coming=(comes,)),))
    assert made(there).reason("x") is CODE.QUOTA_KEPT


def test_what_a_reservation_keeps_waiting_keeps_nothing() -> None:
    window = ReservationView(ProjectId("b"), FlavorId("h100"), 8000, AT + 3600, AT + 90_000)
    queues = [queue("a", h100=8), queue("b", h100=8)]
    of = replace(fleet(large(), small(limit_s=900), queues=queues), reservations=(window,))
    assert list(made(of).admits) == ["x"]
    assert not made(replace(of, reservations=())).admits


def test_it_is_kept_with_the_first_option_that_would_do() -> None:
    """Of two flavors, whose other goes on."""
    either = job("w", "a", pods(gpus=8, flavors="h100 t4"), submitted_at=OLD)
    of = snapshot(
        nodes=[node("n1", gpus=8), node("m1", gpus=8, model=T4)],
        queues=[queue("a", h100=8, t4=8)],
        pending=[either, small(), job("y", "a", pods(flavors="t4"), submitted_at=AT)],
        holding=[one_runs(), runs("s", "a", "m1/0", flavor="t4")],
    )
    found = made(of)
    assert (list(found.admits), found.reason("x")) == (["y"], CODE.QUOTA_KEPT)


def test_who_stands_before_it_takes_its_place_and_nothing_of_it_stays() -> None:
    """The like of v that has waited long asks for both flavors; u, before it, for one of them."""
    both = pods(gpus=8), pods(gpus=8, flavors="t4", name="b")
    of = snapshot(
        nodes=[node("n1", gpus=8), node("m1", gpus=8, model=T4)],
        queues=[queue("a", h100=8, t4=8)],
        pending=[
            job("v", "a", *both, priority=5, submitted_at=AT),
            job("w", "a", *both, submitted_at=OLD),
            job("u", "a", pods(gpus=8), priority=3, submitted_at=OLD),
            job("y", "a", pods(flavors="t4"), submitted_at=AT),
        ],
        holding=[replace(one_runs(limit_s=None), priority=9)],
    )
    assert list(made(of).admits) == ["y"]


def test_who_would_borrow_even_so_keeps_nothing_from_what_is_guaranteed() -> None:
    """Eight are asked for, four of them of others."""
    queues = [queue("a", h100=Quota(4, None)), queue("b", h100=4)]
    of = fleet(large(), small(), queues=queues, holding=[one_runs(limit_s=None)])
    assert list(made(of).admits) == ["x"]
    three = [runs(f"r{n}", "a", f"n1/{n}") for n in range(4)]
    of = fleet(large(), small(), queues=queues, holding=three)
    assert made(of).reason("x") is CODE.QUOTA_KEPT


def test_quota_is_free_for_what_comes_later_while_room_is_kept_for_another() -> None:
    first = job("v", "c", pods(gpus=8), submitted_at=OLD - 1)
    of = snapshot(
        nodes=ROOMY,
        queues=[queue(name, h100=8) for name in "abc"],
        pending=[first, large(), small()],
        holding=[runs("s", "b", "n1/0", "n2/0", preemptible=False)],
    )
    found = made(of)
    assert [keep.workload for keep in found.plan.keeps] == ["v"]
    assert list(found.admits) == ["x"]


def test_room_that_is_kept_until_nobody_knows_when_keeps_nobody_from_going_ahead_elsewhere() -> (
    None
):
    waits = job("k", "c", pods(gpus=8), clusters="c2", submitted_at=OLD - 1)
    of = snapshot(
        clusters=[cluster("c1", [node("n1", gpus=8)]), cluster("c2", [node("n2", gpus=8)])],
        queues=[queue("a", h100=8), queue("b", h100=8), queue("c", h100=8)],
        pending=[waits, large(), small(limit_s=100)],
        holding=[one_runs(), runs("s", "b", "n2/0", preemptible=False, in_cluster="c2")],
    )
    found = made(of)
    assert [(keep.workload, keep.starts_at) for keep in found.plan.keeps] == [("k", None)]
    assert list(found.admits) == ["x"]


def test_of_like_requests_the_one_that_has_waited_long_counts() -> None:
    """A plan asks the first of them alone, which is newer and of higher priority."""
    policy = Policy(guard_s=GUARD_S, preemption=False)
    new = job("v", "a", pods(gpus=8), priority=5, submitted_at=AT)
    assert not plan(fleet(large(), new, small()), policy).admits
    assert len(plan(fleet(large(submitted_at=NEW), new, small()), policy).admits) == 1


def test_who_has_waited_long_too_waits_behind_the_first_of_them() -> None:
    found = made(fleet(large("v"), large("w", gpus=4)))
    assert (found.reason("v"), found.reason("w")) == (CODE.QUOTA_USED, CODE.QUOTA_KEPT)
    assert list(made(fleet(large("w", gpus=4))).admits) == ["w"]


def test_nobody_is_evicted_for_what_comes_later() -> None:
    """Of higher priority than what runs, but behind the large one."""
    lower = runs("r", "a", "n1/0", priority=-2)
    stays = runs("s", "a", "n1/1", preemptible=False)
    later = job("x", "a", pods(gpus=7), priority=-1, submitted_at=AT)
    assert not made(fleet(large(), later, holding=[lower, stays])).plan.preempts
    of = fleet(large(submitted_at=NEW), later, holding=[lower, stays])
    assert [preempt.victim for preempt in made(of).plan.preempts] == ["r"]


def test_no_work_of_the_project_moves_up_on_it() -> None:
    on_t4 = replace(
        runs("up", "a", "m1/0", flavor="t4", of=pods(flavors="h100 t4")), move_to_better=True
    )
    of = snapshot(
        nodes=[node("n1", gpus=8), node("m1", gpus=1, model=T4)],
        queues=[queue("a", h100=8, t4=1)],
        pending=[large()],
        holding=[one_runs(), on_t4],
    )
    policy = replace(POLICY, consolidation_budget_milli_s=10**9)
    assert plan(of, policy).landings == ()
    [landing] = plan(replace(of, pending=()), policy).landings
    assert landing.workload == "up"


def test_slices_count_of_the_quota_of_their_model() -> None:
    """Seven sevenths, of which one is used, are asked for whole; then another seventh is."""
    of = snapshot(
        nodes=[node("n1", gpus=2, dynamic=True)],
        queues=[queue("a", h100all=Quota(7), _1g=14)],
        pending=[
            job("w", "a", pods(7, flavors="1g"), submitted_at=OLD),
            job("x", "a", pods(flavors="1g"), submitted_at=AT),
        ],
        holding=[runs("r", "a", "n1/0", flavor="1g", span=(0, 1))],
    )
    found = made(of)
    assert (list(found.admits), found.reason("x")) == ([], CODE.QUOTA_KEPT)


@pytest.mark.parametrize("least", [0, 10**9], ids=["swept", "by hand"])
def test_round_after_round_the_large_one_starts(
    least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each minute more come that run for five, or for ten where they borrow: without a guard it
    never starts."""
    monkeypatch.setattr(cycle, "LEAST_SWEPT", least)
    assert (_starts_after(None, "aa"), _starts_after(600, "aa")) == (None, 13)
    assert (_starts_after(None, "ab"), _starts_after(600, "ab")) == (None, 15)


def test_nobody_is_evicted_for_who_waits_for_it_then() -> None:
    """Others borrow what comes free: they are not evicted for small work that is kept waiting."""
    later = [small(f"x{n}", limit_s=86_400) for n in range(7)]
    lent = [job(f"b{n}", "b", pods(), submitted_at=AT - 5000) for n in range(7)]
    queues = [queue("a", h100=8), queue("b", h100=Quota(0, None))]
    of = fleet(large(), *later, *lent, queues=queues, holding=[one_runs(limit_s=86_400)])
    for _ in range(8):
        done = plan(of, POLICY)
        assert not done.preempts
        of, _ = carried_out(of, done)


def _starts_after(guard_s: int | None, projects: str) -> int | None:
    """Minutes until it does, with one more of each of the projects a minute; None if not within
    an hour."""
    queues = [queue("a", h100=8), queue("b", h100=Quota(0, None))]
    of = fleet(large(submitted_at=AT), queues=queues)
    for minute in range(60):
        new = [
            job(f"x{minute}-{n}", p, pods(), submitted_at=of.at, limit_s=300 if p == "a" else 600)
            for n, p in enumerate(projects)
        ]
        of = replace(of, pending=(*of.pending, *new))
        done = plan(of, Policy(guard_s=guard_s))
        if any(admit.workload == "w" for admit in done.admits):
            return minute
        of, _ = carried_out(of, done)
        ended = [h for h in of.holding if (h.started_at or 0) + (h.run_time_limit_s or 0) <= of.at]
        of = replace(of, holding=tuple(held for held in of.holding if held not in ended))
    return None
