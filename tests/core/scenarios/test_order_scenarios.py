"""Whose turn it is, what keeps a queue back, and where nothing may start."""

from dataclasses import replace

import pytest

from scheduler.core.policy import Policy
from scheduler.core.reasons import ReasonCode as Code
from scheduler.core.snapshot import PendingView
from scheduler.core.submitted import TurnView
from scheduler.core.units import WorkloadId
from tests.core.build import (
    AT,
    cluster,
    cpu_pods,
    job,
    node,
    pods,
    queue,
    runs,
    snapshot,
)
from tests.core.scenarios.scenario import FREE, Scenario, check, gpus, nodes, singles

ALL = [queue("a", h100=8, a30=8, cpu=64)]


def _as(name: str, at: int, of: str, submitted_at: int = 0) -> PendingView:
    """In the turn of another."""
    made = job(name, "a", submitted_at=submitted_at)
    return replace(made, turn=TurnView(at, WorkloadId(of)))


CASES = (
    Scenario(
        "higher priority starts before what is older",
        "KAI: allocate_test, allocate according to priority",
        snapshot(
            nodes=nodes(1),
            queues=ALL,
            pending=[job("old", "a"), job("urgent", "a", priority=1, submitted_at=9)],
        ),
        starts="urgent",
        waits={"old": Code.NO_FREE_CAPACITY},
    ),
    Scenario(
        "of equal priority the older starts",
        "YuniKorn: partition_test, TestAppSchedulingOrderFIFO",
        snapshot(
            nodes=nodes(1),
            queues=ALL,
            pending=[job("a2", "a", submitted_at=2), job("z1", "a", submitted_at=1)],
        ),
        starts="z1",
        waits={"a2": Code.NO_FREE_CAPACITY},
    ),
    Scenario(
        "who was put first among the work of its project goes before what is older",
        "Slurm: scontrol, top",
        snapshot(
            nodes=nodes(1),
            queues=ALL,
            pending=[_as("old", 5, "put-first"), _as("put-first", 0, "old", submitted_at=5)],
        ),
        starts="put-first",
        waits={"old": Code.NO_FREE_CAPACITY},
    ),
    Scenario(
        "putting work first among its submitter's own moves nobody else's",
        "Slurm: scontrol, top, jobs of other users keep their priority",
        snapshot(
            nodes=nodes(2),
            queues=ALL,
            pending=[
                _as("ada-1", 2, "ada-2"),
                job("ben", "a", submitted_at=1),
                _as("ada-2", 0, "ada-1", submitted_at=2),
            ],
        ),
        starts="ada-2 ben",
        waits={"ada-1": Code.NO_FREE_CAPACITY},
    ),
    Scenario(
        "a higher priority goes before any turn",
        "Armada: reprioritize, the priority orders a queue",
        snapshot(
            nodes=nodes(1),
            queues=ALL,
            pending=[_as("first", 0, "x"), job("raised", "a", priority=1, submitted_at=9)],
        ),
        starts="raised",
        waits={"first": Code.NO_FREE_CAPACITY},
    ),
    Scenario(
        "between projects within nominal the older starts",
        "KAI: allocate_test, allocate according to creation time when share is equal",
        snapshot(
            nodes=nodes(1),
            queues=[queue("a", h100=1), queue("b", h100=1)],
            pending=[job("a1", "a", submitted_at=2), job("b1", "b", submitted_at=1)],
        ),
        starts="b1",
        waits={"a1": Code.NO_FREE_CAPACITY},
    ),
    Scenario(
        "unlike with Kueue's StrictFIFO, who does not fit keeps none behind it from starting",
        "Kueue: docs cluster_queue, queueing strategy BestEffortFIFO",
        snapshot(
            nodes=nodes(4),
            queues=ALL,
            holding=[runs("r", "a", "n1/0")],
            pending=[job("big", "a", pods(gpus=4)), job("small", "a", submitted_at=1)],
        ),
        starts="small",
        waits={"big": Code.NO_FREE_CAPACITY},
    ),
    Scenario(
        "who could never start keeps no quota from those behind it",
        "Armada: gang_scheduler_test, constraint makes job scheduling key unfeasible",
        snapshot(
            nodes=nodes(2),
            queues=[queue("a", h100=1), queue("b", h100=FREE)],
            holding=[runs("r", "b", "n1/0", preemptible=False)],
            pending=[job("huge", "a", pods(gpus=9), priority=9), job("x", "a")],
        ),
        waits={"huge": Code.NEVER_ADMISSIBLE, "x": Code.COHORT_USED},
    ),
    Scenario(
        "those behind work of higher priority take no nominal quota that it waits for",
        "Kueue: scheduler_test, workload requiring reclamation prioritized over another",
        snapshot(
            nodes=nodes(4),
            queues=[queue("a", h100=4), queue("b", h100=FREE)],
            holding=singles("b1 b2", "b", gpus("n1", 0, 2)),
            pending=[job("head", "a", pods(gpus=4), priority=9), job("x", "a")],
        ),
        reclaims={"head": "b1 b2"},
        waits={"x": Code.COHORT_USED},
    ),
    Scenario(
        "identical requests wait for one reason when the first of them does",
        "Kueue: KEP-9694, scheduling equivalence hashing",
        snapshot(
            nodes=nodes(4),
            queues=ALL,
            pending=[
                *(job(f"w{i}", "a", pods(gpus=3), submitted_at=i) for i in range(3)),
                job("x", "a", submitted_at=9),
            ],
        ),
        starts="w0 x",
        waits=dict.fromkeys(["w1", "w2"], Code.NO_FREE_CAPACITY),
    ),
    Scenario(
        "a start that failed is tried again later, and others go before it",
        "YuniKorn: partition_test, TestApplicationBackoff",
        snapshot(
            nodes=nodes(1),
            queues=ALL,
            pending=[job("w", "a", priority=9, not_before=AT + 30), job("x", "a")],
        ),
        starts="x",
        waits={"w": Code.BACKOFF},
        numbers={"w": {"retry_in_s": 30}},
    ),
    Scenario(
        "a retry that is due starts in its turn",
        "Kueue: KEP-1282, requeueing after a timestamp",
        snapshot(
            nodes=nodes(1),
            queues=ALL,
            pending=[job("w", "a", priority=9, not_before=AT), job("x", "a")],
        ),
        starts="w",
        waits={"x": Code.NO_FREE_CAPACITY},
    ),
    Scenario(
        "after so many starts the rest is for the next plan",
        "Armada: queue_scheduler_test, MaximumSchedulingBurst",
        snapshot(
            nodes=nodes(4),
            queues=ALL,
            pending=[job(f"w{i}", "a", submitted_at=i) for i in range(4)],
        ),
        starts="w0 w1",
        waits=dict.fromkeys(["w2", "w3"], Code.BEHIND),
        policy=Policy(max_admits=2),
    ),
    Scenario(
        "a cluster that is out takes nothing, and who accepts no other is told",
        "Armada: scheduling_algo_test, do not schedule onto stale executors",
        snapshot(
            clusters=[
                cluster("c1", [node("m", gpus=4)], usable=False),
                cluster("c2", [node("n", gpus=4)]),
            ],
            queues=ALL,
            pending=[job("any", "a"), job("one", "a", clusters="c1")],
        ),
        starts="any",
        on={"any": "n"},
        waits={"one": Code.CLUSTER_UNAVAILABLE},
        numbers={"one": {"clusters_count": 1}},
    ),
    Scenario(
        "work starts in the clusters that it accepts alone",
        "Armada: scheduling_algo_test, scheduling - mixed pool clusters",
        snapshot(
            clusters=[cluster("c1", [node("m", gpus=1)]), cluster("c2", [node("n", gpus=8)])],
            queues=ALL,
            holding=[runs("r", "a", "m/0")],
            pending=[job("w", "a", clusters="c1"), job("x", "a", clusters="c2")],
        ),
        starts="x",
        on={"x": "n"},
        waits={"w": Code.NO_FREE_CAPACITY},
    ),
    Scenario(
        "an empty fleet starts nothing and says that no flavor is there",
        "YuniKorn: operation_test, TestSchedulerWithoutNodes",
        snapshot(queues=ALL, pending=[job("w", "a")]),
        waits={"w": Code.NO_MATCHING_FLAVOR},
    ),
    Scenario(
        "work without devices keeps out of nobody's way and starts beside a gang that waits",
        "Volcano: allocate_test, high priority queue should not block others",
        snapshot(
            nodes=nodes(2),
            queues=[queue("a", h100=4), queue("b", cpu=8)],
            holding=[runs("r", "a", "n1/0", priority=99)],
            pending=[job("w", "a", pods(2), priority=9), job("c", "b", cpu_pods(cores=2))],
        ),
        starts="c",
        waits={"w": Code.NO_FREE_CAPACITY},
    ),
    Scenario(
        "unlike in KAI, who is second in its project takes nothing back past who is first",
        "KAI: reclaim_test, the pending job with the second highest priority job should reclaim",
        snapshot(
            nodes=nodes(4),
            queues=[queue("a", h100=8), queue("b", h100=FREE), queue("c", h100=3)],
            holding=[
                runs("firm", "c", "n1/0", "n1/2", "n1/3", preemptible=False),
                runs("lent", "b", "n1/1"),
            ],
            pending=[job("head", "a", pods(gpus=4), priority=2), job("later", "a", priority=1)],
        ),
        waits={"head": Code.NO_FREE_CAPACITY, "later": Code.NO_FREE_CAPACITY},
    ),
    Scenario(
        "who is second takes back what is owed where the first could never start",
        "KAI: reclaim_test, the pending job with the second highest priority job should reclaim",
        snapshot(
            nodes=nodes(4),
            queues=[queue("a", h100=8), queue("b", h100=FREE), queue("c", h100=3)],
            holding=[
                runs("firm", "c", "n1/0", "n1/2", "n1/3", preemptible=False),
                runs("lent", "b", "n1/1"),
            ],
            pending=[job("head", "a", pods(gpus=9), priority=2), job("later", "a", priority=1)],
        ),
        reclaims={"later": "lent"},
        waits={"head": Code.NEVER_ADMISSIBLE},
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_turns_are_taken_so_that(case: Scenario) -> None:
    check(case)
