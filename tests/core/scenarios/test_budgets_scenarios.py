"""Budgets of devices' time."""

from dataclasses import replace

import pytest

from scheduler.core.reasons import ReasonCode as Code
from scheduler.core.snapshot import BudgetView, Snapshot
from scheduler.core.units import BudgetId, CohortId, ProjectId
from tests.core.build import AT, cohort, job, pods, queue, runs, snapshot
from tests.core.scenarios.scenario import Scenario, check, nodes

HOUR = 3600
SLURM = "Slurm: resource_limits, GrpTRESMins"
SAFE = "Slurm: resource_limits, AccountingStorageEnforce safe"
KUEUE = "Kueue: issue 28, budgets"


def budget(hours: int, used: int = 0, *, tenant: str = "", safe: bool = False) -> BudgetView:
    return BudgetView(
        BudgetId("budget"),
        tenant or "a",
        hours * HOUR * 1000,
        used * HOUR * 1000,
        AT + 100 * HOUR,
        None if tenant else ProjectId("a"),
        CohortId(tenant) if tenant else None,
        safe,
    )


def of(given: Snapshot, *budgets: BudgetView) -> Snapshot:
    return replace(given, budgets=budgets)


QUEUES = [queue("a", tenant="t", h100=4), queue("b", tenant="t", h100=4)]

CASES = (
    Scenario(
        "once a budget is used up nothing of its project starts, and what runs goes on",
        SLURM,
        of(
            snapshot(
                nodes=nodes(8),
                queues=QUEUES,
                holding=[runs("r", "a", "n1/0")],
                pending=[job("w", "a", priority=9), job("x", "b")],
            ),
            budget(50, 50),
        ),
        starts="x",
        waits={"w": Code.BUDGET_USED},
        numbers={"w": {"used_milli": 50_000, "limit_milli": 50_000}},
    ),
    Scenario(
        "below its budget a project starts whatever fits, even what will pass it",
        SLURM,
        of(
            snapshot(
                nodes=nodes(8), queues=QUEUES, pending=[job("w", "a", pods(4), limit_s=99 * HOUR)]
            ),
            budget(50, 49),
        ),
        starts="w",
    ),
    Scenario(
        "the budget of a tenant is one for all of its projects",
        KUEUE,
        of(
            snapshot(
                nodes=nodes(8),
                queues=QUEUES,
                cohorts=[cohort("t")],
                pending=[job("w", "a"), job("x", "b")],
            ),
            budget(50, 51, tenant="t"),
        ),
        waits={"w": Code.BUDGET_USED, "x": Code.BUDGET_USED},
    ),
    Scenario(
        "in safe mode work starts only if its run-time limit fits into what is left",
        SAFE,
        of(
            snapshot(
                nodes=nodes(8),
                queues=QUEUES,
                pending=[
                    job("long", "a", pods(2), limit_s=6 * HOUR),
                    job("short", "a", pods(2), limit_s=5 * HOUR, submitted_at=1),
                ],
            ),
            budget(50, 40, safe=True),
        ),
        starts="short",
        waits={"long": Code.BUDGET_USED},
    ),
    Scenario(
        "in safe mode what runs counts with what its run-time limits leave it",
        SAFE,
        of(
            snapshot(
                nodes=nodes(8),
                queues=QUEUES,
                holding=[runs("r", "a", "n1/0", since_s=2 * HOUR, limit_s=9 * HOUR)],
                pending=[job("w", "a", limit_s=4 * HOUR)],
            ),
            budget(50, 40, safe=True),
        ),
        waits={"w": Code.BUDGET_USED},
        numbers={"w": {"asked_milli": 4000, "coming_milli": 7000, "left_milli": 3000}},
    ),
    Scenario(
        "in safe mode work without a run-time limit does not start",
        SAFE,
        of(
            snapshot(nodes=nodes(8), queues=QUEUES, pending=[job("w", "a")]), budget(50, safe=True)
        ),
        waits={"w": Code.RUN_TIME_UNKNOWN},
    ),
    Scenario(
        "unlike there, what runs into the next period counts for this one only to its end",
        SAFE,
        of(
            snapshot(nodes=nodes(8), queues=QUEUES, pending=[job("w", "a", limit_s=900 * HOUR)]),
            budget(100, safe=True),
        ),
        starts="w",
    ),
    Scenario(
        "in hard mode what runs is stopped once the budget is used up, and waits",
        SLURM,
        of(
            snapshot(
                nodes=nodes(8),
                queues=QUEUES,
                holding=[
                    runs("firm", "a", "n1/0", preemptible=False),
                    runs("low", "a", "n1/1", priority=-1),
                    runs("other", "b", "n1/2"),
                ],
                pending=[job("w", "a", priority=9), job("x", "b")],
            ),
            replace(budget(50, 50), hard=True),
        ),
        starts="x",
        stops="low firm",
        waits={"w": Code.BUDGET_USED},
        numbers={"w": {"mode": "hard"}},
    ),
    Scenario(
        "nobody is evicted for work that its budget does not cover",
        KUEUE,
        of(
            snapshot(
                nodes=nodes(1),
                queues=[queue("a", h100=1), queue("b", h100=1)],
                holding=[runs("low", "a", "n1/0", priority=-1)],
                pending=[job("w", "a", priority=9)],
            ),
            budget(5, 5),
        ),
        waits={"w": Code.BUDGET_USED},
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_no_more_is_used_than_the_budget(case: Scenario) -> None:
    check(case)
