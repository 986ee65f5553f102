"""Plan after plan: evictions do not go round, and what is promised once is not promised twice."""

from dataclasses import replace

import pytest

from scheduler.core.policy import Policy
from scheduler.core.reasons import ReasonCode as Code
from tests.core.build import (
    Quota,
    job,
    pods,
    queue,
    runs,
    snapshot,
)
from tests.core.scenarios.scenario import FREE, Scenario, check, gpus, nodes, singles

OWN = [queue("a", h100=8, cpu=64)]
URGENT = job("w", "a", priority=9)

LENDS, BORROWS = queue("a", h100=2), queue("b", h100=Quota(2, borrow=None))
FOUR = singles("b1 b2 b3 b4", "b", gpus("n1", 0, 4))


CASES = (
    Scenario(
        "who is on the way out is not evicted again, and nobody else is",
        "Kueue: preemption_test, skip duplicate preemption across calls",
        snapshot(
            nodes=nodes(2),
            queues=OWN,
            holding=[runs("out", "a", "n1/0", releasing=True), runs("low", "a", "n1/1")],
            pending=[URGENT],
        ),
        waits={"w": Code.WAITING_FOR_PREEMPTION},
        numbers={"w": {"victims_count": 0, "coming_milli": 1000}},
    ),
    Scenario(
        "two who evict get different victims, and a third waits",
        "Kueue: scheduler_fs_test, multiple preemptions skip overlapping preemption targets",
        snapshot(
            nodes=nodes(2),
            queues=OWN,
            holding=singles("p q", "a", gpus("n1", 0, 2)),
            pending=[job(f"w{i}", "a", priority=1, submitted_at=i) for i in range(3)],
        ),
        preempts={"w0": "p", "w1": "q"},
        waits={"w2": Code.NO_FREE_CAPACITY},
    ),
    Scenario(
        "after its fill of evictions a plan evicts for nobody else",
        "Armada: preempting_queue_scheduler_test, MaximumSchedulingRate",
        snapshot(
            nodes=nodes(4),
            queues=OWN,
            holding=singles("p q r s", "a", gpus("n1", 0, 4)),
            pending=[job("w", "a", pods(gpus=2), priority=9), job("x", "a", priority=8)],
        ),
        preempts={"w": "p q"},
        waits={"x": Code.NO_FREE_CAPACITY},
        policy=Policy(max_victims=1),
    ),
    Scenario(
        "who was evicted and asks again evicts nobody, and comes last",
        "Armada: preempting_queue_scheduler_test, urgency-based preemption stability",
        snapshot(
            nodes=nodes(1),
            queues=OWN,
            holding=[runs("low", "a", "n1/0")],
            pending=[URGENT],
        ),
        preempts={"w": "low"},
        again=(job("low", "a", submitted_at=-99),),
        ends="w",
    ),
    Scenario(
        "a chain of priorities comes to rest with the highest",
        "Armada: preempting_queue_scheduler_test, priority class preemption four classes",
        snapshot(
            nodes=nodes(2),
            queues=OWN,
            holding=[runs("p0", "a", "n1/0", priority=0), runs("p1", "a", "n1/1", priority=1)],
            pending=[job("w2", "a", priority=2), job("w3", "a", priority=3)],
        ),
        preempts={"w3": "p0", "w2": "p1"},
        again=(job("p0", "a", priority=0), job("p1", "a", priority=1)),
        ends="w2 w3",
    ),
    Scenario(
        "what is coming back counts before anybody gives",
        "KAI: reclaim_test, Reclaim based on releasing and idle resources",
        snapshot(
            nodes=nodes(4),
            queues=[queue("a", h100=4), queue("b", h100=FREE)],
            holding=[replace(FOUR[0], releasing=True), *FOUR[1:3]],
            pending=[job("w", "a", pods(gpus=3))],
        ),
        reclaims={"w": "b2"},
        numbers={"w": {"coming_milli": 3000, "victims_count": 1}},
    ),
    Scenario(
        "two who are owed take from different borrowers",
        "Kueue: scheduler_test, multiple CQs need preemption",
        snapshot(
            nodes=nodes(4),
            queues=[queue("a", h100=1), queue("d", h100=1), BORROWS],
            holding=FOUR,
            pending=[job("w", "a"), job("x", "d", submitted_at=1)],
        ),
        reclaims={"w": "b1", "x": "b2"},
    ),
    Scenario(
        "who gave and asks again borrows no more until its lender has what it is owed",
        "KAI: reclaim_test, we don't reclaim because allocate will cause a loop",
        snapshot(
            nodes=nodes(4),
            queues=[LENDS, BORROWS],
            holding=[replace(held, priority=50) for held in FOUR],
            pending=[job("w", "a", pods(gpus=2))],
        ),
        reclaims={"w": "b1 b2"},
        again=tuple(job(name, "b", priority=50) for name in ("b1", "b2")),
        ends="b3 b4 w",
    ),
    Scenario(
        "two projects that owe each other nothing come to rest",
        "Kueue: preemption_fair_test, scenario above does not flap",
        snapshot(
            nodes=nodes(3),
            queues=[
                queue("a", h100=Quota(1, borrow=None)),
                queue("b", h100=Quota(1, borrow=None)),
                queue("c", h100=Quota(1, borrow=None)),
            ],
            holding=singles("b1 b2 b3", "b", gpus("n1", 0, 3)),
            pending=[
                *(job(f"a{i}", "a", submitted_at=i) for i in range(3)),
                *(job(f"c{i}", "c", submitted_at=i) for i in range(3)),
            ],
        ),
        reclaims={"a0": "b1", "c0": "b2"},
        waits=dict.fromkeys(["a1", "a2", "c1", "c2"], Code.COHORT_USED),
        again=tuple(job(name, "b", priority=0) for name in ("b1", "b2", "b3")),
        ends="a0 b3 c0",
    ),
    Scenario(
        "who needs only what is on its way back waits for it, and nobody goes",
        "KAI: reclaim_test, Reclaim based on releasing resources without consolidation",
        snapshot(
            nodes=nodes(2),
            queues=OWN,
            holding=[
                runs("out", "a", "n1/0", releasing=True),
                runs("firm", "a", "n1/1", preemptible=False),
            ],
            pending=[job("w", "a"), job("x", "a", submitted_at=1)],
        ),
        waits={"w": Code.WAITING_FOR_PREEMPTION, "x": Code.NO_FREE_CAPACITY},
        numbers={"w": {"victims_count": 0, "coming_milli": 1000}},
    ),
    Scenario(
        "another project waits for what a victim gives beyond need",
        "Armada: docs scheduling_and_preempting_jobs, one preemption may help several jobs",
        snapshot(
            nodes=nodes(2),
            queues=[queue("a", h100=2), queue("b", h100=1)],
            holding=[runs("pair", "a", "n1/0", "n1/1")],
            pending=[URGENT, job("x", "b")],
        ),
        preempts={"w": "pair"},
        waits={"x": Code.WAITING_FOR_PREEMPTION},
        numbers={"x": {"victims_count": 0}},
    ),
    Scenario(
        "who evicts does not count on what another has just started on",
        "Kueue: scheduler_test, multiple preemptions possible after earlier workload fits",
        snapshot(
            nodes=nodes(2),
            queues=OWN,
            holding=[runs("low", "a", "n1/0", priority=-1)],
            pending=[job("w1", "a", priority=9), job("w2", "a", priority=8)],
        ),
        starts="w1",
        preempts={"w2": "low"},
    ),
    Scenario(
        "quota that one evicts for is not found again by the next",
        "Kueue: scheduler_test, multiple preemptions skip preemption when shared limited resource",
        snapshot(
            nodes=nodes(8),
            queues=[queue("a", h100=2)],
            holding=[
                runs("low", "a", "n1/0", priority=-1),
                runs("high", "a", "n1/1", priority=99),
            ],
            pending=[job("w1", "a"), job("w2", "a", submitted_at=1)],
        ),
        preempts={"w1": "low"},
        waits={"w2": Code.QUOTA_USED},
    ),
    Scenario(
        "what a project gives back itself counts before what it is owed beyond",
        "KAI: reclaim_test, Reclaim based on releasing and idle resources",
        snapshot(
            nodes=nodes(3),
            queues=[LENDS, queue("b", h100=Quota(1, borrow=None))],
            holding=[
                runs("out", "a", "n1/0", releasing=True),
                *singles("b1 b2", "b", gpus("n1", 1, 3)),
            ],
            pending=[job("w", "a", pods(gpus=2))],
        ),
        reclaims={"w": "b1"},
    ),
    Scenario(
        "who waits for an eviction keeps what is free already",
        "KAI: reclaimFractional_test, whole gpu job is being pipelined, another not to this node",
        snapshot(
            nodes=nodes(3),
            queues=OWN,
            holding=[
                runs("low", "a", "n1/0", priority=-1),
                runs("high", "a", "n1/1", priority=99),
            ],
            pending=[job("w", "a", pods(gpus=2), priority=9), job("x", "a", priority=-1)],
        ),
        preempts={"w": "low"},
        waits={"x": Code.NO_FREE_CAPACITY},
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_plans_come_to_rest_so_that(case: Scenario) -> None:
    check(case)
