"""Plan after plan on fleets in pieces: what moves lands, and nothing goes round."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from scheduler.core.held.victims import Held, Victim, loss_milli_s
from scheduler.core.laws.invariants import violations
from scheduler.core.moving.movers import REST_S
from scheduler.core.policy import Policy
from scheduler.core.quota.equivalents import Parts
from scheduler.core.reasons import PreemptRule
from scheduler.core.snapshot import HoldingView
from tests.core.build import FLAVORS
from tests.core.drawn.fleets import shuffled
from tests.core.moving.fragments import after, fragments, taken_from_others
from tests.core.sweep.test_sweep import agree

SEEDS = st.integers(0, 2**32)
BUDGETS = st.sampled_from([10**6, 10**7, 10**9])
PARTS = Parts(flavors=FLAVORS, queues=())


def lost_milli_s(holding: HoldingView, at: int) -> int:
    held = Held(holding, parts=PARTS)
    held.settle(at)
    return loss_milli_s([Victim.of(held, PreemptRule.CONSOLIDATE)])


@settings(max_examples=150, deadline=None)
@given(seed=SEEDS, budget=BUDGETS, gone=st.sampled_from([0.3, 0.7, 1]))
@example(seed=143133, budget=10**6, gone=0.3)  # its project's own reservation stands in the way
def test_what_moves_lands_where_it_was_said_and_has_nobody_evicted_before(
    seed: int, budget: int, gone: float
) -> None:
    """By hand as swept; each plan is lawful, also once all have landed, and within its budget."""
    of, policy = fragments(seed), Policy(consolidation_budget_milli_s=budget)
    moved = {held.id: held.moved_at for held in of.holding if held.moved_at is not None}
    flying: dict[str, tuple[object, ...]] = {}
    for nth in range(30):
        made = agree(of, policy)
        assert violations(of, made) == ()
        new = [each for each in made.landings if each.workload not in flying]
        assert not taken_from_others(of, new)
        for admit in made.admits:
            assert flying.pop(admit.workload, admit.places) == admit.places
        for preempt in made.preempts:
            assert preempt.preemptor not in flying
        flying |= {each.workload: each.places for each in made.landings}
        assert flying.keys() == {each.workload for each in made.landings}
        holding = {held.id: held for held in of.holding}
        movers = [
            holding[preempt.victim]
            for preempt in made.preempts
            if preempt.rule is PreemptRule.CONSOLIDATE
        ]
        assert sum(lost_milli_s(held, of.at) for held in movers) <= budget
        assert all(h.moved_at is None or of.at - h.moved_at >= REST_S for h in movers)
        leaving = any(held.releasing for held in of.holding)
        if not (made.admits or made.preempts or leaving):
            assert not flying
            return
        of = after(of, made, gone=gone, moved=moved, seed=seed + nth)
    raise AssertionError("still moving after 30 plans")


@settings(max_examples=100, deadline=None)
@given(seed=SEEDS, budget=BUDGETS)
def test_moves_do_not_depend_on_the_order_of_the_input(seed: int, budget: int) -> None:
    of, policy = fragments(seed), Policy(consolidation_budget_milli_s=budget)
    assert agree(shuffled(of, seed), policy) == agree(of, policy)


def test_much_of_it_moves() -> None:
    """Else the properties say nothing."""
    policy = Policy(consolidation_budget_milli_s=10**9)
    rules = [p.rule for seed in range(200) for p in agree(fragments(seed), policy).preempts]
    assert rules.count(PreemptRule.CONSOLIDATE) >= 20
