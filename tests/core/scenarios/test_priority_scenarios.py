"""Eviction within a project: for higher priority, of as little as does."""

import pytest

from scheduler.core.policy import Policy
from scheduler.core.reasons import ReasonCode as Code
from tests.core.build import (
    A30,
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
        "work of the lowest priority goes",
        "Kueue: preemption_test, preempt lowest priority",
        snapshot(
            nodes=nodes(3),
            queues=OWN,
            holding=[
                runs("mid", "a", "n1/0", since_s=1),
                runs("low", "a", "n1/1", priority=-1, since_s=50),
                runs("high", "a", "n1/2", priority=1, since_s=1),
            ],
            pending=[job("w", "a", priority=1)],
        ),
        preempts={"w": "low"},
    ),
    Scenario(
        "as many go as are needed",
        "Kueue: preemption_test, preempt multiple",
        snapshot(
            nodes=nodes(4),
            queues=OWN,
            holding=[
                *singles("p q", "a", gpus("n1", 0, 2)),
                *singles("high1 high2", "a", gpus("n1", 2, 4), priority=9),
            ],
            pending=[job("w", "a", pods(gpus=2), priority=1)],
        ),
        preempts={"w": "p q"},
    ),
    Scenario(
        "work of low priority evicts nobody",
        "Kueue: preemption_test, no preemption for low priority",
        snapshot(
            nodes=nodes(2),
            queues=OWN,
            holding=singles("p q", "a", gpus("n1", 0, 2)),
            pending=[job("w", "a", priority=-1)],
        ),
        waits={"w": Code.NO_FREE_CAPACITY},
        numbers={"w": {"asked_milli": 1000, "free_milli": 0}},
    ),
    Scenario(
        "nobody goes where those who may are not enough",
        "Kueue: preemption_test, not enough low priority workloads",
        snapshot(
            nodes=nodes(3),
            queues=OWN,
            holding=[
                runs("low", "a", "n1/0", priority=-1),
                *singles("p q", "a", gpus("n1", 1, 3)),
            ],
            pending=[job("w", "a", pods(gpus=2))],
        ),
        waits={"w": Code.NO_FREE_CAPACITY},
    ),
    Scenario(
        "what is free is used before anybody goes",
        "Kueue: preemption_test, some free quota, preempt low priority",
        snapshot(
            nodes=nodes(4),
            queues=[queue("a", h100=4)],
            holding=[
                *singles("p q", "a", gpus("n1", 0, 2), priority=-1),
                runs("firm", "a", "n1/2", preemptible=False),
            ],
            pending=[job("w", "a", pods(gpus=2))],
        ),
        preempts={"w": "p"},
    ),
    Scenario(
        "only those who hold the flavor go",
        "Kueue: preemption_test, only preempt workloads using the chosen flavor",
        snapshot(
            nodes=[node("n1", gpus=1), node("n2", gpus=1, model=A30)],
            queues=[queue("a", h100=1, a30=1)],
            holding=[
                runs("other", "a", "n2/0", flavor="a30", priority=-9),
                runs("low", "a", "n1/0", priority=-1, since_s=999),
            ],
            pending=[job("w", "a")],
        ),
        preempts={"w": "low"},
    ),
    Scenario(
        "each set of pods evicts in its own flavor",
        "Kueue: preemption_test, each podset preempts a different flavor",
        snapshot(
            nodes=[node("n1", gpus=1), node("n2", gpus=1, model=A30)],
            queues=[queue("a", h100=1, a30=1)],
            holding=[
                runs("p", "a", "n1/0", priority=-1),
                runs("q", "a", "n2/0", flavor="a30", priority=-1),
            ],
            pending=[job("w", "a", pods(name="x"), pods(flavors="a30", name="y"))],
        ),
        preempts={"w": "p q"},
    ),
    Scenario(
        "unlike with Kueue's LowerOrNewerEqualPriority, newer work of the same priority stays",
        "Kueue: preemption_test, preempt newer workloads with the same priority",
        snapshot(
            nodes=nodes(1),
            queues=OWN,
            holding=[runs("new", "a", "n1/0", since_s=1)],
            pending=[job("w", "a", submitted_at=-9)],
        ),
        waits={"w": Code.NO_FREE_CAPACITY},
    ),
    Scenario(
        "nobody goes where enough is idle on another node",
        "Volcano: preempt_test, do not preempt if there are enough idle resources",
        snapshot(
            nodes=nodes(2, 2),
            queues=OWN,
            holding=singles("p q", "a", gpus("n1", 0, 2), priority=-5),
            pending=[job("w", "a", pods(gpus=2), priority=9)],
        ),
        starts="w",
        on={"w": "n2"},
    ),
    Scenario(
        "work that may not be evicted stays, and so does work of higher priority",
        "Volcano: preempt_test, not pod with preemptable=false or higher priority",
        snapshot(
            nodes=nodes(3),
            queues=OWN,
            holding=[
                runs("firm", "a", "n1/0", priority=-9, preemptible=False),
                runs("high", "a", "n1/1", priority=10),
                runs("low", "a", "n1/2", priority=8),
            ],
            pending=[URGENT],
        ),
        preempts={"w": "low"},
    ),
    Scenario(
        "nobody goes for a pod that no node could hold",
        "KAI: preempt_test, no node can contain build job - don't preempt",
        snapshot(
            nodes=nodes(2, 2),
            queues=OWN,
            holding=singles("p q", "a", ["n1/0", "n2/0"], priority=-1),
            pending=[job("w", "a", pods(gpus=3), priority=9)],
        ),
        waits={"w": Code.EXCEEDS_CAPACITY},
    ),
    Scenario(
        "nobody goes who is not where the others are that would have to",
        "YuniKorn: preemption_test, VictimsOnDifferentNodes_InsufficientResource",
        snapshot(
            nodes=nodes(2, 2),
            queues=OWN,
            holding=[
                *singles("p q", "a", ["n1/0", "n2/0"], priority=-1),
                *singles("f g", "a", ["n1/1", "n2/1"], priority=9),
            ],
            pending=[job("w", "a", pods(gpus=2), priority=1)],
        ),
        waits={"w": Code.NO_FREE_CAPACITY},
    ),
    Scenario(
        "work of lower priority in another project stays",
        "KAI: preemptMIG_test, Train job runs in a different queue - should not preempt",
        snapshot(
            nodes=nodes(2),
            queues=[queue("a", h100=1), queue("b", h100=2)],
            holding=singles("p q", "b", gpus("n1", 0, 2), priority=-9),
            pending=[URGENT],
        ),
        waits={"w": Code.NO_FREE_CAPACITY},
    ),
    Scenario(
        "each of several priorities evicts below itself",
        "Armada: preempting_queue_scheduler_test, preemption through multiple levels",
        snapshot(
            nodes=nodes(2),
            queues=OWN,
            holding=[runs("p0", "a", "n1/0", priority=0), runs("p1", "a", "n1/1", priority=1)],
            pending=[job("w2", "a", priority=2), job("w1", "a", priority=1), job("w0", "a")],
        ),
        preempts={"w2": "p0"},
        waits={"w1": Code.NO_FREE_CAPACITY, "w0": Code.NO_FREE_CAPACITY},
    ),
    Scenario(
        "who waits for an eviction keeps nobody from other hardware",
        "Kueue: scheduler_test, workload waiting for preemption should not block in another CQ",
        snapshot(
            nodes=[node("n1", gpus=1), node("n2", gpus=1, model=A30)],
            queues=[queue("a", h100=1), queue("b", a30=FREE), queue("c", a30=1)],
            holding=[runs("low", "a", "n1/0")],
            pending=[URGENT, job("x", "b", pods(flavors="a30"))],
        ),
        starts="x",
        preempts={"w": "low"},
    ),
    Scenario(
        "where eviction is off nobody goes",
        "Kueue: preemption_test, can't preempt workloads for withinClusterQueue=Never",
        snapshot(nodes=nodes(1), queues=OWN, holding=[runs("low", "a", "n1/0")], pending=[URGENT]),
        waits={"w": Code.NO_FREE_CAPACITY},
        policy=Policy(preemption=False),
    ),
    Scenario(
        "cores are evicted for as devices are",
        "Volcano: preempt_test, normal preemption evicts a victim for what is not available",
        snapshot(
            nodes=[node("n1", gpus=1, cores=8)],
            queues=OWN,
            holding=[runs("c", "a", "n1", flavor="cpu", cores=6)],
            pending=[job("w", "a", pods(cores=4), priority=1)],
        ),
        preempts={"w": "c"},
    ),
    Scenario(
        "own work goes though another project's beside it is of lower priority",
        "Armada: preempting_queue_scheduler_test, avoid urgency-based preemption cross-queue",
        snapshot(
            nodes=nodes(2),
            queues=[queue("a", h100=2), queue("b", h100=1)],
            holding=[
                runs("other", "b", "n1/0", priority=-9, since_s=1),
                runs("own", "a", "n1/1", since_s=900),
            ],
            pending=[URGENT],
        ),
        preempts={"w": "own"},
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_higher_priority_evicts_so_that(case: Scenario) -> None:
    check(case)
