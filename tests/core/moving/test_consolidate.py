"""Work moves where all of it goes on elsewhere: within the budget, in order, and to its places."""

from dataclasses import replace

import pytest

from scheduler.core.bounds.caps import Caps
from scheduler.core.cycle import plan
from scheduler.core.laws.invariants import violations
from scheduler.core.moving.landing import KEPT_S
from scheduler.core.moving.movers import REST_S
from scheduler.core.plan import Landing, Plan
from scheduler.core.policy import Policy
from scheduler.core.reasons import PreemptRule, ReasonCode, describe
from scheduler.core.snapshot import BudgetView, CapsView, HoldingView, Snapshot
from scheduler.core.units import BudgetId, CohortId
from tests.core.bounds.test_windows import window
from tests.core.build import AT, Quota, cohort, cpu_pods, job, node, pods, queue, runs, snapshot
from tests.core.moving.fragments import after

HOUR = 3600 * 1000
POLICY = Policy(consolidation_budget_milli_s=HOUR)
TWO = [queue("a", h100=16), queue("b", h100=16)]


def saved(
    name: str, device: str, project: str = "b", *, ago_s: int = 60, moved_s: int | None = None
) -> HoldingView:
    """It holds a device, saved its work and was moved so long ago."""
    held = runs(name, project, device, since_s=REST_S * 2)
    asked = job(name, project, pods())
    moved_at = None if moved_s is None else AT - moved_s
    return replace(held, pod_sets=asked.pod_sets, checkpointed_at=AT - ago_s, moved_at=moved_at)


def halves(*, ago_s: int = 60, moved_s: int | None = None) -> Snapshot:
    """Two nodes of two devices, each half full, and one who wants all of one."""
    return snapshot(
        nodes=[node("n1", gpus=2), node("n2", gpus=2)],
        queues=TWO,
        holding=[saved("p", "n1/0", ago_s=ago_s, moved_s=moved_s), saved("q", "n2/0", ago_s=90)],
        pending=[job("w", "a", pods(gpus=2))],
    )


def moved(made: Plan) -> list[str]:
    return [p.victim for p in made.preempts if p.rule is PreemptRule.CONSOLIDATE]


def nodes_of(landings: tuple[Landing, ...]) -> dict[str, set[str]]:
    return {each.workload: {place.node for place in each.places} for each in landings}


def test_who_loses_least_moves_and_all_have_places_to_go_to() -> None:
    of = halves()
    made = plan(of, POLICY)
    assert violations(of, made) == ()
    assert moved(made) == ["p"]
    assert nodes_of(made.landings) == {"w": {"n1"}, "p": {"n2"}}
    [hold] = made.holds
    assert describe(hold.reason) == "Waits for 2 h100; workloads being evicted for it now: 1."


def test_without_a_budget_nothing_moves() -> None:
    assert plan(halves(), Policy()) == plan(halves(), Policy(preemption=False))


def test_what_moves_loses_no_more_than_the_budget() -> None:
    assert not moved(plan(halves(), Policy(consolidation_budget_milli_s=60 * 1000 - 1)))
    assert moved(plan(halves(), Policy(consolidation_budget_milli_s=60 * 1000)))


def test_one_budget_is_for_all_of_a_plan() -> None:
    of = halves()
    of = replace(
        of,
        clusters=(replace(of.clusters[0], nodes=(*of.clusters[0].nodes, node("n3", gpus=2))),),
        holding=(*of.holding, saved("r", "n3/0", ago_s=90)),
        pending=(*of.pending, job("x", "a", pods(gpus=2), submitted_at=1)),
    )
    assert len(moved(plan(of, Policy(consolidation_budget_milli_s=149 * 1000)))) == 1


def test_who_was_moved_rests_for_a_day() -> None:
    assert moved(plan(halves(moved_s=REST_S - 1), POLICY)) == ["q"]
    assert moved(plan(halves(moved_s=REST_S), POLICY)) == ["p"]


def test_nothing_of_a_held_queue_moves_for_it_could_not_start_again() -> None:
    of = halves()
    held = replace(of.queues[1], held_by=("tenant a",))
    assert not moved(plan(replace(of, queues=(of.queues[0], held)), POLICY))


def test_who_could_not_start_again_by_a_cap_stays() -> None:
    of = halves()
    capped = replace(of.queues[1], caps=CapsView(running=1))
    assert not moved(plan(replace(of, queues=(of.queues[0], capped)), POLICY))


def test_nobody_moves_onto_quota_that_the_gang_itself_takes() -> None:
    """It would borrow the one T4 that the gang is owed, and could not start again."""
    asked = job("p", "b", pods(flavors="h100 t4")).pod_sets
    of = snapshot(
        nodes=[node("n1", gpus=2), node("n2", gpus=2, model="Tesla-T4")],
        queues=[queue("a", h100=2, t4=1), queue("b", h100=1, t4=Quota(0, borrow=None))],
        holding=[replace(saved("p", "n1/0"), pod_sets=asked)],
        pending=[job("w", "a", pods(gpus=2, name="large"), pods(flavors="t4", name="small"))],
    )
    assert not moved(plan(of, POLICY))
    more = replace(of, queues=(queue("a", h100=2, t4=2), of.queues[1]))
    assert moved(plan(more, POLICY)) == ["p"]


def test_a_mover_takes_another_flavor_that_it_accepts() -> None:
    model = "Tesla-T4"
    asked = job("p", "b", pods(flavors="h100 t4")).pod_sets
    of = snapshot(
        nodes=[node("n1", gpus=2), node("n2", gpus=1, model=model)],
        queues=[queue("a", h100=2), queue("b", h100=2, t4=2)],
        holding=[replace(saved("p", "n1/0"), pod_sets=asked)],
        pending=[job("w", "a", pods(gpus=2))],
    )
    made = plan(of, POLICY)
    assert moved(made) == ["p"]
    assert {p.flavor for each in made.landings if each.workload == "p" for p in each.places} == {
        "t4"
    }
    assert violations(of, made) == ()


def test_a_gang_has_work_moved_off_several_nodes() -> None:
    of = snapshot(
        nodes=[node(f"n{i}", gpus=2) for i in range(4)],
        queues=TWO,
        holding=[saved(f"p{i}", f"n{i}/0", ago_s=60 + i) for i in range(4)],
        pending=[job("w", "a", pods(2, gpus=2))],
    )
    made = plan(of, POLICY)
    assert moved(made) == ["p0", "p2"]
    assert nodes_of(made.landings) == {"w": {"n0", "n2"}, "p0": {"n1"}, "p2": {"n3"}}


def test_they_land_where_the_plan_said_and_nobody_comes_between() -> None:
    """Also not who is of higher priority, or would fit beside who has to leave."""
    of = halves()
    made = plan(of, POLICY)
    landings = {each.workload: each.places for each in made.landings}
    of = after(of, made, gone=0, moved={})
    of = replace(of, pending=(*of.pending, job("z", "a", priority=50)))
    waits = plan(of, POLICY)
    assert (waits.admits, waits.preempts) == ((), ())
    assert waits.landings == made.landings
    of = after(of, waits, gone=1, moved={})
    lands = plan(of, POLICY)
    assert {admit.workload: admit.places for admit in lands.admits} == landings
    assert (lands.landings, lands.preempts) == ((), ())
    assert list(lands.reasons()) == ["z"]


def test_who_has_landed_elsewhere_or_is_gone_keeps_nothing() -> None:
    of = halves()
    made = plan(of, POLICY)
    gone = replace(of, pending=(), landings=made.landings)
    assert plan(gone, POLICY) == Plan()


def test_places_are_not_kept_for_ever() -> None:
    of = halves()
    made = plan(of, POLICY)
    late = replace(after(of, made, gone=0, moved={}), at=AT + KEPT_S)
    assert not plan(late, POLICY).landings
    in_time = replace(late, at=AT + KEPT_S - 1)
    assert plan(in_time, POLICY).landings == made.landings


def test_places_that_are_lost_are_kept_for_nobody() -> None:
    of = halves()
    made = plan(of, POLICY)
    of = after(of, made, gone=0, moved={})
    sick = replace(of.clusters[0].nodes[0], usable=False)
    of = replace(of, clusters=(replace(of.clusters[0], nodes=(sick, of.clusters[0].nodes[1])),))
    assert nodes_of(plan(of, POLICY).landings) == {"p": {"n2"}}


def test_without_preemption_who_waits_for_its_places_keeps_its_turn() -> None:
    of = halves()
    made = plan(of, POLICY)
    of = after(of, made, gone=1, moved={})
    started = plan(of, Policy(preemption=False))
    assert sorted(admit.workload for admit in started.admits) == ["p", "w"]


def test_who_is_cancelled_on_its_way_keeps_nothing() -> None:
    of = halves()
    made = plan(of, POLICY)
    of = after(of, made, gone=0, moved={})
    ends = tuple(replace(h, pod_sets=()) if h.releasing else h for h in of.holding)
    assert nodes_of(plan(replace(of, holding=ends), POLICY).landings) == {"w": {"n1"}}


def test_who_would_run_into_a_reservation_stays() -> None:
    """Started anew they would run for two hours; as it is they end before."""
    of = halves()
    held = tuple(replace(held, started_at=AT - 7000, run_time_limit_s=7200) for held in of.holding)
    short = tuple(replace(pending, run_time_limit_s=60) for pending in of.pending)
    of = replace(of, holding=held, pending=short, queues=(*of.queues, queue("c", h100=4)))
    of = replace(of, reservations=(window(4, opens=7200, owner="c"),))
    assert moved(plan(of, POLICY)) == ["p"]
    of = replace(of, reservations=(window(4, opens=7199, owner="c"),))
    assert not plan(of, POLICY).preempts


@pytest.mark.parametrize(("above", "moves"), [("t", ["p"]), ("s", ["p"]), ("other", [])])
def test_what_is_reserved_for_a_tenant_above_it_keeps_nobody_where_it_is(
    above: str, moves: list[str]
) -> None:
    of = halves()
    of = replace(
        of,
        queues=tuple(replace(each, cohort=CohortId("t")) for each in of.queues),
        cohorts=(cohort("s"), cohort("t", parent="s"), cohort("other")),
        reservations=(window(4, above=above),),
    )
    assert moved(plan(of, POLICY)) == moves


def test_a_landing_on_what_was_reserved_meanwhile_is_over() -> None:
    """Who had others moved for it takes none of it either."""
    of = halves()
    of = after(of, plan(of, POLICY), gone=1, moved={})
    of = replace(of, queues=(*of.queues, queue("c", h100=4)))
    reserved = (window(4, owner="c"),)
    late = plan(replace(of, reservations=reserved), POLICY)
    assert (late.admits, late.landings) == ((), ())
    assert {reason.code for reason in late.reasons().values()} == {ReasonCode.RESERVED}
    short = tuple(replace(pending, run_time_limit_s=60) for pending in of.pending)
    in_time = plan(replace(of, pending=short, reservations=reserved), POLICY)
    assert sorted(admit.workload for admit in in_time.admits) == ["p", "w"]


def sliced(*held: tuple[str, str, tuple[int, int]], ago_s: int = 60) -> Snapshot:
    """Slices of two devices, and one who wants four memory slices."""
    holding = []
    for flavor, device, span in held:
        name = f"{device.replace('/', '')}-{span[0]}"
        one = runs(name, "b", device, flavor=flavor, span=span, since_s=REST_S)
        asked = job(name, "b", pods(flavors=flavor)).pod_sets
        holding.append(replace(one, pod_sets=asked, checkpointed_at=AT - ago_s))
    return snapshot(
        nodes=[node("n1", gpus=1, dynamic=True), node("n2", gpus=1, dynamic=True)],
        queues=[queue(project, _1g=9, _2g=9, _3g=9) for project in "ab"],
        holding=holding,
        pending=[job("w", "a", pods(flavors="3g")), job("x", "a", pods(flavors="3g"))],
    )


MIXED = (
    ("1g", "n1/0", (0, 1)),
    ("3g", "n1/0", (4, 8)),
    ("2g", "n2/0", (2, 4)),
    ("3g", "n2/0", (4, 8)),
)


def test_slices_move_with_the_least_compute_for_one_more() -> None:
    of = sliced(*MIXED)
    made = plan(of, POLICY)
    assert violations(of, made) == ()
    assert moved(made) == ["n10-0"]
    places = {str(each.workload): each.places[0] for each in made.landings}
    assert [d for d, _ in places["w"].spans] == ["n1/0"]
    assert [d for d, _ in places["n10-0"].spans] == ["n2/0"]


def test_the_reason_says_what_moving_slices_would_cost_where_that_is_too_much() -> None:
    """A seventh of a device that has run for 14 hours."""
    of = sliced(*MIXED, ago_s=14 * 3600)
    made = plan(of, POLICY)
    assert not made.preempts
    [hold] = made.holds
    assert len(hold.workloads) == 2
    assert (
        dict(hold.reason.numbers).items()
        >= {
            "moves_count": 1,
            "moves_lost_s": 7200,
            "moves_budget_s": 3600,
        }.items()
    )
    assert describe(hold.reason).endswith(
        "Room could be made by moving 1 of others' slices, which loses 2 GPU-hours of their"
        " work; 1 may be lost now."
    )


def test_of_a_gang_all_that_would_move_is_told() -> None:
    """For its pods a slice of one seventh moves, then one of two: either is within the budget."""
    held = (
        *(("1g", "n1/0", (0, 1)), ("3g", "n1/0", (4, 8))),
        *(("1g", "n2/0", (0, 1)), ("3g", "n2/0", (4, 8))),
        *(("2g", "n3/0", (2, 4)), ("3g", "n3/0", (4, 8))),
    )
    of = sliced(*held, ago_s=7 * 1750)
    nodes = [node(f"n{n}", gpus=1, dynamic=True) for n in (1, 2, 3)]
    gang = (job("w", "a", pods(2, flavors="3g")),)
    [hold] = plan(replace(of, clusters=snapshot(nodes=nodes).clusters, pending=gang), POLICY).holds
    told = {name: value for name, value in hold.reason.numbers if name.startswith("moves")}
    assert told == {"moves_count": 2, "moves_lost_s": 3 * 1750, "moves_budget_s": 3600}


def test_slices_that_may_not_move_are_told_of_to_nobody() -> None:
    of = sliced(*MIXED, ago_s=14 * 3600)
    firm = replace(of, holding=tuple(replace(held, preemptible=False) for held in of.holding))
    assert all("moves_count" not in dict(h.reason.numbers) for h in plan(firm, POLICY).holds)


def test_what_is_under_a_budget_in_safe_mode_is_not_moved() -> None:
    of = sliced(*MIXED, ago_s=60)
    assert plan(of, POLICY).landings
    under = tuple(
        BudgetView(
            BudgetId(q.project), q.project, limit_milli_s=10**15, used_milli_s=0,
            ends_at=of.at + 60, project=q.project, safe=True,
        )
        for q in of.queues
    )  # fmt: skip
    timed = tuple(replace(held, run_time_limit_s=10**6) for held in of.holding)
    pending = tuple(replace(each, run_time_limit_s=10**6) for each in of.pending)
    made = plan(replace(of, budgets=under, holding=timed, pending=pending), POLICY)
    assert not made.landings


def test_a_reason_without_moves_says_nothing_of_them() -> None:
    [hold] = plan(halves(ago_s=99_999), Policy(consolidation_budget_milli_s=1)).holds
    assert hold.reason.code is ReasonCode.NO_FIT
    assert "moving" not in describe(hold.reason)


def test_caps_count_who_moves_once() -> None:
    """One of two that may run at once: it gives its place to itself."""
    of = halves()
    capped = replace(of.queues[1], caps=CapsView(running=2))
    of = replace(of, queues=(of.queues[0], capped))
    made = plan(of, POLICY)
    assert moved(made) == ["p"]
    caps = Caps.running(of)
    assert caps.reached(job("y", "b")) is not None
    lands = plan(after(of, made, gone=1, moved={}), POLICY)
    assert violations(after(of, made, gone=1, moved={}), lands) == ()


def test_nobody_moves_off_a_node_where_room_is_kept() -> None:
    of = snapshot(
        nodes=[node("n1", gpus=2, cores=4), node("n2", gpus=2)],
        queues=TWO,
        holding=[
            runs("late", "a", "n1/0", preemptible=False, since_s=60),
            runs("early", "a", "n2/0", preemptible=False, since_s=REST_S * 3),
            saved("p", "n2/1"),
        ],
        pending=[
            job("waits", "a", pods(gpus=2), submitted_at=AT - 7200),
            job("comes", "a", pods(cores=8), submitted_at=AT - 60),
        ],
    )
    assert nodes_of(plan(of, POLICY).landings) == {"comes": {"n2"}, "p": {"n1"}}
    made = plan(of, replace(POLICY, guard_s=3600))
    assert [(keep.workload, keep.starts_at) for keep in made.keeps] == [("waits", None)]
    assert {place.node for place in made.keeps[0].places} == {"n2"}
    assert moved(made) == []


def test_a_place_of_a_flavor_that_is_not_accepted_any_more_is_given_up() -> None:
    of = halves()
    made = plan(of, POLICY)
    kept = after(of, made, gone=0, moved={})
    assert {landing.workload for landing in plan(kept, POLICY).landings} >= {"w"}
    waits = replace(kept.pending[0], pod_sets=(pods(gpus=2, flavors="t4"),))
    changed = replace(kept, pending=(waits,))
    assert "w" not in {landing.workload for landing in plan(changed, POLICY).landings}


def test_work_without_devices_that_blocks_the_cores_moves_before_dearer_work_with_them() -> None:
    of = snapshot(
        nodes=[
            node("n0", gpus=1, cores=8),
            node("n1", gpus=2, cores=8),
            node("n2", gpus=2, cores=4),
            node("n3", cores=8),
        ],
        queues=[queue("a", h100=8, cpu=100)],
        pending=[job("w", "a", pods(cores=6))],
        holding=[
            runs("gang", "a", "n0/0", "n1/0", since_s=1000, of=pods(2)),
            runs("cores", "a", "n1", flavor="cpu", cores=4, since_s=10, of=cpu_pods(cores=4)),
        ],
    )
    made = plan(of, Policy(consolidation_budget_milli_s=10**9))
    assert [preempt.victim for preempt in made.preempts] == ["cores"]
