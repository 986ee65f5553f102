"""What is guaranteed above projects, who gives it back, and work that may not be preempted."""

from dataclasses import replace

import pytest

from scheduler.core.reasons import ReasonCode as Code
from scheduler.core.snapshot import PendingView
from tests.core.build import Quota, cohort, cpu_pods, job, pods, queue, runs, snapshot
from tests.core.scenarios.scenario import FREE, Scenario, check, gpus, nodes, singles

ALL = gpus("n1", 0, 4)


def firm(*args: object, **options: object) -> PendingView:
    """As `job`, of work that may not be preempted."""
    return replace(job(*args, **options), preemptible=False)  # type: ignore[arg-type]


CASES = (
    Scenario(
        "a tenant's own guarantee is kept while somebody else borrows",
        "Kueue: preemption_hierarchical_test, reclaim nominal quota, excluding non-borrowing",
        snapshot(
            nodes=nodes(4, 4),
            cohorts=[cohort("t", h100=4), cohort("u")],
            queues=[
                queue("a", tenant="t", h100=FREE),
                queue("b", h100=4),
                queue("c", tenant="u", h100=FREE),
            ],
            holding=[
                *singles("a1 a2 a3 a4", "a", ALL, priority=-9),
                *singles("c1 c2 c3 c4", "c", gpus("n2", 0, 4)),
            ],
            pending=[job("w", "b", pods(gpus=4))],
        ),
        reclaims={"w": "c1 c2 c3 c4"},
    ),
    Scenario(
        "a project takes back what its tenant is guaranteed",
        "Kueue: preemption_hierarchical_test, preempt with hierarchical advantage",
        snapshot(
            nodes=nodes(4),
            cohorts=[cohort("t", h100=3)],
            queues=[
                queue("a", tenant="t", h100=FREE),
                queue("c", h100=FREE),
                queue("d", h100=1),
            ],
            holding=singles("c1 c2 c3 c4", "c", ALL),
            pending=[job("w", "a", pods(gpus=3))],
        ),
        reclaims={"w": "c1 c2 c3"},
    ),
    Scenario(
        "beyond what its tenant is guaranteed it takes nothing back",
        "YuniKorn: preemption_test, TestIsAskQueueUnderGuaranteed",
        snapshot(
            nodes=nodes(4),
            cohorts=[cohort("t", h100=Quota(3, borrow=None))],
            queues=[
                queue("a", tenant="t", h100=FREE),
                queue("c", h100=FREE),
                queue("d", h100=1),
            ],
            holding=singles("c1 c2 c3 c4", "c", ALL),
            pending=[job("w", "a", pods(gpus=4))],
        ),
        waits={"w": Code.COHORT_USED},
    ),
    Scenario(
        "what a sibling leaves is its tenant's before it is lent to others",
        "Kueue: preemption_hierarchical_test, preempt multiple with hierarchical advantage",
        snapshot(
            nodes=nodes(4),
            queues=[
                queue("a", tenant="t", h100=FREE),
                queue("b", tenant="t", h100=2),
                queue("c", h100=Quota(2, borrow=None)),
            ],
            holding=singles("c1 c2 c3 c4", "c", ALL),
            pending=[job("w", "a", pods(gpus=2))],
        ),
        reclaims={"w": "c1 c2"},
    ),
    Scenario(
        "who has nominal of its own takes the tenant's shared quota back from a sibling",
        "Kueue: preemption_hierarchical_test, incoming workload fits in CQ nominal quota",
        snapshot(
            nodes=nodes(4),
            cohorts=[cohort("t", h100=3)],
            queues=[queue("a", tenant="t", h100=1), queue("b", tenant="t", h100=FREE)],
            holding=singles("b1 b2 b3 b4", "b", ALL),
            pending=[job("w", "a")],
        ),
        reclaims={"w": "b1"},
    ),
    Scenario(
        "who gave the tenant's shared quota back does not take it again",
        "KAI: reclaim_test, we don't reclaim because allocate will cause a loop",
        snapshot(
            nodes=nodes(2),
            cohorts=[cohort("t", h100=1)],
            queues=[queue("a", tenant="t", h100=1), queue("b", tenant="t", h100=FREE)],
            holding=[
                runs("b1", "b", "n1/0", priority=9, since_s=1),
                runs("b2", "b", "n1/1", priority=9, since_s=2),
            ],
            pending=[job("w", "a")],
        ),
        reclaims={"w": "b1"},
        again=(job("b1", "b", priority=9),),
        ends="b2 w",
    ),
    Scenario(
        "a department's guarantee is kept from its tenant's other departments",
        "Kueue: preemption_hierarchical_test, reclaim in complex hierarchy",
        snapshot(
            nodes=nodes(4),
            cohorts=[
                cohort("t"),
                cohort("x", parent="t", h100=2),
                cohort("y", parent="t", h100=2),
            ],
            queues=[queue("a", tenant="x", h100=FREE), queue("b", tenant="y", h100=FREE)],
            holding=singles("b1 b2 b3 b4", "b", ALL),
            pending=[job("w", "a", pods(gpus=2)), job("z", "a", submitted_at=1)],
        ),
        reclaims={"w": "b1 b2"},
        waits={"z": Code.COHORT_USED},
    ),
    Scenario(
        "a gang that reaches into its tenant's guarantee stays",
        "YuniKorn: preemption_test, TestIsVictimQueueOverGuaranteed",
        snapshot(
            nodes=nodes(4),
            cohorts=[cohort("t", h100=3)],
            queues=[queue("a", tenant="t", h100=FREE), queue("c", h100=1)],
            holding=[runs("gang", "a", *ALL)],
            pending=[job("w", "c")],
        ),
        waits={"w": Code.COHORT_USED},
    ),
    Scenario(
        "work that may not be preempted does not borrow",
        "KAI: allocate_test, don't allocate over quota build jobs",
        snapshot(
            nodes=nodes(4),
            queues=[queue("a", h100=Quota(1, borrow=None)), queue("b", h100=3)],
            pending=[
                firm("w", "a"),
                firm("x", "a", submitted_at=1),
                job("y", "a", submitted_at=2),
            ],
        ),
        starts="w y",
        waits={"x": Code.QUOTA_USED},
        numbers={"x": {"asked_milli": 1000, "available_milli": 0, "guaranteed_milli": 1000}},
    ),
    Scenario(
        "work that may not be preempted and asks for more than is guaranteed never starts",
        "KAI: allocateGpuMemory_test, Non preemptible job requests gpu memory over deserved quota",
        snapshot(
            nodes=nodes(4),
            cohorts=[cohort("t", h100=1)],
            queues=[
                queue("a", tenant="t", h100=Quota(1, borrow=None)),
                queue("b", tenant="t", h100=2),
            ],
            pending=[firm("w", "a", pods(gpus=3)), firm("x", "a", pods(gpus=2), submitted_at=1)],
        ),
        starts="x",
        waits={"w": Code.NEVER_ADMISSIBLE},
        numbers={"w": {"asked_milli": 3000, "guaranteed_milli": 2000}},
    ),
    Scenario(
        "work that may not be preempted does not use what a sibling lends",
        "KAI: reclaimDepartments_test, department interactive will not go over quota",
        snapshot(
            nodes=nodes(4),
            cohorts=[cohort("t", h100=1)],
            queues=[queue("a", tenant="t", h100=FREE), queue("b", tenant="t", h100=3)],
            pending=[firm("w", "a"), firm("x", "a", submitted_at=1)],
        ),
        starts="w",
        waits={"x": Code.QUOTA_USED},
    ),
    Scenario(
        "a gang that may not be preempted grows only within what is guaranteed",
        "KAI: allocateGang_test, Don't allocate gang interactive job if it will go over quota",
        snapshot(
            nodes=nodes(4),
            queues=[queue("a", h100=Quota(2, borrow=None)), queue("b", h100=2)],
            pending=[firm("w", "a", pods(4, least=1))],
        ),
        starts="w",
        pods={"w": 2},
    ),
    Scenario(
        "lower work of its project makes way for work that may not be preempted",
        "KAI: preempt_test, 1 build job with 1 GPUs pending for the same queue - preempt train",
        snapshot(
            nodes=nodes(4),
            queues=[queue("a", h100=Quota(1, borrow=None)), queue("b", h100=3)],
            holding=[runs("low", "a", "n1/0", priority=-1)],
            pending=[firm("w", "a")],
        ),
        preempts={"w": "low"},
    ),
    Scenario(
        "nobody of its project borrows past work that waits and may not be preempted",
        "KAI: preempt_test, 1 build job with 1 GPUs pending for the same queue - preempt train",
        snapshot(
            nodes=nodes(4),
            queues=[queue("a", h100=Quota(1, borrow=None)), queue("b", h100=3)],
            holding=[runs("low", "a", "n1/0", priority=-2)],
            pending=[firm("w", "a"), job("v", "a", priority=-1), job("u", "b")],
        ),
        starts="u",
        preempts={"w": "low"},
        waits={"v": Code.COHORT_USED},
    ),
    Scenario(
        "work that may not be preempted takes back what others borrow",
        "KAI: reclaim_test, 1 train and 1 preemptible interactive are over quota - reclaim train",
        snapshot(
            nodes=nodes(2),
            queues=[queue("a", h100=1), queue("b", h100=Quota(1, borrow=None))],
            holding=singles("b1 b2", "b", gpus("n1", 0, 2)),
            pending=[firm("w", "a")],
        ),
        reclaims={"w": "b1"},
    ),
    Scenario(
        "it stays within what is guaranteed of its cores as of its devices",
        "KAI: allocate_test, don't allocate over quota build jobs",
        snapshot(
            nodes=nodes(4),
            queues=[
                queue("a", h100=2, cpu=Quota(1, borrow=None)),
                queue("b", h100=2, cpu=8),
            ],
            pending=[firm("w", "a", pods(), cpu_pods(cores=2, name="loader"))],
        ),
        waits={"w": Code.NEVER_ADMISSIBLE},
        numbers={"w": {"asked_milli": 2000, "guaranteed_milli": 1000, "flavor": "cpu"}},
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_is_guaranteed_is_had(case: Scenario) -> None:
    check(case)
