"""Who is next among projects: what is guaranteed first, then who has the lower share."""

import pytest

from scheduler.core.reasons import ReasonCode as Code
from tests.core.build import A30, Quota, job, node, pods, queue, runs, snapshot
from tests.core.scenarios.scenario import FREE, Scenario, check, gpus, line, nodes, singles

LENDER = queue("z", h100=8)
ONE_LEFT = nodes(4)

CASES = (
    Scenario(
        "of two that borrow the one with the lower share starts",
        "Kueue: scheduler_fs_test, schedule workload with lowest share first",
        snapshot(
            nodes=ONE_LEFT,
            queues=[queue("a", h100=FREE), queue("b", h100=FREE), queue("z", h100=4)],
            holding=[runs("r", "a", "n1/0", "n1/1"), runs("s", "b", "n1/2")],
            pending=[job("a1", "a"), job("b1", "b", submitted_at=1)],
        ),
        starts="b1",
        waits={"a1": Code.COHORT_USED},
    ),
    Scenario(
        "what fits nominal quota comes first, though its project borrows much of another flavor",
        "Kueue: scheduler_fs_test, nominal-first ordering despite higher CQ DRS",
        snapshot(
            nodes=[node("n1", gpus=1), node("n2", gpus=4, model=A30)],
            queues=[queue("a", h100=1, a30=FREE), queue("b", h100=FREE), queue("z", a30=4)],
            holding=[runs("r", "a", *gpus("n2", 0, 4), flavor="a30")],
            pending=[job("b1", "b", priority=9), job("a1", "a", submitted_at=1)],
        ),
        starts="a1",
        waits={"b1": Code.COHORT_USED},
    ),
    Scenario(
        "two that borrow alike take turns",
        "Armada: queue_scheduler_test, fairness two queues",
        snapshot(
            nodes=nodes(6),
            queues=[queue("a", h100=FREE), queue("b", h100=FREE), queue("z", h100=6)],
            pending=[*line("a", 4), *line("b", 4, since=10)],
        ),
        starts="a0 b0 a1 b1 a2 b2",
        waits=dict.fromkeys(["a3", "b3"], Code.COHORT_USED),
    ),
    Scenario(
        "three that borrow alike take turns",
        "Armada: queue_scheduler_test, fairness three queues",
        snapshot(
            nodes=nodes(6),
            queues=[*(queue(p, h100=FREE) for p in "abc"), queue("z", h100=6)],
            pending=[*line("a", 3), *line("b", 3, since=10), *line("c", 3, since=20)],
        ),
        starts="a0 b0 c0 a1 b1 c1",
        waits=dict.fromkeys(["a2", "b2", "c2"], Code.COHORT_USED),
    ),
    Scenario(
        "who weighs three times as much gets three times as much",
        "Armada: queue_scheduler_test, weighted fairness two queues",
        snapshot(
            nodes=nodes(8),
            queues=[queue("a", weight=3, h100=FREE), queue("b", h100=FREE), LENDER],
            pending=[*line("a", 7), *line("b", 3, since=10)],
        ),
        starts="a0 b0 a1 a2 a3 b1 a4 a5",
        waits=dict.fromkeys(["a6", "b2"], Code.COHORT_USED),
    ),
    Scenario(
        "three weights divide what is lent",
        "Armada: queue_scheduler_test, weighted fairness three queues",
        snapshot(
            nodes=nodes(8),
            queues=[
                queue("a", weight=4, h100=FREE),
                queue("b", weight=2, h100=FREE),
                queue("c", weight=2, h100=FREE),
                LENDER,
            ],
            pending=[*line("a", 5), *line("b", 3, since=10), *line("c", 3, since=20)],
        ),
        starts="a0 b0 c0 a1 a2 b1 c1 a3",
        waits=dict.fromkeys(["a4", "b2", "c2"], Code.COHORT_USED),
    ),
    Scenario(
        "who holds less catches up before the other gets more",
        "Armada: queue_scheduler_test, fairness two queues with initial allocation",
        snapshot(
            nodes=nodes(8),
            queues=[queue("a", h100=FREE), queue("b", h100=FREE), LENDER],
            holding=singles("r1 r2 r3", "a", gpus("n1", 0, 3)),
            pending=[*line("a", 2), *line("b", 5, since=10)],
        ),
        starts="b0 b1 b2 a0 b3",
        waits=dict.fromkeys(["a1", "b4"], Code.COHORT_USED),
    ),
    Scenario(
        "an idle project leaves its part to the others, whatever it weighs",
        "Armada: preempting_queue_scheduler_test, balancing with inactive queues",
        snapshot(
            nodes=nodes(4),
            queues=[queue("a", h100=FREE), queue("idle", weight=9, h100=FREE), queue("z", h100=4)],
            pending=line("a", 4),
        ),
        starts="a0 a1 a2 a3",
    ),
    Scenario(
        "who weighs nothing borrows after all others",
        "Kueue: scheduler_fs_test, two queues with weight 0",
        snapshot(
            nodes=nodes(8),
            queues=[queue("a", weight=0, h100=FREE), queue("b", h100=FREE), queue("z", h100=4)],
            holding=[runs("r", "a", "n1/0"), runs("s", "b", "n1/1", "n1/2")],
            pending=[job("a1", "a"), job("b1", "b", submitted_at=1)],
        ),
        starts="b1",
        waits={"a1": Code.COHORT_USED},
    ),
    Scenario(
        "unlike in Kueue, a higher priority comes before a lower share",
        "Kueue: docs fair_sharing, workloads of the lowest share value first",
        snapshot(
            nodes=ONE_LEFT,
            queues=[queue("a", h100=FREE), queue("b", h100=FREE), queue("z", h100=4)],
            holding=[runs("r", "a", "n1/0", "n1/1"), runs("s", "b", "n1/2")],
            pending=[job("a1", "a", priority=1), job("b1", "b")],
        ),
        starts="a1",
        waits={"b1": Code.COHORT_USED},
    ),
    Scenario(
        "of equal shares and priorities the oldest starts",
        "Kueue: scheduler_fs_test, fair sharing schedule earliest timestamp first",
        snapshot(
            nodes=nodes(1),
            queues=[queue("a", h100=FREE), queue("b", h100=FREE), queue("z", h100=1)],
            pending=[job("a1", "a", submitted_at=5), job("b1", "b", submitted_at=4)],
        ),
        starts="b1",
        waits={"a1": Code.COHORT_USED},
    ),
    Scenario(
        "unlike in Armada, the size of what comes next is no part of the share",
        "Armada: docs scheduling_and_preempting_jobs, Job scheduling order",
        snapshot(
            nodes=nodes(6),
            queues=[queue("a", h100=FREE), queue("b", h100=FREE), queue("z", h100=6)],
            pending=[job("a1", "a", pods(gpus=6)), job("b1", "b", submitted_at=1)],
        ),
        starts="a1",
        waits={"b1": Code.COHORT_USED},
    ),
    Scenario(
        "a large start puts its project behind until the others have as much",
        "KAI: allocate_test, verify queue share is updated during the same allocation round",
        snapshot(
            nodes=nodes(8),
            queues=[queue("a", h100=FREE), queue("b", h100=FREE), LENDER],
            pending=[
                job("a0", "a", pods(gpus=3)),
                job("a1", "a", submitted_at=1),
                *line("b", 4, since=10),
            ],
        ),
        starts="a0 b0 b1 b2 a1 b3",
    ),
    Scenario(
        "each gets its own before anybody borrows",
        "KAI: allocate_test, 6 pending train jobs - allocate the 1st 2 of each queue",
        snapshot(
            nodes=nodes(4),
            queues=[
                queue("a", h100=Quota(2, borrow=None)),
                queue("b", h100=Quota(2, borrow=None)),
            ],
            pending=[*line("a", 3), *line("b", 3, since=10)],
        ),
        starts="a0 a1 b0 b1",
        waits=dict.fromkeys(["a2", "b2"], Code.COHORT_USED),
    ),
    Scenario(
        "what a large project does not ask for goes to a small one",
        "KAI: reclaim_test, queue with big quota satisfied with 1 gpu, give the rest to the last",
        snapshot(
            nodes=nodes(6),
            queues=[queue("a", h100=5), queue("b", h100=Quota(1, borrow=None))],
            pending=[*line("b", 6), *line("a", 1, since=10)],
        ),
        starts="b0 a0 b1 b2 b3 b4",
        waits={"b5": Code.COHORT_USED},
    ),
    Scenario(
        "unlike in Kueue and Armada, a share alone evicts nobody",
        "Armada: preempting_queue_scheduler_test, preemption when improving fairness",
        snapshot(
            nodes=nodes(4),
            queues=[queue("a", h100=FREE), queue("b", h100=FREE), queue("z", h100=4)],
            holding=singles("r1 r2 r3 r4", "a", gpus("n1", 0, 4)),
            pending=[job("b1", "b", priority=9)],
        ),
        waits={"b1": Code.COHORT_USED},
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_is_lent_is_divided_fairly(case: Scenario) -> None:
    check(case)
