"""Work that asks for it goes to an earlier of its flavors that is free, once, and hurts nobody."""

from dataclasses import replace
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.cycle import plan, planned
from scheduler.core.laws.invariants import violations
from scheduler.core.laws.moves import moves
from scheduler.core.memory import Memory
from scheduler.core.moving.movers import REST_S
from scheduler.core.plan import Landing, Plan, Preempt
from scheduler.core.policy import Policy
from scheduler.core.reasons import PreemptRule
from scheduler.core.snapshot import (
    BudgetView,
    CapsView,
    HoldingView,
    Isolation,
    NodeView,
    Snapshot,
)
from scheduler.core.units import (
    BudgetId,
    ClusterId,
    FlavorId,
    PlacementId,
    PodSetId,
    ProjectId,
    WorkloadId,
)
from tests.core.bounds.test_windows import window
from tests.core.build import (
    A30,
    AT,
    H100,
    T4,
    Quota,
    cluster,
    job,
    node,
    pods,
    queue,
    runs,
    snapshot,
)
from tests.core.drawn.fleets import shuffled
from tests.core.moving.fragments import after
from tests.core.reference.moves import lost_milli_s
from tests.core.sweep.test_sweep import agree

HOUR = 3600 * 1000
POLICY = Policy(consolidation_budget_milli_s=HOUR)
BOTH = [queue("a", h100=4, a30=4, t4=4), queue("b", h100=4, a30=4, t4=4)]
T4_LAST = FlavorId("h100"), FlavorId("t4")
HARDWARE = [node("n1", gpus=2), node("n2", gpus=2, model=A30), node("n3", gpus=2, model=T4)]


def on(
    name: str,
    *where: str,
    flavor: str = "a30",
    flavors: str = "h100 a30 t4",
    project: str = "a",
    ago_s: int = 60,
    asks: bool = True,
    priority: int = 0,
) -> HoldingView:
    """A gang of pods of a device each, which it holds of one flavor, and saved its work so long
    ago."""
    held = runs(
        name, project, *where, flavor=flavor, since_s=7200, priority=priority,
        of=pods(len(where), flavors=flavors),
    )  # fmt: skip
    return replace(held, checkpointed_at=AT - ago_s, move_to_better=asks)


def fleet(*holding: HoldingView, **fields: object) -> Snapshot:
    of = snapshot(nodes=HARDWARE, queues=BOTH, holding=holding)
    return replace(of, **fields)  # type: ignore[arg-type]  # fields of a snapshot


def up(of: Snapshot, policy: Policy = POLICY) -> dict[str, str]:
    """The flavor that each who moves up gets; the plan is lawful, and the same by hand."""
    made = agree(of, policy)
    assert violations(of, made) == ()
    landing = {each.workload: each for each in made.landings}
    movers = [p for p in made.preempts if p.rule is PreemptRule.BETTER]
    assert all(p.victim == p.preemptor for p in movers)
    return {p.victim: landing[p.victim].places[0].flavor for p in movers}


def test_it_moves_to_the_best_of_its_flavors_that_is_free() -> None:
    assert up(fleet(on("e", "n3/0", flavor="t4"))) == {"e": "h100"}
    full = on("f", "n1/0", "n1/1", flavor="h100")
    assert up(fleet(on("e", "n3/0", flavor="t4"), full)) == {"e": "a30"}
    assert up(fleet(on("e", "n1/0", flavor="h100"))) == {}


def test_its_gang_moves_whole_or_not_at_all() -> None:
    assert up(fleet(on("e", "n2/0", "n2/1"))) == {"e": "h100"}
    half = on("f", "n1/0", flavor="h100")
    assert up(fleet(on("e", "n2/0", "n2/1"), half)) == {}


def test_no_pod_set_goes_to_a_later_flavor_for_another_that_goes_to_an_earlier() -> None:
    lead, work = on("e", "n2/0", flavors="h100 a30"), on("e", "n1/0", flavor="h100")
    apart = replace(work.placements[0], id=PlacementId("e-1"), pod_set=PodSetId("e.work"), rank=1)
    second = replace(work.pod_sets[0], id=PodSetId("e.work"), flavors=T4_LAST)
    both = replace(lead, placements=(*lead.placements, apart), pod_sets=(*lead.pod_sets, second))
    assert up(fleet(both)) == {}, "one H100 is free, and T4s"
    roomy = (node("n1", gpus=3), *HARDWARE[1:])
    assert up(replace(fleet(both), clusters=(cluster("c1", roomy),))) == {"e": "h100"}


def test_the_draft_is_left_as_it_was() -> None:
    of = fleet(on("e", "n2/0"))
    made, after_it = planned(of, POLICY)
    assert made.landings
    book = after_it.admission.draft.book
    assert book.available(project=ProjectId("a"), flavor=FlavorId("h100")) == 4000


def test_nobody_moves_who_has_not_asked_or_may_not() -> None:
    e = on("e", "n2/0")
    assert up(fleet(replace(e, move_to_better=False))) == {}
    assert up(fleet(replace(e, preemptible=False))) == {}
    assert up(fleet(replace(e, started_at=None))) == {}
    assert up(fleet(e), replace(POLICY, preemption=False)) == {}
    assert up(fleet(e), replace(POLICY, consolidation_budget_milli_s=0)) == {}
    held = tuple(replace(each, held_by=("tenant a",)) for each in BOTH)
    assert up(fleet(e, queues=held)) == {}


def test_it_has_run_for_its_least_time_and_rests_for_a_day() -> None:
    e = on("e", "n2/0")
    least = tuple(replace(each, min_run_time_s=7201) for each in BOTH)
    assert up(fleet(e, queues=least)) == {}
    assert up(fleet(replace(e, moved_at=AT - REST_S + 1))) == {}
    assert up(fleet(replace(e, moved_at=AT - REST_S))) == {"e": "h100"}


def test_what_it_loses_is_within_the_budget_of_the_plan() -> None:
    two = fleet(on("e", "n2/0", ago_s=1800), on("f", "n3/0", flavor="t4", ago_s=1801))
    assert up(two) == {"e": "h100"}
    assert up(two, Policy(consolidation_budget_milli_s=3601 * 1000)) == {"e": "h100", "f": "h100"}
    assert up(fleet(replace(on("e", "n2/0"), checkpointed_at=None))) == {}


def waited_for(pod_count: int, **asked: str) -> Snapshot:
    """Half of the H100s is held, and project b wants so many pods."""
    held = runs("k", "b", "n1/0", preemptible=False)
    return fleet(on("e", "n2/0"), held, pending=(job("w", "b", pods(pod_count, **asked)),))  # type: ignore[arg-type]  # flavors


def test_nobody_moves_to_what_somebody_waits_for() -> None:
    assert up(waited_for(2)) == {}
    assert up(waited_for(2, flavors="t4share h100")) == {}
    assert up(waited_for(3)) == {"e": "h100"}, "there are two: who waits for three waits in vain"
    elsewhere = fleet(on("e", "n2/0"), pending=(job("w", "b", pods(3, flavors="t4")),))
    assert up(elsewhere) == {"e": "h100"}


def test_a_slice_of_a_model_is_of_its_devices() -> None:
    shared = (*HARDWARE[:2], node("n3", gpus=1, model=T4, shares=Isolation.MEMORY))
    half = pods(flavors="t4share", share=0.5)
    own = (BOTH[0], queue("b", t4share=4))
    full = runs("k", "b", "n1/0", "n1/1", preemptible=False)
    e = on("e", "n2/0", flavors="h100 t4 a30")
    of = snapshot(nodes=shared, queues=own, holding=[e, full])
    assert up(of) == {"e": "t4"}
    reserved = replace(job("w", "b", half), not_before=AT + 60)
    assert up(replace(of, pending=(reserved,))) == {}


def test_who_leaves_and_comes_again_counts_as_waiting() -> None:
    leaves = replace(on("f", "n3/0", flavor="t4"), releasing=True)
    assert up(fleet(on("e", "n2/0"), leaves)) == {}
    cancelled = replace(leaves, pod_sets=())
    assert up(fleet(on("e", "n2/0"), cancelled)) == {"e": "h100"}


def test_it_goes_within_the_quota_beside_what_it_holds() -> None:
    none = (queue("a", h100=0, a30=4), queue("b", h100=4))
    assert up(fleet(on("e", "n2/0"), queues=none)) == {}
    lent = (queue("a", h100=Quota(0, None), a30=4), queue("b", h100=4))
    assert up(fleet(on("e", "n2/0"), queues=lent)) == {"e": "h100"}


def test_it_keeps_off_what_is_reserved() -> None:
    of = fleet(on("e", "n2/0"))
    assert up(replace(of, reservations=(window(2, opens=-60, owner="b"),))) == {}


def test_a_full_cap_is_no_hindrance_for_who_counts_already() -> None:
    capped = (replace(BOTH[0], caps=CapsView(running=1)), BOTH[1])
    assert up(fleet(on("e", "n2/0"), queues=capped)) == {"e": "h100"}


def test_under_a_budget_that_covers_the_rest_of_its_time_alone_it_stays() -> None:
    limited = replace(on("e", "n2/0"), run_time_limit_s=36_000)
    for safe, goes in ((True, {}), (False, {"e": "h100"})):
        covers = BudgetView(BudgetId("b"), "b", 10**12, 0, AT + 10**6, ProjectId("a"), safe=safe)
        assert up(fleet(limited, budgets=(covers,))) == goes


def test_higher_priority_goes_first() -> None:
    one = (node("n1", gpus=1), *HARDWARE[1:])
    of = snapshot(nodes=one, queues=BOTH, holding=[on("e", "n2/0"), on("f", "n2/1", priority=5)])
    assert up(of) == {"f": "h100"}


def test_what_grows_comes_first() -> None:
    """Growth and moves would go by the same free devices."""
    gang = on("g", "n1/0", flavor="h100", flavors="h100", asks=False)
    short = replace(gang, pod_sets=(replace(gang.pod_sets[0], count=2),))
    of = fleet(on("e", "n2/0"), short)
    assert [grow.workload for grow in agree(of, POLICY).grows] == ["g"]
    assert up(of) == {}


def test_its_place_is_kept_until_it_is_there() -> None:
    of = fleet(on("e", "n2/0"))
    made = agree(of, POLICY)
    [landing] = made.landings
    late = job("w", "b", pods(2), submitted_at=AT)
    leaving = after(replace(of, pending=(late,)), made, gone=0, moved={})
    second = agree(leaving, POLICY)
    assert (second.admits, second.landings) == ((), made.landings)
    gone = after(leaving, second, gone=1, moved={})
    third = agree(gone, POLICY)
    assert [(a.workload, a.places) for a in third.admits] == [("e", landing.places)]


# --- any fleet ---

SEEDS = st.integers(0, 2**32)
LISTS = ("h100 a30 t4", "h100 t4", "a30 h100", "t4 a30 h100", "t4")
MODELS = {"h100": H100, "a30": A30, "t4": T4}


def ladders(seed: int) -> Snapshot:
    """Some devices of three models, and work of two projects on any of those that it accepts."""
    pick = Random(seed)
    nodes: list[NodeView] = []
    holding: list[HoldingView] = []
    for flavor, model in MODELS.items():
        gpus = pick.randint(0, 4)
        nodes.append(node(f"n-{flavor}", gpus, model))
        free = [f"n-{flavor}/{i}" for i in range(gpus)]
        while free and pick.random() < 0.7:
            size = pick.randint(1, min(2, len(free)))
            where, free = free[:size], free[size:]
            flavors = pick.choice([each for each in LISTS if flavor in each.split()])
            held = on(
                f"r{len(holding)}", *where, flavor=flavor, flavors=flavors,
                project=pick.choice("ab"), ago_s=pick.randrange(4000),
                asks=pick.random() < 0.7, priority=pick.choice([0, 0, 5]),
            )  # fmt: skip
            moved_at = pick.choice([None, None, AT - 60, AT - REST_S])
            preemptible = pick.random() < 0.9
            least = pick.choice([size, size, size, size, size + 1])
            pod_set = replace(held.pod_sets[0], count=least)
            holding.append(
                replace(held, moved_at=moved_at, preemptible=preemptible, pod_sets=(pod_set,))
            )
    pending = [
        job(
            f"w{i}", pick.choice("ab"), pods(pick.randint(1, 3), flavors=pick.choice(LISTS)),
            priority=pick.choice([0, 5]),
        )
        for i in range(pick.choice([0, 0, 0, 1, 2]))
    ]  # fmt: skip
    quotas = [Quota(pick.choice([0, 4, 9]), pick.choice([0, None])) for _ in range(6)]
    queues = [
        queue(project, h100=mine[0], a30=mine[1], t4=mine[2])
        for project, mine in (("a", quotas[:3]), ("b", quotas[3:]))
    ]
    return snapshot(nodes=nodes, queues=queues, holding=holding, pending=pending)


BUDGETS = st.sampled_from([10**6, 4 * 10**6, 10**9])


@settings(deadline=None, max_examples=300)
@given(seed=SEEDS, budget=BUDGETS)
def test_who_asks_for_it_changes_nothing_else(seed: int, budget: int) -> None:
    """The plan is that of a fleet in which nobody asks, and moves beside it; by hand as swept, in
    any order, with a memory as without."""
    of, policy = ladders(seed), Policy(consolidation_budget_milli_s=budget)
    made = agree(of, policy)
    assert violations(of, made) == ()
    assert plan(shuffled(of, seed), policy) == made
    nobody = replace(of, holding=tuple(replace(h, move_to_better=False) for h in of.holding))
    memory = Memory()
    before = plan(nobody, policy, memory)
    assert plan(of, policy, memory) == made
    rest = tuple(p for p in made.preempts if p.rule is not PreemptRule.BETTER)
    moving = {p.victim for p in made.preempts if p.rule is PreemptRule.BETTER}
    others = tuple(each for each in made.landings if each.workload not in moving)
    assert replace(made, preempts=rest, landings=others) == before
    assert {h.id for h in of.holding if h.move_to_better} >= moving


@settings(deadline=None, max_examples=200)
@given(seed=SEEDS, budget=BUDGETS, gone=st.sampled_from([0.3, 1]))
def test_each_lands_on_a_better_flavor_and_none_moves_twice(
    seed: int, budget: int, gone: float
) -> None:
    """Plan after plan: nobody else is worse off for it, and all of it comes to an end."""
    of, policy = ladders(seed), Policy(consolidation_budget_milli_s=budget)
    asks = {held.id for held in of.holding if held.move_to_better}
    checkpoints = {held.id: held.checkpointed_at for held in of.holding}
    moved = {held.id: held.moved_at for held in of.holding if held.moved_at is not None}
    came: set[WorkloadId] = set()
    for nth in range(40):
        made = agree(of, policy)
        assert violations(of, made) == ()
        holding = {held.id: held for held in of.holding}
        new = [p.victim for p in made.preempts if p.rule is PreemptRule.BETTER]
        assert not came & set(new)
        came |= set(new)
        movers = [holding[id] for id in new]
        assert sum(lost_milli_s(held, of.at) for held in movers) <= budget
        leaving = any(held.releasing for held in of.holding)
        if not (made.admits or made.preempts or leaving):
            return
        of = after(of, made, gone=gone, moved=moved, seed=seed + nth)
        of = replace(
            of,
            holding=tuple(
                replace(h, move_to_better=h.id in asks, checkpointed_at=checkpoints.get(h.id))
                for h in of.holding
            ),
        )
    raise AssertionError("still moving after 40 plans")


def test_much_of_it_moves() -> None:
    """Else the properties say nothing."""
    policy = Policy(consolidation_budget_milli_s=10**9)
    rules = [p.rule for seed in range(200) for p in plan(ladders(seed), policy).preempts]
    assert rules.count(PreemptRule.BETTER) >= 30


class TestTheLaw:
    """Each sentence of it can be broken."""

    OF = fleet(on("e", "n2/0"))

    def broken(self, of: Snapshot, made: Plan, told: str) -> bool:
        return any(told in each for each in moves(of, made))

    def test_of_who_may_not(self) -> None:
        made = plan(self.OF, POLICY)
        [held] = self.OF.holding
        for changed in ({"move_to_better": False}, {"preemptible": False}, {"started_at": None}):
            of = replace(self.OF, holding=(replace(held, **changed),))
            assert self.broken(of, made, "e moves up, and may not be moved"), changed
        least = tuple(replace(each, min_run_time_s=7201) for each in BOTH)
        told = "e moves up before it has run for its least time"
        assert self.broken(replace(self.OF, queues=least), made, told)

    def test_of_where_to(self) -> None:
        made = plan(self.OF, POLICY)
        none = replace(made, landings=())
        assert self.broken(self.OF, none, "e moves up, and has no new place")
        [landing] = made.landings
        for flavor in ("a30", "t4"):
            places = tuple(replace(place, flavor=FlavorId(flavor)) for place in landing.places)
            down = replace(made, landings=(replace(landing, places=places),))
            assert self.broken(self.OF, down, "e moves, and not up")
        twice = replace(made, landings=(replace(landing, places=landing.places * 2),))
        assert self.broken(self.OF, twice, "e moves up with other pods than it has")

    def test_of_who_waits(self) -> None:
        of = waited_for(2)
        landing = Landing(
            WorkloadId("e"), ClusterId("c1"), plan(self.OF, POLICY).landings[0].places, AT
        )
        moves_up = Preempt(WorkloadId("e"), WorkloadId("e"), PreemptRule.BETTER)
        made = replace(plan(of, POLICY), preempts=(moves_up,), landings=(landing,))
        assert self.broken(of, made, "e moves up to what somebody waits for")
