"""Whom an eviction takes: where least is lost, and no more than is needed."""

from dataclasses import replace

import pytest

from scheduler.core.reasons import ReasonCode as Code
from tests.core.build import (
    AT,
    Quota,
    cluster,
    job,
    node,
    pods,
    queue,
    runs,
    snapshot,
)
from tests.core.scenarios.scenario import FREE, Scenario, check, gpus, nodes, singles

OWN = [queue("a", h100=8, cpu=64)]
URGENT = job("w", "a", priority=9)


CASES = (
    Scenario(
        "whose going turns out not to be needed stays, though it is of the lowest priority",
        "Kueue: preemption_test, minimal set excludes low priority",
        snapshot(
            nodes=nodes(4),
            queues=OWN,
            holding=[
                runs("low", "a", "n1/0", priority=-2),
                runs("mid", "a", "n1/1", "n1/2", priority=-1),
                runs("high", "a", "n1/3", priority=5),
            ],
            pending=[job("w", "a", pods(gpus=2))],
        ),
        preempts={"w": "mid"},
    ),
    Scenario(
        "several small ones go for one large",
        "Volcano: preempt_test, preempt enough tasks to fit large task of different job",
        snapshot(
            nodes=nodes(4),
            queues=OWN,
            holding=singles("p q r s", "a", gpus("n1", 0, 4)),
            pending=[job("w", "a", pods(gpus=3), priority=1)],
        ),
        preempts={"w": "p q r"},
    ),
    Scenario(
        "one goes where one is enough",
        "KAI: preempt_test, 3 train job running, 1 pending - no need to preempt two jobs",
        snapshot(
            nodes=nodes(4),
            queues=OWN,
            holding=[
                runs("pair", "a", "n1/0", "n1/1", since_s=10),
                *singles("p q", "a", gpus("n1", 2, 4)),
            ],
            pending=[job("w", "a", pods(gpus=2), priority=1)],
        ),
        preempts={"w": "pair"},
    ),
    Scenario(
        "those of lowest priority go first where several do",
        "Armada: preempting_queue_scheduler_test, preempt in order of priority",
        snapshot(
            nodes=nodes(4),
            queues=OWN,
            holding=[runs(f"p{i}", "a", f"n1/{i}", priority=i, since_s=900 - i) for i in range(4)],
            pending=[job("w", "a", pods(gpus=2), priority=9)],
        ),
        preempts={"w": "p0 p1"},
    ),
    Scenario(
        "a gang goes as a whole",
        "Armada: preempting_queue_scheduler_test, gang preemption",
        snapshot(
            nodes=nodes(1, 1),
            queues=OWN,
            holding=[runs("gang", "a", "n1/0", "n2/0")],
            pending=[URGENT],
        ),
        preempts={"w": "gang"},
    ),
    Scenario(
        "what a gang gives beyond need is waited for, and nobody else goes",
        "Armada: preempting_queue_scheduler_test, gang preemption avoid cascading preemption",
        snapshot(
            nodes=nodes(1, 1, 1),
            queues=OWN,
            holding=[
                runs("gang", "a", "n1/0", "n2/0", since_s=1),
                runs("single", "a", "n3/0", since_s=900),
            ],
            pending=[URGENT, job("x", "a", priority=8)],
        ),
        preempts={"w": "gang"},
        waits={"x": Code.WAITING_FOR_PREEMPTION},
        numbers={"x": {"victims_count": 0}},
    ),
    Scenario(
        "of equals the one admitted last goes",
        "Kueue: docs preemption, candidates that were admitted the most recently",
        snapshot(
            nodes=nodes(3),
            queues=OWN,
            holding=[runs(f"s{s}", "a", f"n1/{i}", since_s=s) for i, s in enumerate([30, 10, 20])],
            pending=[URGENT],
        ),
        preempts={"w": "s10"},
    ),
    Scenario(
        "work is lost since its checkpoint, so the old that saved goes before the young",
        "Kueue: KEP-7990, preemption cost",
        snapshot(
            nodes=nodes(2),
            queues=OWN,
            holding=[
                replace(runs("saved", "a", "n1/0", since_s=9000), checkpointed_at=AT - 5),
                runs("young", "a", "n1/1", since_s=60),
            ],
            pending=[URGENT],
        ),
        preempts={"w": "saved"},
    ),
    Scenario(
        "a priority counts more than the work that is lost",
        "Armada: optimiser node_scheduler_test, preempt jobs - mixed queue priorities",
        snapshot(
            nodes=nodes(2),
            queues=OWN,
            holding=[
                runs("low", "a", "n1/0", priority=-1, since_s=9000),
                runs("young", "a", "n1/1", since_s=1),
            ],
            pending=[URGENT],
        ),
        preempts={"w": "low"},
    ),
    Scenario(
        "before its least run time work stays, and older goes in its stead",
        "KAI: docs/plugins/minruntime, preemptMinRuntime",
        snapshot(
            nodes=nodes(2),
            queues=[replace(queue("a", h100=2), min_run_time_s=600)],
            holding=[
                runs("young", "a", "n1/0", since_s=599),
                runs("old", "a", "n1/1", since_s=600),
            ],
            pending=[URGENT, job("x", "a", priority=8)],
        ),
        preempts={"w": "old"},
        waits={"x": Code.QUOTA_USED},
    ),
    Scenario(
        "of two nodes that which loses less gives, though it has more to evict",
        "Armada: pricer gang_pricer_test, should schedule gang on nodes with lowest cost",
        snapshot(
            nodes=nodes(2, 2),
            queues=OWN,
            holding=[
                runs("one", "a", "n1/0", "n1/1", since_s=500),
                *singles("p q", "a", gpus("n2", 0, 2)),
            ],
            pending=[job("w", "a", pods(gpus=2), priority=1)],
        ),
        preempts={"w": "p q"},
    ),
    Scenario(
        "of those who borrow the lower priority gives first",
        "KAI: reclaim_test, Reclaim trains according to priority",
        snapshot(
            nodes=nodes(4),
            queues=[queue("a", h100=4), queue("b", h100=FREE), queue("c", h100=FREE)],
            holding=[
                *singles("b1 b2", "b", gpus("n1", 0, 2), priority=5),
                *singles("c1 c2", "c", gpus("n1", 2, 4), priority=4),
            ],
            pending=[job("w", "a", pods(gpus=3))],
        ),
        reclaims={"w": "b1 c1 c2"},
    ),
    Scenario(
        "a borrower stays for the least time its own project grants",
        "KAI: docs/plugins/minruntime, reclaimMinRuntime by the victim's queue",
        snapshot(
            nodes=nodes(2),
            queues=[queue("a", h100=2), replace(queue("b", h100=FREE), min_run_time_s=101)],
            holding=singles("b1 b2", "b", gpus("n1", 0, 2)),
            pending=[job("w", "a"), job("x", "a", submitted_at=1)],
        ),
        reclaims={"w": "b2"},
        waits={"x": Code.COHORT_USED},
    ),
    Scenario(
        "a gang is owed on several nodes and takes from each",
        "YuniKorn: preemption_test, TestTryPreemption_VictimsAvailableOnDifferentNodes",
        snapshot(
            nodes=nodes(2, 2),
            queues=[queue("a", h100=4), queue("b", h100=FREE)],
            holding=singles("b1 b2 b3 b4", "b", [*gpus("n1", 0, 2), *gpus("n2", 0, 2)]),
            pending=[job("w", "a", pods(2, gpus=2))],
        ),
        reclaims={"w": "b1 b2 b3 b4"},
    ),
    Scenario(
        "who borrows a part of what it holds as one keeps all of it",
        "YuniKorn: preemption_test, TestTryPreemption_VictimsAvailable_InsufficientResource",
        snapshot(
            nodes=nodes(2),
            queues=[queue("a", h100=1), queue("b", h100=Quota(1, borrow=None))],
            holding=[runs("pair", "b", "n1/0", "n1/1")],
            pending=[job("w", "a")],
        ),
        waits={"w": Code.COHORT_USED},
    ),
    Scenario(
        "what several give together is no more than their project borrows",
        "YuniKorn: preemption_queue_test, TestGetPreemptableResource",
        snapshot(
            nodes=nodes(3),
            queues=[
                queue("a", h100=2),
                queue("b", h100=Quota(2, borrow=None)),
                queue("c", h100=1),
            ],
            holding=singles("b1 b2 b3", "b", gpus("n1", 0, 3)),
            pending=[job("w", "a", pods(gpus=2))],
        ),
        waits={"w": Code.NO_FREE_CAPACITY},
    ),
    Scenario(
        "who gave room but not quota stays once another gives both",
        "Kueue: docs preemption, targets that are not needed are let go in reverse",
        snapshot(
            nodes=nodes(2, 2),
            queues=[queue("a", h100=3)],
            holding=[
                runs("small", "a", "n1/0", since_s=1),
                runs("pair", "a", "n2/0", "n2/1", since_s=2),
            ],
            pending=[job("w", "a", pods(gpus=2), priority=1)],
        ),
        preempts={"w": "pair"},
    ),
    Scenario(
        "of two clusters that gives where less is lost",
        "Armada: pricer gang_pricer_test, should schedule job on nodes with lowest cost",
        snapshot(
            clusters=[cluster("c1", [node("m", gpus=1)]), cluster("c2", [node("n", gpus=1)])],
            queues=OWN,
            holding=[
                runs("old", "a", "m/0", since_s=900, in_cluster="c1"),
                runs("young", "a", "n/0", since_s=5, in_cluster="c2"),
            ],
            pending=[URGENT],
        ),
        preempts={"w": "young"},
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_least_is_lost_so_that(case: Scenario) -> None:
    check(case)
