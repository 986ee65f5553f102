"""Budgets of devices' time: used up, in safe mode, and over a whole tenant."""

from dataclasses import replace

import pytest
from hypothesis import given, settings

from scheduler.core.cycle import plan
from scheduler.core.explaining.change import Change
from scheduler.core.explaining.change import describe as in_words
from scheduler.core.explaining.checks import CheckCode
from scheduler.core.explaining.explain import Explanation, explain
from scheduler.core.faults import faults
from scheduler.core.laws.invariants import violations
from scheduler.core.plan import Landing
from scheduler.core.policy import Policy
from scheduler.core.reasons import FaultKind, ReasonCode, describe
from scheduler.core.simulating.estimate import Basis, forecast
from scheduler.core.snapshot import BudgetView, HoldingView, PendingView, Snapshot
from scheduler.core.units import BudgetId, ClusterId, CohortId, ProjectId, WorkloadId
from tests.core.build import (
    AT,
    Quota,
    cohort,
    cpu_pods,
    decide,
    job,
    node,
    pods,
    queue,
    runs,
    snapshot,
)
from tests.core.drawn.fleets import snapshots

HOUR = 3600


def budget(
    hours: float, used: float = 0, *, tenant: str = "", safe: bool = True, ends_s: int = 24 * HOUR
) -> BudgetView:
    """Of project a, or of a tenant, in device-hours."""
    return BudgetView(
        BudgetId(f"of-{tenant or 'a'}"),
        tenant or "project a",
        limit_milli_s=round(hours * 1000 * HOUR),
        used_milli_s=round(used * 1000 * HOUR),
        ends_at=AT + ends_s,
        project=None if tenant else ProjectId("a"),
        cohort=CohortId(tenant) if tenant else None,
        safe=safe,
    )


def fleet(
    *pending: PendingView, budgets: tuple[BudgetView, ...], holding: tuple[HoldingView, ...] = ()
) -> Snapshot:
    """Sixteen H100s, half of them to be cut, all a's, of which b borrows; both are of the tenant
    t, below top."""
    queues = [
        queue("a", tenant="t", h100=16, _1g=56, cpu=64),
        queue("b", tenant="t", h100=Quota(0, None), cpu=64),
    ]
    of = snapshot(
        nodes=[node("n1", gpus=8), node("n2", gpus=8, dynamic=True)],
        queues=queues,
        pending=pending,
        holding=holding,
        cohorts=[cohort("top"), cohort("t", parent="top")],
    )
    return replace(of, budgets=budgets)


def lasts(name: str, hours: float, project: str = "a", count: int = 1) -> PendingView:
    return job(name, project, pods(count), limit_s=round(hours * HOUR))


def asked(of: Snapshot, pending: PendingView) -> Explanation:
    return explain(snapshot=of, policy=Policy(), pending=pending)


class TestUsedUp:
    def test_nothing_new_starts_and_what_runs_goes_on(self) -> None:
        of = fleet(
            job("w", priority=9),
            job("x", "b"),
            budgets=(budget(100, 100, safe=False),),
            holding=(runs("r", "a", "n1/0", priority=-1),),
        )
        made = decide(of)
        assert (made.started(), made.victims()) == (["x"], [])
        assert made.reason("w") is ReasonCode.BUDGET_USED
        assert made.numbers("w") == {
            "budget": "project a", "ends_at": AT + 24 * HOUR, "limit_milli": 100_000,
            "used_milli": 100_000,
        }  # fmt: skip
        assert describe(made.hold("w").reason) == (
            "The budget of project a is used up: 100 of 100 GPU-hours. Nothing new starts on GPUs"
            " before it ends on 13 Jan 1970 (UTC), or is raised; what runs goes on."
        )

    @pytest.mark.parametrize(("used", "started"), [(99.999, ["w"]), (100, []), (120, [])])
    def test_it_is_at_all_of_it(self, used: float, started: list[str]) -> None:
        assert (
            decide(fleet(job("w"), budgets=(budget(100, used, safe=False),))).started() == started
        )

    def test_work_without_devices_starts(self) -> None:
        cores = job("w", "a", cpu_pods())
        assert decide(fleet(cores, budgets=(budget(0),))).started() == ["w"]

    def test_one_that_is_over_keeps_nobody_waiting(self) -> None:
        assert decide(fleet(job("w"), budgets=(budget(0, 9, ends_s=0),))).started() == ["w"]

    def test_that_of_a_tenant_is_over_all_below_it(self) -> None:
        made = decide(fleet(job("w"), job("x", "b"), budgets=(budget(0, tenant="top"),)))
        assert made.started() == []
        assert made.numbers("x")["budget"] == "top"

    def test_the_nearest_is_told_of(self) -> None:
        above = budget(0, tenant="t", safe=False), budget(0, tenant="top", safe=False)
        own = budget(0, safe=False)
        assert decide(fleet(job("w"), budgets=above)).numbers("w")["budget"] == "t"
        assert decide(fleet(job("w"), budgets=(*above, own))).numbers("w")["budget"] == "project a"

    def test_a_gang_that_runs_does_not_grow(self) -> None:
        held = runs("r", "a", "n1/0", of=pods(4, least=1))
        assert plan(fleet(holding=(held,), budgets=(budget(1, safe=False),)), Policy()).grows
        of = fleet(holding=(held,), budgets=(budget(1, 1, safe=False),))
        assert plan(of, Policy()).grows == ()

    def test_who_was_to_land_waits(self) -> None:
        made = decide(fleet(job("w"), budgets=()))
        landing = Landing(WorkloadId("w"), ClusterId("c1"), made.places("w"), AT)
        of = replace(fleet(job("w"), budgets=(budget(0),)), landings=(landing,))
        assert decide(of).reason("w") is ReasonCode.BUDGET_USED


class TestSafeMode:
    @pytest.mark.parametrize(("hours", "started"), [(4, ["w"]), (3.999, [])])
    def test_the_run_time_times_what_it_asks_for_is_covered(
        self, hours: float, started: list[str]
    ) -> None:
        of = fleet(lasts("w", 2, count=2), budgets=(budget(10 + hours, 10),))
        assert decide(of).started() == started

    def test_it_is_told_with_the_numbers(self) -> None:
        held = runs("r", "a", "n1/0", since_s=HOUR, limit_s=3 * HOUR)
        made = decide(fleet(lasts("w", 4), budgets=(budget(10, 5),), holding=(held,)))
        assert made.numbers("w") == {
            "asked_milli": 4000, "budget": "project a", "coming_milli": 2000,
            "ends_at": AT + 24 * HOUR, "left_milli": 3000, "limit_milli": 10_000,
            "used_milli": 5000,
        }  # fmt: skip
        assert describe(made.hold("w").reason) == (
            "4 GPU-hours asked by its run-time limit, and 3 left in the budget of project a before"
            " it ends on 13 Jan 1970 (UTC): 5 of 10 are used, and what runs or starts may use 2."
        )

    def test_work_that_does_not_say_how_long_it_runs_waits(self) -> None:
        made = decide(fleet(job("w"), job("cores", "a", cpu_pods()), budgets=(budget(1000),)))
        assert made.started() == ["cores"]
        assert made.reason("w") is ReasonCode.RUN_TIME_UNKNOWN
        assert "starts with a run-time limit" in describe(made.hold("w").reason)

    def test_what_starts_in_one_plan_is_covered_together(self) -> None:
        jobs = [lasts(f"w{i}", 2) for i in range(5)]
        assert decide(fleet(*jobs, budgets=(budget(7),))).started() == ["w0", "w1", "w2"]

    def test_a_shorter_one_behind_starts(self) -> None:
        made = decide(fleet(lasts("long", 9), lasts("short", 1), budgets=(budget(3),)))
        assert made.started() == ["short"]

    def test_what_runs_for_nobody_knows_how_long_counts_to_the_end(self) -> None:
        held = runs("r", "a", "n1/0")
        of = fleet(lasts("w", 1), holding=(held,), budgets=(budget(24, ends_s=24 * HOUR),))
        assert decide(of).numbers("w")["coming_milli"] == 24_000

    def test_only_what_lies_before_its_end_counts(self) -> None:
        of = fleet(lasts("w", 100), budgets=(budget(2, ends_s=2 * HOUR),))
        assert decide(of).started() == ["w"]

    def test_a_slice_counts_as_the_part_of_the_device_that_it_takes(self) -> None:
        jobs = [job(f"w{i}", "a", pods(flavors="1g"), limit_s=HOUR) for i in range(8)]
        assert len(decide(fleet(*jobs, budgets=(budget(1),))).started()) == 7

    def test_the_flavor_that_is_covered_is_taken(self) -> None:
        either = job("w", "a", pods(flavors="h100 1g"), limit_s=HOUR)
        made = decide(fleet(either, budgets=(budget(0.5),)))
        assert [place.flavor for place in made.places("w")] == ["1g"]

    def test_a_gang_starts_with_as_many_pods_as_are_covered(self) -> None:
        gang = job("w", "a", pods(8, least=2), limit_s=HOUR)
        assert len(decide(fleet(gang, budgets=(budget(5),))).places("w")) == 5
        assert decide(fleet(gang, budgets=(budget(1),))).started() == []

    def test_a_gang_grows_as_far_as_is_covered(self) -> None:
        held = runs("r", "a", "n1/0", since_s=0, limit_s=HOUR, of=pods(8, least=1))
        [grow] = plan(fleet(holding=(held,), budgets=(budget(3),)), Policy()).grows
        assert len(grow.places) == 2

    def test_nobody_is_evicted_for_what_is_not_covered(self) -> None:
        low = tuple(runs(f"r{i}", "b", f"n{1 + i // 8}/{i % 8}", priority=-1) for i in range(16))
        urgent = lasts("w", 2)
        assert decide(fleet(urgent, holding=low, budgets=(budget(2),))).victims()
        assert not decide(fleet(urgent, holding=low, budgets=(budget(1),))).victims()

    def test_who_waits_for_an_eviction_is_covered_too(self) -> None:
        low = tuple(runs(f"r{i}", "b", f"n{1 + i // 8}/{i % 8}") for i in range(16))
        made = decide(fleet(lasts("w1", 2), lasts("w2", 2), holding=low, budgets=(budget(3),)))
        assert len(made.victims()) == 1
        assert made.reason("w2") is ReasonCode.BUDGET_USED


class TestExplained:
    def test_the_check_is_told_with_what_is_asked_and_left(self) -> None:
        found = asked(fleet(budgets=(budget(10, 5),)), lasts("w", 6))
        [chain] = found.chains
        check = next(check for check in chain.checks if check.passed is False)
        assert (check.code, check.value, check.limit) == (CheckCode.BUDGET, 6000, 5000)
        assert [c.code for c in chain.checks if c.passed is False] == [CheckCode.BUDGET]

    def test_it_is_asked_for_only_where_one_may_keep_work_waiting(self) -> None:
        for budgets, codes in (((), 0), ((budget(9),), 1), ((budget(9, safe=False),), 0)):
            [chain] = asked(fleet(budgets=budgets), lasts("w", 1)).chains
            found = [check for check in chain.checks if check.code is CheckCode.BUDGET]
            assert [check.passed for check in found] == [True] * codes

    def test_a_shorter_run_time_and_a_larger_budget_would_help(self) -> None:
        found = asked(fleet(budgets=(budget(10, 5.5),)), lasts("w", 6, count=2)).relaxations
        told = {one.change: in_words(one) for one in found}
        assert told[Change.RUN_LIMIT] == (
            "Set a run-time limit of at most 2 h 15 min: the budget of project a covers that."
        )
        assert told[Change.BUDGET] == "Ask for 8 GPU-hours more in the budget of project a."

    def test_any_run_time_that_is_covered_would_help(self) -> None:
        found = asked(fleet(budgets=(budget(10),)), job("w")).relaxations
        assert [(one.change, one.new) for one in found] == [(Change.RUN_LIMIT, 10 * HOUR)]

    def test_one_that_is_used_up_is_raised_beyond_what_is_used(self) -> None:
        found = asked(fleet(budgets=(budget(10, 12, safe=False),)), job("w")).relaxations
        assert [(one.change, one.new) for one in found] == [(Change.BUDGET, 3000)]

    @pytest.mark.parametrize(("left", "helps"), [(5, True), (4, False)])
    def test_waiting_helps_only_if_what_runs_leaves_enough(self, left: int, helps: bool) -> None:
        held = tuple(
            runs(f"r{i}", "a", f"n{1 + i // 8}/{i % 8}", since_s=0, limit_s=HOUR // 4)
            for i in range(16)
        )
        of = fleet(budgets=(budget(left),), holding=held)
        found = {one.change for one in asked(of, lasts("w", 1)).relaxations}
        assert (Change.WAIT in found) is helps

    def test_what_it_keeps_waiting_has_no_estimate(self) -> None:
        of = fleet(job("w"), job("x", "b"), budgets=(budget(0),))
        found = forecast(snapshot=of, policy=Policy(), run_times={}, passes=2, seed=1)
        assert [(f.workload, f.basis) for f in found] == [("w", Basis.NONE), ("x", Basis.PLAN)]


@pytest.mark.parametrize(
    ("law", "told"),
    [
        (budget(9, 9, safe=False), "the budget of-a is used up, and work starts"),
        (budget(5), "the budget of-a has 18000000 left, and 21600000.0 may be used"),
        (budget(9, tenant="top"), "w2 starts under the budget of-top and declares no run time"),
    ],
)
def test_a_plan_that_knows_no_budgets_breaks_the_law(law: BudgetView, told: str) -> None:
    held = runs("r", "a", "n1/0", since_s=HOUR, limit_s=3 * HOUR)
    second = job("w2", "b") if law.cohort else lasts("w2", 2)
    of = fleet(lasts("w1", 2), second, holding=(held,), budgets=())
    made = plan(of, Policy())
    assert violations(of, made) == ()
    assert told in violations(replace(of, budgets=(law,)), made)


@settings(max_examples=200, deadline=None)
@given(of=snapshots())
def test_without_the_budgets_that_it_is_told_of_it_would_have_started_or_not(of: Snapshot) -> None:
    """What is told of a budget is true by its own numbers."""
    for hold in plan(of, Policy()).holds:
        numbers = dict(hold.reason.numbers)
        if hold.reason.code is ReasonCode.RUN_TIME_UNKNOWN:
            waiting = [p for p in of.pending if p.id in hold.workloads]
            assert all(p.run_time_limit_s is None for p in waiting)
        elif hold.reason.code is ReasonCode.BUDGET_USED and "asked_milli" in numbers:
            assert int(numbers["asked_milli"]) > int(numbers["left_milli"])
        elif hold.reason.code is ReasonCode.BUDGET_USED:
            assert int(numbers["used_milli"]) >= int(numbers["limit_milli"])


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (replace(budget(1), limit_milli_s=-1), "limit_milli_s -1; right would be 0 to"),
        (replace(budget(1), used_milli_s=-1), "used_milli_s -1; right would be 0 or more"),
        (replace(budget(1), ends_at=1 << 62), "ends_at 4611686018427387904; right would be"),
        (replace(budget(1), project=ProjectId("z")), "is of z, which is unknown"),
        (replace(budget(1), cohort=CohortId("t")), "right would be one of the two"),
    ],
)
def test_one_that_nobody_can_mean_is_named_and_left_out(wrong: BudgetView, text: str) -> None:
    of = fleet(job("w"), budgets=(wrong,))
    [fault] = faults(of)
    assert fault.kind is FaultKind.BUDGET
    assert text in fault.text
    assert decide(of).started() == ["w"]
