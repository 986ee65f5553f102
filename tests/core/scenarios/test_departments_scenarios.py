"""Tenants and departments: what a tree of projects holds, lends and takes back together."""

import pytest

from scheduler.core.reasons import ReasonCode as Code
from tests.core.build import Quota, cohort, job, pods, queue, runs, snapshot
from tests.core.scenarios.scenario import FREE, Scenario, check, gpus, nodes, singles

FOUR = singles("b1 b2 b3 b4", "b", gpus("n1", 0, 4))

CASES = (
    Scenario(
        "the projects of a tenant stay within what the tenant may hold",
        "KAI: allocate_test, does not allow to department to go over allowance",
        snapshot(
            nodes=nodes(8),
            cohorts=[cohort("lab", h100=Quota(0, borrow=0))],
            queues=[
                queue("a", tenant="lab", h100=Quota(2, borrow=None)),
                queue("b", tenant="lab", h100=2),
                queue("c", h100=4),
            ],
            holding=[runs("r", "a", *gpus("n1", 0, 2))],
            pending=[job("b1", "b", pods(gpus=2)), job("a1", "a", submitted_at=1)],
        ),
        starts="b1",
        waits={"a1": Code.COHORT_USED},
        numbers={"a1": {"available_milli": 0, "borrowable_milli": 2000}},
    ),
    Scenario(
        "the other projects of a tenant use what one leaves, though the tenant may not borrow",
        "Kueue: KEP-79, a cohort shares the quota of its members first",
        snapshot(
            nodes=nodes(8),
            cohorts=[cohort("lab", h100=Quota(0, borrow=0))],
            queues=[
                queue("a", tenant="lab", h100=Quota(2, borrow=None)),
                queue("b", tenant="lab", h100=2),
                queue("c", h100=4),
            ],
            pending=[job("w", "a", pods(gpus=4))],
        ),
        starts="w",
    ),
    Scenario(
        "quota of a department itself goes to its projects as they come",
        "Kueue: snapshot_test, cohort provides resources",
        snapshot(
            nodes=nodes(4),
            cohorts=[cohort("lab", h100=4)],
            queues=[queue(p, tenant="lab", h100=FREE) for p in ("a", "b")],
            pending=[job("a1", "a", pods(gpus=3)), job("b1", "b", pods(gpus=2), submitted_at=1)],
        ),
        starts="a1",
        waits={"b1": Code.COHORT_USED},
        numbers={"b1": {"available_milli": 1000, "borrowable_milli": 4000}},
    ),
    Scenario(
        "a project may use what is two levels above it",
        "KAI: allocate_test, four level queue hierarchy - allocate job at deepest level",
        snapshot(
            nodes=nodes(4),
            cohorts=[
                cohort("top", h100=2),
                cohort("mid", parent="top"),
                cohort("low", parent="mid"),
            ],
            queues=[queue("a", tenant="low", h100=FREE)],
            pending=[job("w", "a", pods(gpus=2)), job("x", "a", pods(gpus=3), submitted_at=1)],
        ),
        starts="w",
        waits={"x": Code.NEVER_ADMISSIBLE},
    ),
    Scenario(
        "a limit high in the tree binds a project far below",
        "YuniKorn: queue_test, TestMaxHeadroomMax",
        snapshot(
            nodes=nodes(8),
            cohorts=[cohort("top", h100=Quota(0, borrow=1)), cohort("low", parent="top")],
            queues=[queue("a", tenant="low", h100=Quota(2, borrow=None)), queue("b", h100=6)],
            pending=[job("w", "a", pods(gpus=4)), job("x", "a", pods(gpus=3), submitted_at=1)],
        ),
        starts="x",
        waits={"w": Code.NEVER_ADMISSIBLE},
        numbers={"w": {"nominal_milli": 2000, "borrowable_milli": 1000}},
    ),
    Scenario(
        "unlike in Kueue, departments above each other hang below the fleet and go on",
        "Kueue: snapshot_test, cohorts with cycles and their cqs excluded from snapshot",
        snapshot(
            nodes=nodes(4),
            cohorts=[cohort("x", parent="y"), cohort("y", parent="x")],
            queues=[queue("a", tenant="x", h100=Quota(2, borrow=None)), queue("b", h100=2)],
            pending=[job("w", "a", pods(gpus=4))],
        ),
        starts="w",
    ),
    Scenario(
        "a tenant's borrowing limit binds all its projects together",
        "Kueue: KEP-79, borrowing limit of a cohort",
        snapshot(
            nodes=nodes(8),
            cohorts=[cohort("lab", h100=Quota(0, borrow=1))],
            queues=[
                *(queue(p, tenant="lab", h100=Quota(1, borrow=None)) for p in ("a", "b")),
                queue("c", h100=6),
            ],
            pending=[
                job("a1", "a", pods(gpus=2)),
                job("b1", "b", submitted_at=1),
                job("b2", "b", pods(gpus=2), submitted_at=2),
            ],
        ),
        starts="b1 a1",
        waits={"b2": Code.COHORT_USED},
    ),
    Scenario(
        "a tenant that lends one gives another tenant no second",
        "Kueue: scheduler_test, hierarchical cohort respects lending limit when borrowing",
        snapshot(
            nodes=nodes(8),
            cohorts=[cohort("lab", h100=Quota(0, lend=1))],
            queues=[queue("a", tenant="lab", h100=4), queue("c", h100=FREE)],
            pending=[
                job("c1", "c", pods(gpus=2)),
                job("c2", "c", submitted_at=1),
                job("c3", "c", submitted_at=2),
            ],
        ),
        starts="c2",
        waits={"c1": Code.NEVER_ADMISSIBLE, "c3": Code.COHORT_USED},
    ),
    Scenario(
        "a tenant lends up to its lending limit",
        "Kueue: scheduler_test, hierarchical cohort allows borrowing up to lending limit",
        snapshot(
            nodes=nodes(8),
            cohorts=[cohort("lab", h100=Quota(0, lend=3))],
            queues=[queue("a", tenant="lab", h100=4), queue("c", h100=FREE)],
            holding=[runs("r", "a", "n1/0")],
            pending=[job("c1", "c", pods(gpus=3))],
        ),
        starts="c1",
    ),
    Scenario(
        "what a project keeps a sibling of its own tenant does not get either",
        "Kueue: preemption_hierarchical_test, respect lending limits",
        snapshot(
            nodes=nodes(8),
            queues=[
                queue("a", tenant="lab", h100=Quota(4, lend=1)),
                queue("b", tenant="lab", h100=FREE),
            ],
            pending=[job("b1", "b", pods(gpus=2)), job("b2", "b", submitted_at=1)],
        ),
        starts="b2",
        waits={"b1": Code.NEVER_ADMISSIBLE},
    ),
    Scenario(
        "tenants take back from each other",
        "KAI: reclaim_test, Classic reclaim for train jobs between departments",
        snapshot(
            nodes=nodes(4),
            queues=[
                queue("a", tenant="s", h100=2),
                queue("b", tenant="t", h100=Quota(2, borrow=None)),
            ],
            holding=FOUR,
            pending=[job("w", "a", pods(gpus=2))],
        ),
        reclaims={"w": "b1 b2"},
    ),
    Scenario(
        "a sibling and another tenant both give",
        "KAI: reclaim_test, Reclaim from different department and same department",
        snapshot(
            nodes=nodes(4),
            queues=[
                queue("a", tenant="s", h100=4),
                queue("b", tenant="s", h100=FREE),
                queue("c", tenant="t", h100=FREE),
            ],
            holding=[
                *singles("b1 b2", "b", gpus("n1", 0, 2)),
                *singles("c1 c2", "c", gpus("n1", 2, 4)),
            ],
            pending=[job("w", "a", pods(gpus=4))],
        ),
        reclaims={"w": "b1 b2 c1 c2"},
    ),
    Scenario(
        "quota of a department itself is nobody's to take back",
        "Kueue: preemption_hierarchical_test, avoid queues within nominal quota",
        snapshot(
            nodes=nodes(2),
            cohorts=[cohort("lab", h100=2)],
            queues=[queue("a", tenant="lab", h100=FREE), queue("b", tenant="lab", h100=FREE)],
            holding=singles("b1 b2", "b", gpus("n1", 0, 2)),
            pending=[job("w", "a", priority=9)],
        ),
        waits={"w": Code.COHORT_USED},
    ),
    Scenario(
        "who borrows inside its own tenant is protected, though devices are short",
        "Kueue: preemption_fair_test, borrowing cq in non-borrowing cohort is protected",
        snapshot(
            nodes=nodes(4),
            queues=[
                queue("a", tenant="s", h100=2),
                queue("b", tenant="t", h100=Quota(2, borrow=None)),
                queue("c", tenant="t", h100=2),
            ],
            holding=FOUR,
            pending=[job("w", "a")],
        ),
        waits={"w": Code.NO_FREE_CAPACITY},
    ),
    Scenario(
        "a guarantee of the same tenant's other project is kept",
        "KAI: reclaim_test, both departments are under deserved quota - should not reclaim",
        snapshot(
            nodes=nodes(4),
            queues=[
                queue("a", tenant="s", h100=Quota(2, borrow=None)),
                queue("b", tenant="s", h100=2),
            ],
            holding=[
                *singles("a1 a2", "a", gpus("n1", 0, 2)),
                *singles("b1 b2", "b", gpus("n1", 2, 4)),
            ],
            pending=[job("w", "a")],
        ),
        waits={"w": Code.COHORT_USED},
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_tree_decides_that(case: Scenario) -> None:
    check(case)
