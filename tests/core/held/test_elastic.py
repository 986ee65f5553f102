"""What runs short grows into what nobody waits for, and gives it back first."""

from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.cycle import plan
from scheduler.core.held.elastic import asks, gives_back, staying, surplus
from scheduler.core.laws.elastic import elastic
from scheduler.core.laws.invariants import violations
from scheduler.core.plan import Grow, Plan, Shrink
from scheduler.core.policy import Policy
from scheduler.core.reasons import PreemptRule
from scheduler.core.simulating.carried import resized
from scheduler.core.snapshot import CapsView, HeldView, HoldingView, ReservationView, Snapshot
from scheduler.core.units import FlavorId, PlacementId, ProjectId, WorkloadId
from tests.core.build import (
    AT,
    Quota,
    cluster,
    decide,
    job,
    node,
    pods,
    queue,
    runs,
    snapshot,
)
from tests.core.drawn.fleets import fleet, shuffled
from tests.core.held.elastic import grows, shrinks
from tests.core.rounds import carried_out
from tests.core.scenarios.scenario import FREE, gpus, nodes
from tests.core.sweep.test_sweep import agree


def gang(project: str = "a", *where: str, least: int = 1, most: int = 4) -> HoldingView:
    return runs("e", project, *(where or ("n1/0",)), of=pods(most, least=least), since_s=100)


def ids(placements: tuple[HeldView, ...]) -> list[str]:
    return [placement.id for placement in placements]


class TestWhatMayGo:
    def test_the_highest_ranks_beyond_the_least_go_first(self) -> None:
        assert ids(surplus(gang("a", *gpus("n1", 0, 4), least=2))) == ["e-3", "e-2"]

    @pytest.mark.parametrize("of", [gang("a", *gpus("n1", 0, 4), least=4), runs("e", "a", "n1/0")])
    def test_nothing_of_what_is_no_larger_than_its_least(self, of: HoldingView) -> None:
        assert surplus(of) == ()

    def test_what_is_on_its_way_back_is_neither_here_nor_to_go(self) -> None:
        of = gang("a", *gpus("n1", 0, 4), least=2)
        first, second, third, last = of.placements
        of = replace(of, placements=(first, second, third, replace(last, leaving=True)))
        assert ids(staying(of)) == ["e-0", "e-1", "e-2"]
        assert ids(surplus(of)) == ["e-2"]
        assert gives_back(of)
        assert staying(replace(of, releasing=True)) == ()

    def test_it_asks_again_for_what_it_asked_for(self) -> None:
        of = gang()
        assert (asks(of).id, asks(of).pod_sets) == (of.id, of.pod_sets)


class TestGrowth:
    ROOM = snapshot(nodes=nodes(4), queues=[queue("a", h100=8)], holding=[gang()])

    def with_gang(self, held: HoldingView) -> Plan:
        return plan(replace(self.ROOM, holding=(held,)), Policy())

    def test_it_is_no_more_than_the_plan_may_start(self) -> None:
        assert grows(plan(self.ROOM, Policy(max_admits=2))) == {"e": "n1 n1"}
        assert grows(plan(self.ROOM, Policy(max_admits=0))) == {}

    @pytest.mark.parametrize(
        "held",
        [
            replace(gang(), started_at=None),
            replace(gang(), releasing=True),
            replace(gang(), pod_sets=()),
            runs("e", "a", "n1/0", of=pods(1)),
            runs("e", "a", "n1/0", of=pods(4, least=1), in_cluster="away"),
            runs("e", "a", "n1/0", flavor="a30", of=pods(4, least=1)),
            runs("e", "nobody", "n1/0", of=pods(4, least=1)),
        ],
        ids=["not begun", "leaving", "asks nothing", "whole", "no such cluster", "other flavor",
             "no such project"],
    )  # fmt: skip
    def test_none_of_what_is(self, held: HoldingView) -> None:
        assert self.with_gang(held).grows == ()

    def test_none_while_a_pod_of_it_leaves(self) -> None:
        of = gang("a", "n1/0", "n1/1")
        first, second = of.placements
        of = replace(of, placements=(first, replace(second, leaving=True)))
        assert self.with_gang(of).grows == ()

    def test_its_new_pods_are_of_the_flavor_that_the_others_have(self) -> None:
        held = runs("e", "a", "n2/0", flavor="a30", of=pods(3, least=1, flavors="h100 a30"))
        of = replace(
            self.ROOM,
            clusters=(cluster("c1", [node("n1", gpus=4), node("n2", 2, model="NVIDIA-A30")]),),
            queues=(queue("a", h100=8, a30=8),),
            holding=(held,),
        )
        assert grows(plan(of, Policy())) == {"e": "n2"}

    def test_the_cap_of_its_user_holds(self) -> None:
        capped = replace(queue("a", h100=8), caps=CapsView(user_gpus_milli=3000))
        made = plan(replace(self.ROOM, queues=(capped,)), Policy())
        assert grows(made) == {"e": "n1 n1"}

    def test_what_is_reserved_stays_free(self) -> None:
        kept = ReservationView(ProjectId("b"), FlavorId("h100"), 2000, AT + 60, AT + 600)
        queues = queue("a", h100=8), queue("b", h100=2)
        of = replace(self.ROOM, queues=queues, reservations=(kept,))
        assert grows(plan(of, Policy())) == {"e": "n1"}
        ends = replace(gang(), run_time_limit_s=150)  # of which 100 have passed
        assert grows(plan(replace(of, holding=(ends,)), Policy())) == {"e": "n1 n1 n1"}

    def test_it_leaves_the_quota_that_is_promised(self) -> None:
        """Three are left to its project now, and one once that has started for which it waits."""
        of = snapshot(
            nodes=[node("n1", gpus=4), node("n2", gpus=8)],
            queues=[queue("a", h100=6)],
            holding=[replace(gang("a", "n2/0"), priority=5), runs("r", "a", "n1/0", "n1/1")],
            pending=[job("w", "a", pods(4), priority=1)],
        )
        made = decide(of)
        assert [victim for victim, *_ in made.victims()] == ["r"]
        assert grows(made.plan) == {"e": "n2"}

    def test_beyond_nominal_it_leaves_what_an_owner_waits_for(self) -> None:
        """The owner needs two together: it would take back what grew as soon as it could."""
        of = snapshot(
            nodes=[node("n1", gpus=2), node("n2", gpus=1)],
            queues=[queue("a", h100=3), replace(queue("b", h100=FREE), min_run_time_s=200)],
            holding=[gang("b")],
            pending=[job("w", "a", pods(gpus=2))],
        )
        assert decide(of).plan.grows == ()
        assert grows(decide(replace(of, pending=())).plan) == {"e": "n1 n2"}

    def test_what_may_not_be_preempted_grows_within_what_is_its_own(self) -> None:
        of = snapshot(
            nodes=[node("n1", gpus=4)],
            queues=[queue("a", h100=2), queue("b", h100=Quota(2, None))],
            holding=[gang("b")],
        )
        assert grows(decide(of).plan) == {"e": "n1 n1 n1"}
        firm = replace(of, holding=(replace(gang("b"), preemptible=False),))
        assert grows(decide(firm).plan) == {"e": "n1"}

    def test_it_leaves_what_its_own_project_waits_for_unless_that_comes_later(self) -> None:
        of = snapshot(
            nodes=[node("n1", gpus=2), node("n2", gpus=1)],
            queues=[queue("a", h100=5)],
            holding=[gang()],
            pending=[job("w", "a", pods(gpus=2))],
        )
        assert decide(of).plan.grows == ()
        low = job("w", "a", pods(gpus=2), priority=-1)
        assert grows(decide(replace(of, pending=(low,))).plan) == {"e": "n1 n2"}
        never = job("w", "a", pods(gpus=3))  # more than a node has
        assert grows(decide(replace(of, pending=(never,))).plan) == {"e": "n1 n2"}


class TestShrinking:
    def test_the_work_of_a_pod_alone_counts(self) -> None:
        """Of two borrowers the pod with less to lose goes, though its gang has more."""
        old = gang("b", "n1/0", "n1/1")
        new = runs("f", "b", *gpus("n2", 0, 4), of=pods(4, least=1), since_s=50)
        of = snapshot(
            nodes=nodes(2, 4),
            queues=[queue("a", h100=6), queue("b", h100=FREE)],
            holding=[old, new],
            pending=[job("w", "a")],
        )
        assert shrinks(agree(of)) == [("f-3", "w", "reclaim")]

    def test_of_two_clusters_the_search_leaves_no_trace_in_the_other(self) -> None:
        here = runs("e", "b", *gpus("n1", 0, 2), of=pods(2, least=1), in_cluster="c1")
        there = runs("f", "b", *gpus("n2", 0, 2), of=pods(2, least=1), in_cluster="c2")
        of = snapshot(
            clusters=[
                cluster("c1", [node("n1", gpus=2)]),
                cluster("c2", [node("n2", gpus=2)]),
            ],
            queues=[queue("a", h100=4), queue("b", h100=FREE)],
            holding=[here, there],
            pending=[job("w", "a"), job("x", "a", pods(gpus=2), submitted_at=1)],
        )
        made = agree(of)
        assert violations(of, made) == ()
        assert shrinks(made) == [("e-1", "w", "reclaim")]
        assert [(p.victim, p.preemptor) for p in made.preempts] == [("f", "x")]

    def test_a_gang_that_goes_whole_in_the_end_does_not_shrink_too(self) -> None:
        of = snapshot(
            nodes=nodes(4),
            queues=[queue("a", h100=4), queue("b", h100=FREE)],
            holding=[gang("b", *gpus("n1", 0, 4), least=3)],
            pending=[job("w", "a"), job("x", "a", pods(3), submitted_at=1)],
        )
        made = agree(of)
        assert violations(of, made) == ()
        assert made.shrinks == ()
        assert [(p.victim, p.preemptor) for p in made.preempts] == [("e", "x")]

    def test_while_its_pods_leave_who_waits_for_them_waits_on_and_nobody_else_gives(self) -> None:
        of = snapshot(
            nodes=nodes(4),
            queues=[queue("a", h100=4), queue("b", h100=FREE)],
            holding=[gang("b", *gpus("n1", 0, 4))],
            pending=[job("w", "a")],
        )
        gone = {pod for s in decide(of).plan.shrinks for pod in s.placements}
        held = of.holding[0]
        placements = tuple(replace(p, leaving=p.id in gone) for p in held.placements)
        made = decide(replace(of, holding=(replace(held, placements=placements),)))
        assert made.waits("w")
        assert (made.plan.shrinks, made.plan.preempts, made.plan.grows) == ((), (), ())


def short_fleet(seed: int) -> Snapshot:
    """A fleet in which gangs have lost pods, and some of those are on their way."""
    pick = Random(seed)
    of = fleet(seed, pick.randint(2, 10), pick.randint(0, 6))
    return replace(of, holding=tuple(_thinned(held, pick) for held in of.holding))


def _thinned(held: HoldingView, pick: Random) -> HoldingView:
    left = Counter(p.pod_set for p in held.placements)
    least = {pod_set.id: pod_set.min_count for pod_set in held.pod_sets}
    kept = []
    for placement in held.placements:
        goes = pick.random() < 0.4 and left[placement.pod_set] > least.get(placement.pod_set, 9)
        left[placement.pod_set] -= goes
        if not goes or pick.random() < 0.3:
            kept.append(replace(placement, leaving=goes))
    return replace(held, placements=tuple(kept), preemptible=pick.random() < 0.7)


class TestAStart:
    """Beyond its least it takes what is guaranteed; what it borrows for more comes later."""

    def test_takes_what_its_project_is_guaranteed_and_leaves_others_theirs(self) -> None:
        own = Quota(4, borrow=None)
        of = snapshot(
            nodes=nodes(8),
            queues=[queue("a", h100=own), queue("b", h100=own)],
            pending=[job("e", "a", pods(8, least=1)), job("w", "b", pods(4), submitted_at=1)],
        )
        made = agree(of)
        assert {a.workload: len(a.places) for a in made.admits} == {"e": 4, "w": 4}

    def test_borrows_no_more_than_its_least_before_others_had_their_turn(self) -> None:
        lent = Quota(0, borrow=None)
        of = snapshot(
            nodes=nodes(8),
            queues=[queue("x", h100=lent), queue("y", h100=lent), queue("z", h100=8)],
            pending=[
                job("e", "x", pods(8, least=2)),
                *(job(f"y{i}", "y", submitted_at=1) for i in range(4)),
            ],
        )
        made = agree(of)
        counts = {a.workload: len(a.places) for a in made.admits}
        assert counts == {"e": 2, "y0": 1, "y1": 1, "y2": 1, "y3": 1}
        after, _ = carried_out(of, made)
        assert [(g.workload, len(g.places)) for g in agree(after).grows] == [("e", 2)]

    def test_that_may_not_be_preempted_takes_its_own_at_once(self) -> None:
        of = snapshot(
            nodes=nodes(8),
            queues=[queue("a", h100=Quota(3, borrow=None)), queue("b", h100=5)],
            pending=[replace(job("e", "a", pods(8, least=1)), preemptible=False)],
        )
        assert [len(a.places) for a in agree(of).admits] == [3]


@settings(deadline=None, max_examples=300)
@given(st.integers(0, 2**32))
def test_any_plan_is_lawful_as_by_hand_and_whatever_the_order(seed: int) -> None:
    of = short_fleet(seed)
    made = agree(of, Policy())
    assert violations(of, made) == ()
    assert plan(shuffled(of, seed), Policy()) == made


@settings(deadline=None, max_examples=300)
@given(st.integers(0, 2**32))
def test_growth_takes_nothing_from_what_waits_and_is_not_taken_back(seed: int) -> None:
    """Where nothing has begun, and so nothing grows, the same starts; after it the next plan takes
    none of it. Without budgets, of which work that has not begun may use more."""
    of = replace(short_fleet(seed), budgets=())
    never = Policy(preemption=False)
    begun = plan(of, never)
    waits = replace(of, holding=tuple(replace(h, started_at=None) for h in of.holding))
    without = plan(waits, never)
    assert without.grows == ()
    assert (without.admits, without.holds) == (begun.admits, begun.holds)
    made = plan(of, Policy())
    grown = tuple(resized(h, replace(made, shrinks=())) for h in of.holding)
    new = {
        (h.id, p.id) for h, old in zip(grown, of.holding, strict=True) for p in h.placements
    } - {(old.id, p.id) for old in of.holding for p in old.placements}
    after = plan(replace(of, holding=grown), Policy())
    assert not new & {(s.victim, pod) for s in after.shrinks for pod in s.placements}


class TestTheLaw:
    """Each sentence of it can be broken."""

    OF = snapshot(
        nodes=nodes(4, 4),
        queues=[queue("a", h100=4), queue("b", h100=Quota(0, None))],
        holding=[gang("b", *gpus("n1", 0, 3), least=2, most=4)],
        pending=[job("w", "a", pods(gpus=4)), job("x", "b", submitted_at=1)],
    )

    @pytest.mark.parametrize(
        ("pods_gone", "rule", "told"),
        [
            (["e-2", "e-1"], PreemptRule.RECLAIM, "e keeps 1 pods of e.main"),
            (["f-0"], PreemptRule.RECLAIM, "e gives up pods that it does not have"),
            (["e-2", "e-2"], PreemptRule.RECLAIM, "pod e-2 of e goes 2 times"),
            (["e-2"], PreemptRule.PRIORITY, "e shrinks by priority and is not of lower priority"),
        ],
    )
    def test_of_shrinking(self, pods_gone: list[str], rule: PreemptRule, told: str) -> None:
        gone = tuple(PlacementId(pod) for pod in pods_gone)
        made = Plan(shrinks=(Shrink(WorkloadId("e"), gone, WorkloadId("w"), rule),))
        waits = decide(self.waiting()).plan.holds
        found = list(elastic(self.waiting(), replace(made, holds=waits)))
        assert any(told in each for each in found), found

    def test_it_shrinks_for_who_waits_alone(self) -> None:
        shrink = Shrink(
            WorkloadId("e"), (PlacementId("e-2"),), WorkloadId("nobody"), PreemptRule.RECLAIM
        )
        assert list(elastic(self.OF, Plan(shrinks=(shrink,)))) == [
            "e shrinks for nobody, which does not wait"
        ]

    def waiting(self) -> Snapshot:
        full = runs("r", "b", *gpus("n2", 0, 4), since_s=100)
        return replace(self.OF, holding=(*self.OF.holding, full))

    @pytest.mark.parametrize(
        ("changed", "told"),
        [
            ({"rank": 1}, "ranks of what e gets do not count from 0"),
            ({"node": "n9"}, "e grows outside of cluster c1"),
            ({"cpu_milli": 7}, "a new pod of e is not like the others"),
        ],
    )
    def test_of_growth(self, changed: dict[str, object], told: str) -> None:
        made = plan(replace(self.OF, pending=()), Policy())
        [grow] = made.grows
        place = replace(grow.places[0], **changed)  # type: ignore[arg-type]  # one field of it
        broken = Grow(grow.workload, (place, *grow.places[1:]))
        found = list(elastic(self.OF, Plan(grows=(broken,))))
        assert any(told in each for each in found), found

    def test_it_grows_to_what_it_asks_for_at_most(self) -> None:
        [grow] = plan(replace(self.OF, pending=()), Policy()).grows
        twice = tuple(replace(grow.places[0], rank=n) for n in range(2))
        found = list(elastic(self.OF, Plan(grows=(Grow(grow.workload, twice),))))
        assert found == ["e grows to 5 pods of e.main"]
