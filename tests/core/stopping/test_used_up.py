"""A budget in hard mode stops what holds devices under it once it is used up, and nothing else."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.cycle import plan
from scheduler.core.laws.invariants import violations
from scheduler.core.laws.used_up import used_up as law
from scheduler.core.memory import Memory
from scheduler.core.plan import Plan, Preempt
from scheduler.core.policy import Policy
from scheduler.core.reasons import PreemptRule, ReasonCode, describe
from scheduler.core.simulating.estimate import Basis, forecast
from scheduler.core.snapshot import BudgetView, HoldingView, Snapshot
from scheduler.core.stopping import used_up
from scheduler.core.stopping.enforce import MOST_VICTIMS
from scheduler.core.units import NO_WORKLOAD, BudgetId, WorkloadId
from tests.core.bounds.test_budgets import HOUR, budget, fleet
from tests.core.build import Quota, cohort, decide, job, pods, queue, runs, snapshot
from tests.core.drawn.fleets import shuffled, snapshots
from tests.core.scenarios.scenario import gpus, nodes, singles
from tests.core.sweep.test_sweep import agree


def hard(
    hours: float, used: float = 0, *, tenant: str = "", ends_s: int = 24 * HOUR
) -> BudgetView:
    made = budget(hours, used, tenant=tenant, safe=False, ends_s=ends_s)
    return replace(made, hard=True)


def stopped(of: Snapshot) -> list[str]:
    """In the order in which they go."""
    made = plan(of, Policy())
    assert violations(of, made) == ()
    assert made.shrinks == ()
    return [p.victim for p in made.preempts if p.rule is PreemptRule.BUDGET]


class TestWhen:
    @pytest.mark.parametrize(("used", "gone"), [(99.999, []), (100, ["r"]), (120, ["r"])])
    def test_once_all_of_it_is_used(self, used: float, gone: list[str]) -> None:
        of = fleet(budgets=(hard(100, used),), holding=(runs("r", "a", "n1/0"),))
        assert stopped(of) == gone

    def test_one_that_is_over_stops_nobody(self) -> None:
        of = fleet(budgets=(hard(0, 9, ends_s=0),), holding=(runs("r", "a", "n1/0"),))
        assert stopped(of) == []

    def test_others_stop_nobody(self) -> None:
        for others in (budget(0, safe=False), budget(0)):
            assert stopped(fleet(budgets=(others,), holding=(runs("r", "a", "n1/0"),))) == []

    def test_any_of_those_over_it_does(self) -> None:
        held = runs("r", "a", "n1/0"), runs("s", "b", "n1/1")
        over = hard(9), hard(9, 9, tenant="top"), budget(1, safe=False, tenant="t")
        assert stopped(fleet(budgets=over, holding=held)) == ["r", "s"]
        over = hard(9, 9), hard(9, tenant="top"), budget(1, safe=False, tenant="t")
        assert stopped(fleet(budgets=over, holding=held)) == ["r"]

    def test_who_is_on_the_way_back_is_not_told_again(self) -> None:
        of = fleet(budgets=(hard(0),), holding=(runs("r", "a", "n1/0", releasing=True),))
        assert stopped(of) == []

    def test_nobody_is_while_admission_is_stopped(self) -> None:
        of = fleet(budgets=(hard(0),), holding=(runs("r", "a", "n1/0"),))
        assert plan(of, Policy(admission=False)).preempts == ()


class TestWho:
    def test_what_may_not_be_preempted_goes_too(self) -> None:
        of = fleet(budgets=(hard(0),), holding=(runs("r", "a", "n1/0", preemptible=False),))
        assert stopped(of) == ["r"]

    def test_the_least_run_time_does_not_protect_from_it(self) -> None:
        of = fleet(budgets=(hard(0),), holding=(runs("r", "a", "n1/0"),))
        queues = tuple(replace(each, min_run_time_s=9999) for each in of.queues)
        assert stopped(replace(of, queues=queues)) == ["r"]

    def test_what_was_admitted_and_has_not_begun_goes_too(self) -> None:
        of = fleet(budgets=(hard(0),), holding=(runs("r", "a", "n1/0", since_s=None),))
        assert stopped(of) == ["r"]

    def test_what_holds_no_devices_goes_on(self) -> None:
        cores = runs("cores", "a", "n1", flavor="cpu")
        part = runs("part", "a", "n2/0", flavor="1g", span=(0, 1))
        assert stopped(fleet(budgets=(hard(0),), holding=(cores, part))) == ["part"]

    def test_an_elastic_gang_goes_as_a_whole(self) -> None:
        gang = runs("e", "a", *gpus("n1", 0, 4), of=pods(4, least=2))
        assert stopped(fleet(budgets=(hard(0),), holding=(gang,))) == ["e"]

    def test_others_go_on(self) -> None:
        held = runs("r", "a", "n1/0"), runs("s", "b", "n1/1")
        assert stopped(fleet(budgets=(hard(0),), holding=held)) == ["r"]

    def test_least_harm_first_and_of_very_many_the_rest_with_the_next_plan(self) -> None:
        held = singles("x1 x2 x3", "a", gpus("n1", 0, 3))
        held[2] = replace(held[2], priority=-1)
        assert stopped(fleet(budgets=(hard(0),), holding=tuple(held))) == ["x3", "x1", "x2"]
        many = [runs(f"x{i}", "a", f"n{i // 8 + 1}/{i % 8}") for i in range(MOST_VICTIMS + 4)]
        of = snapshot(nodes=nodes(*[8] * 64), queues=[queue("a", h100=999)], holding=many)
        assert len(stopped(replace(of, budgets=(hard(0),)))) == MOST_VICTIMS


class TestAfter:
    def of(self, *budgets: BudgetView) -> Snapshot:
        """All of a's devices are held by a, which asks for more, as does b."""
        of = snapshot(
            nodes=nodes(2),
            queues=[queue("a", tenant="t", h100=2), queue("b", tenant="t", h100=Quota(0, None))],
            cohorts=[cohort("t")],
            holding=singles("x1 x2", "a", gpus("n1", 0, 2)),
            pending=[job("w", "a", priority=9), job("w2", "b")],
        )
        return replace(of, budgets=budgets)

    def test_nothing_starts_in_its_stead_and_others_wait_for_what_comes_back(self) -> None:
        made = decide(self.of(hard(5, 5)))
        assert made.victims() == [("x1", "", "budget"), ("x2", "", "budget")]
        assert made.reason("w") is ReasonCode.BUDGET_USED
        assert made.reason("w2") is ReasonCode.WAITING_FOR_PREEMPTION
        assert describe(made.hold("w").reason) == (
            "The budget of project a is used up: 5 of 5 GPU-hours. Nothing new starts on GPUs"
            " before it ends on 13 Jan 1970 (UTC), or is raised; what ran under it was stopped."
        )
        assert made.numbers("w")["mode"] == "hard"

    def test_plan_after_plan_it_stays_so_until_the_period_ends(self) -> None:
        of = self.of(hard(5, 5))
        of = replace(of, pending=of.pending[:1])
        asked = {held.id: job(held.id, "a") for held in of.holding}
        assert stopped(of) == ["x1", "x2"]
        gone = replace(of, holding=(), pending=(*of.pending, *asked.values()))
        for _ in range(3):
            made = decide(gone)
            assert (made.started(), made.victims()) == ([], [])
            gone = replace(gone, at=gone.at + HOUR)
        assert {made.reason(id) for id in (*asked, "w")} == {ReasonCode.BUDGET_USED}
        next_period = replace(gone, budgets=(hard(5, ends_s=800 * HOUR),))
        assert decide(next_period).started() == ["w", "x1"]
        assert decide(replace(gone, budgets=(hard(6, 5),))).started() == ["w", "x1"]

    def test_a_forecast_does_not_have_them_start_again(self) -> None:
        of = self.of(hard(5, 5))
        found = forecast(snapshot=of, policy=Policy(), run_times={}, passes=2, seed=1)
        told = {each.workload: (each.p50_s, each.basis) for each in found}
        assert told == {"w": (None, Basis.NONE), "w2": (0, Basis.PLAN)}


def hardened(of: Snapshot, pick: Random) -> Snapshot:
    """With budgets in hard mode over some, of which some are used up."""
    owners = [*((q.project, None) for q in of.queues), *((None, c.id) for c in of.cohorts)]
    made = (
        replace(
            hard(pick.choice([0, 1]), pick.choice([0, 1])),
            id=BudgetId(f"hard-{nth}"),
            project=project,
            cohort=cohort,
        )
        for nth, (project, cohort) in enumerate(pick.choices(owners, k=2))
    )
    return replace(of, budgets=(*of.budgets, *made))


@settings(deadline=None)
@given(snapshots(12), st.integers(0, 2**32))
def test_every_plan_stops_all_that_and_nothing_else(of: Snapshot, seed: int) -> None:
    of = hardened(of, Random(seed))
    made = agree(of, Policy())
    assert violations(of, made) == ()
    assert plan(shuffled(of, seed), Policy()) == made
    assert plan(of, Policy(), Memory()) == made


@settings(deadline=None)
@given(snapshots(4), st.integers(0, 2**32))
def test_a_plan_later_stops_nobody_else(of: Snapshot, seed: int) -> None:
    of = hardened(of, Random(seed))
    gone = {p.victim for p in plan(of, Policy()).preempts}
    left = tuple(held for held in of.holding if held.id not in gone and not held.releasing)
    assert stopped(replace(of, holding=left, pending=())) == []


class TestTheLaw:
    HELD: tuple[HoldingView, ...] = (runs("r", "a", "n1/0"), runs("s", "b", "n1/1"))
    OF = fleet(budgets=(hard(0),), holding=HELD)

    def told(self, *gone: str) -> list[str]:
        preempts = (Preempt(WorkloadId(id), NO_WORKLOAD, PreemptRule.BUDGET) for id in gone)
        return list(law(self.OF, Plan(preempts=tuple(preempts))))

    def test_it_names_who_need_not_have_gone_and_who_should_have(self) -> None:
        assert self.told("r") == []
        assert self.told("r", "s") == [
            "s is stopped for a budget, and holds no devices under one that stops it"
        ]
        assert self.told() == [
            "r holds devices under a budget that is used up, and is not stopped"
        ]

    def test_a_preview_asks_of_one_budget_alone(self) -> None:
        alone = replace(self.OF, budgets=(hard(0, tenant="t"),))
        assert [victim.held.holding.id for victim in used_up.found(alone)] == ["r", "s"]
