"""What a project borrows, from whom, and up to what."""

import pytest

from scheduler.core.reasons import ReasonCode as Code
from tests.core.build import Quota, job, pods, queue, runs, snapshot
from tests.core.scenarios.scenario import FREE, Scenario, check, gpus, nodes, singles

CASES = (
    Scenario(
        "a project starts on what others leave unused",
        "Kueue: docs cluster_queue, Borrowing example",
        snapshot(
            nodes=nodes(8),
            queues=[queue("a", h100=Quota(2, borrow=None)), queue("b", h100=6)],
            holding=[runs("r", "b", "n1/0")],
            pending=[job("w", "a", pods(gpus=7))],
        ),
        starts="w",
    ),
    Scenario(
        "no more is borrowed than the borrowing limit",
        "Kueue: docs cluster_queue, BorrowingLimit",
        snapshot(
            nodes=nodes(8),
            queues=[queue("a", h100=Quota(2, borrow=1)), queue("b", h100=6)],
            pending=[job("w", "a", pods(gpus=4)), job("x", "a", pods(gpus=3), submitted_at=1)],
        ),
        starts="x",
        waits={"w": Code.NEVER_ADMISSIBLE},
        numbers={"w": {"asked_milli": 4000, "nominal_milli": 2000, "borrowable_milli": 1000}},
    ),
    Scenario(
        "the borrowing limit counts what is borrowed already",
        "KAI: allocate_test, does not allow to project to go over allowance",
        snapshot(
            nodes=nodes(8),
            queues=[queue("a", h100=Quota(2, borrow=2)), queue("b", h100=6)],
            holding=[runs("r", "a", *gpus("n1", 0, 3))],
            pending=[job("w", "a", pods(gpus=2)), job("x", "a", submitted_at=1)],
        ),
        starts="x",
        waits={"w": Code.QUOTA_USED},
    ),
    Scenario(
        "a borrowing limit of nothing keeps a project to its own, though others are idle",
        "Kueue: docs cluster_queue, BorrowingLimit",
        snapshot(
            nodes=nodes(8),
            queues=[queue("a", h100=Quota(2, borrow=0)), queue("b", h100=6)],
            holding=[runs("r", "a", "n1/0", "n1/1")],
            pending=[job("w", "a")],
        ),
        waits={"w": Code.QUOTA_USED},
        numbers={"w": {"used_milli": 2000, "borrowable_milli": 0}},
    ),
    Scenario(
        "no more is borrowed than others lend",
        "Kueue: scheduler_test, workload exceeds lending limit when borrow in cohort",
        snapshot(
            nodes=nodes(8),
            queues=[queue("a", h100=Quota(1, borrow=None)), queue("b", h100=Quota(4, lend=2))],
            pending=[job("w", "a", pods(gpus=4)), job("x", "a", pods(gpus=3), submitted_at=1)],
        ),
        starts="x",
        waits={"w": Code.NEVER_ADMISSIBLE},
        numbers={"w": {"borrowable_milli": 2000}},
    ),
    Scenario(
        "what is not lent stays idle rather than to be borrowed",
        "Volcano: docs/design/capacity-scheduling, guarantee",
        snapshot(
            nodes=nodes(4),
            queues=[queue("a", h100=FREE), queue("b", h100=Quota(4, lend=3))],
            pending=[job(f"w{i}", "a", submitted_at=i) for i in range(4)],
        ),
        starts="w0 w1 w2",
        waits={"w3": Code.COHORT_USED},
    ),
    Scenario(
        "the lender's own use counts against what it lends",
        "Kueue: KEP-1224, lending limit",
        snapshot(
            nodes=nodes(8),
            queues=[queue("a", h100=FREE), queue("b", h100=Quota(4, lend=3))],
            holding=[runs("r", "b", "n1/0", "n1/1", "n1/2")],
            pending=[job("w", "a", pods(gpus=2)), job("x", "a", submitted_at=1)],
        ),
        starts="x",
        waits={"w": Code.COHORT_USED},
        numbers={"w": {"available_milli": 0, "borrowable_milli": 3000}},
    ),
    Scenario(
        "who keeps a part of its own for itself borrows beside it",
        "Kueue: KEP-1224, what is not lent and what is borrowed add up",
        snapshot(
            nodes=nodes(8),
            queues=[queue("a", h100=Quota(4, borrow=None, lend=1)), queue("b", h100=4)],
            holding=[runs("r", "b", "n1/0")],
            pending=[job("w", "a", pods(gpus=7))],
        ),
        starts="w",
    ),
    Scenario(
        "two projects borrow in one plan as long as both fit",
        "Kueue: scheduler_test, two workloads can borrow the same resources",
        snapshot(
            nodes=nodes(4),
            queues=[queue("a", h100=FREE), queue("b", h100=FREE), queue("c", h100=4)],
            pending=[job("a1", "a", pods(gpus=2)), job("b1", "b", pods(gpus=2), submitted_at=1)],
        ),
        starts="a1 b1",
    ),
    Scenario(
        "of two that borrow one waits where both would be too much",
        "Kueue: scheduler_test, only one workload can borrow if cohort quota cannot fit",
        snapshot(
            nodes=nodes(8),
            queues=[queue("a", h100=FREE), queue("b", h100=FREE), queue("c", h100=4)],
            pending=[job("a1", "a", pods(gpus=3)), job("b1", "b", pods(gpus=2), submitted_at=1)],
        ),
        starts="a1",
        waits={"b1": Code.COHORT_USED},
        numbers={"b1": {"asked_milli": 2000, "available_milli": 1000}},
    ),
    Scenario(
        "the owner starts before an older borrower, and nothing is given twice",
        "Kueue: scheduler_test, no overadmission while borrowing",
        snapshot(
            nodes=nodes(8),
            queues=[
                queue("a", h100=Quota(2, borrow=None)),
                queue("b", h100=Quota(2, borrow=None)),
            ],
            pending=[job("a1", "a", pods(gpus=3)), job("b1", "b", pods(gpus=2), submitted_at=1)],
        ),
        starts="b1",
        waits={"a1": Code.COHORT_USED},
        numbers={"a1": {"asked_milli": 3000, "available_milli": 2000}},
    ),
    Scenario(
        "a borrower starts after the owner where enough is left",
        "Kueue: scheduler_test, can borrow if cohort was assigned, without overadmission",
        snapshot(
            nodes=nodes(8),
            queues=[
                queue("a", h100=Quota(2, borrow=None)),
                queue("b", h100=Quota(2, borrow=None)),
            ],
            pending=[job("a1", "a", pods(gpus=3)), job("b1", "b", submitted_at=1)],
        ),
        starts="b1 a1",
    ),
    Scenario(
        "hardware beyond all quota is nobody's to borrow",
        "Kueue: docs cohort, borrowing is of unused quota",
        snapshot(
            nodes=nodes(8),
            queues=[queue("a", h100=Quota(2, borrow=None)), queue("b", h100=2)],
            pending=[job("w", "a", pods(gpus=5)), job("x", "a", pods(gpus=4), submitted_at=1)],
        ),
        starts="x",
        waits={"w": Code.NEVER_ADMISSIBLE},
    ),
    Scenario(
        "nobody is evicted while the lender asks for nothing",
        "Volcano: docs/design/capacity-scheduling, story 3, the other queue is idle",
        snapshot(
            nodes=nodes(4),
            queues=[queue("a", h100=Quota(1, borrow=None)), queue("b", h100=3)],
            holding=singles("r1 r2 r3 r4", "a", gpus("n1", 0, 4)),
            pending=[job("w", "a")],
        ),
        waits={"w": Code.COHORT_USED},
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_is_borrowed_follows_the_rules(case: Scenario) -> None:
    check(case)
