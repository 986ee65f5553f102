"""Who is owed quota takes it back from those who borrow, and nobody else's."""

import pytest

from scheduler.core.reasons import ReasonCode as Code
from tests.core.build import Quota, job, node, pods, queue, runs, snapshot
from tests.core.scenarios.scenario import FREE, Scenario, check, gpus, nodes, singles

LENDS, BORROWS = queue("a", h100=2), queue("b", h100=Quota(2, borrow=None))
FOUR = singles("b1 b2 b3 b4", "b", gpus("n1", 0, 4))

CASES = (
    Scenario(
        "a borrower gives back what its lender asks for",
        "Kueue: preemption_test, reclaim quota from borrower",
        snapshot(nodes=nodes(4), queues=[LENDS, BORROWS], holding=FOUR, pending=[job("w", "a")]),
        reclaims={"w": "b1"},
    ),
    Scenario(
        "where nobody borrows nobody gives",
        "Kueue: preemption_test, no workloads borrowing",
        snapshot(
            nodes=nodes(4),
            queues=[queue("a", h100=Quota(2, borrow=None)), queue("b", h100=2)],
            holding=[
                *singles("a1 a2", "a", gpus("n1", 0, 2)),
                *singles("b1 b2", "b", gpus("n1", 2, 4), priority=-9),
            ],
            pending=[job("w", "a")],
        ),
        waits={"w": Code.COHORT_USED},
    ),
    Scenario(
        "nobody gives where what is borrowed is not enough",
        "Kueue: preemption_test, not enough workloads borrowing",
        snapshot(
            nodes=nodes(4),
            queues=[queue("a", h100=3), queue("b", h100=FREE), queue("c", h100=2)],
            holding=[
                runs("b1", "b", "n1/0"),
                *singles("c1 c2", "c", gpus("n1", 1, 3)),
                runs("a1", "a", "n1/3"),
            ],
            pending=[job("w", "a", pods(gpus=2))],
        ),
        waits={"w": Code.COHORT_USED},
    ),
    Scenario(
        "all who borrow may give for one",
        "Kueue: preemption_test, preempt from all ClusterQueues in cohort",
        snapshot(
            nodes=nodes(4),
            queues=[queue("a", h100=4), queue("b", h100=FREE), queue("c", h100=FREE)],
            holding=[
                *singles("b1 b2", "b", gpus("n1", 0, 2)),
                *singles("c1 c2", "c", gpus("n1", 2, 4)),
            ],
            pending=[job("w", "a", pods(gpus=3))],
        ),
        reclaims={"w": "b1 b2 c1"},
    ),
    Scenario(
        "who would itself borrow takes nothing back",
        "Kueue: scheduler_test, only eligible to do preemptions if it fits within nominal quota",
        snapshot(
            nodes=nodes(4),
            queues=[queue("a", h100=Quota(2, borrow=None)), BORROWS],
            holding=FOUR,
            pending=[job("w", "a", pods(gpus=3))],
        ),
        waits={"w": Code.COHORT_USED},
    ),
    Scenario(
        "what is held already counts against what may be taken back",
        "YuniKorn: preemption_test, TestIsAskQueueUnderGuaranteed",
        snapshot(
            nodes=nodes(4),
            queues=[queue("a", h100=Quota(2, borrow=None)), BORROWS],
            holding=[runs("a1", "a", "n1/3"), *FOUR[:3]],
            pending=[job("w", "a", pods(gpus=2)), job("x", "a", submitted_at=1)],
        ),
        reclaims={"x": "b1"},
        waits={"w": Code.COHORT_USED},
    ),
    Scenario(
        "nobody falls below nominal by giving",
        "Kueue: preemption_fair_test, cannot preempt if the candidate CQ would go under nominal",
        snapshot(
            nodes=nodes(4),
            queues=[LENDS, BORROWS],
            holding=[runs("all", "b", *gpus("n1", 0, 4))],
            pending=[job("w", "a", pods(gpus=2))],
        ),
        waits={"w": Code.COHORT_USED},
    ),
    Scenario(
        "a project gives down to its guarantee and no further",
        "YuniKorn: preemption_test, TestIsVictimQueueOverGuaranteed",
        snapshot(
            nodes=nodes(4),
            queues=[queue("a", h100=3), queue("b", h100=Quota(1, borrow=None))],
            holding=FOUR,
            pending=[job("w", "a", pods(gpus=3)), job("x", "a", submitted_at=1)],
        ),
        reclaims={"w": "b1 b2 b3"},
        waits={"x": Code.COHORT_USED},
    ),
    Scenario(
        "a borrower goes before the project's own lower work",
        "Kueue: scheduler_test, prefer reclamation over cq priority based preemption",
        snapshot(
            nodes=nodes(4),
            queues=[LENDS, BORROWS],
            holding=[runs("low", "a", "n1/0", priority=-9, since_s=1), *FOUR[1:]],
            pending=[job("w", "a")],
        ),
        reclaims={"w": "b2"},
    ),
    Scenario(
        "a borrower and the project's own lower work go together",
        "Kueue: preemption_fair_test, can preempt a combination of same CQ and highest user",
        snapshot(
            nodes=nodes(4),
            queues=[queue("a", h100=Quota(2, borrow=None)), BORROWS],
            holding=[runs("low", "a", "n1/0", priority=-1), *FOUR[1:]],
            pending=[job("w", "a", pods(gpus=2))],
        ),
        preempts={"w": "low"},
        reclaims={"w": "b2"},
    ),
    Scenario(
        "a borrower of higher priority gives all the same",
        "Kueue: preemption_test, reclaim borrowed quota for withinCohort=ReclaimFromAny",
        snapshot(
            nodes=nodes(2),
            queues=[LENDS, queue("b", h100=FREE)],
            holding=singles("b1 b2", "b", gpus("n1", 0, 2), priority=99),
            pending=[job("w", "a", pods(gpus=2), priority=-99)],
        ),
        reclaims={"w": "b1 b2"},
    ),
    Scenario(
        "a borrower that may not be evicted keeps what it has",
        "Armada: preempting_queue_scheduler_test, eviction does not evict non-preemptible",
        snapshot(
            nodes=nodes(2),
            queues=[LENDS, queue("b", h100=FREE)],
            holding=[
                runs("firm", "b", "n1/0", preemptible=False, since_s=1),
                runs("b1", "b", "n1/1", since_s=900),
            ],
            pending=[job("w", "a"), job("x", "a", submitted_at=1)],
        ),
        reclaims={"w": "b1"},
        waits={"x": Code.COHORT_USED},
    ),
    Scenario(
        "what is idle counts before anybody gives",
        "Volcano: reclaim_test, Node available resources should be included",
        snapshot(
            nodes=nodes(4),
            queues=[queue("a", h100=2), queue("b", h100=Quota(2, borrow=None))],
            holding=FOUR[:3],
            pending=[job("w", "a", pods(gpus=2))],
        ),
        reclaims={"w": "b1"},
    ),
    Scenario(
        "quota lent to others is taken back, and quota kept is used as it is",
        "Kueue: preemption_test, reclaim quota from lender",
        snapshot(
            nodes=nodes(4),
            queues=[queue("a", h100=Quota(3, lend=2)), queue("b", h100=Quota(1, borrow=None))],
            holding=FOUR[:3],
            pending=[job("w", "a", pods(gpus=3))],
        ),
        reclaims={"w": "b1 b2"},
    ),
    Scenario(
        "quota is taken back though devices are free",
        "Kueue: docs preemption, who does not fit within unused quota",
        snapshot(
            nodes=nodes(8),
            queues=[LENDS, BORROWS],
            holding=FOUR,
            pending=[job("w", "a", pods(gpus=2))],
        ),
        reclaims={"w": "b1 b2"},
    ),
    Scenario(
        "devices are taken back though quota is free",
        "Volcano: docs/design/reclaim-action",
        snapshot(
            nodes=nodes(4),
            queues=[queue("a", h100=4), queue("b", h100=FREE), queue("c", h100=4)],
            holding=FOUR,
            pending=[job("w", "a")],
        ),
        reclaims={"w": "b1"},
    ),
    Scenario(
        "who weighs nothing takes back what it is owed",
        "Kueue: preemption_fair_test, cq with zero weight can reclaim nominal quota",
        snapshot(
            nodes=nodes(2),
            queues=[
                queue("a", weight=0, h100=1),
                queue("b", weight=9, h100=Quota(1, borrow=None)),
            ],
            holding=singles("b1 b2", "b", gpus("n1", 0, 2)),
            pending=[job("w", "a")],
        ),
        reclaims={"w": "b1"},
    ),
    Scenario(
        "who weighs nothing keeps its nominal",
        "Kueue: preemption_fair_test, can't preempt nominal from CQ with 0 weight",
        snapshot(
            nodes=nodes(2),
            queues=[queue("a", h100=2), queue("b", weight=0, h100=2)],
            holding=singles("b1 b2", "b", gpus("n1", 0, 2), priority=-1),
            pending=[job("w", "a", priority=9)],
        ),
        waits={"w": Code.NO_FREE_CAPACITY},
    ),
    Scenario(
        "quota that was cut is taken back by whom it is owed to now",
        "Kueue: docs preemption, a ClusterQueue whose usage is above nominal",
        snapshot(
            nodes=nodes(4),
            queues=[queue("a", h100=3), queue("b", h100=1)],
            holding=FOUR,
            pending=[job("w", "a", pods(gpus=2))],
        ),
        reclaims={"w": "b1 b2"},
    ),
    Scenario(
        "who takes back gives up its own lower work rather than to borrow",
        "Kueue: preemption_test, preempting locally and not borrowing",
        snapshot(
            nodes=nodes(8),
            queues=[queue("a", h100=Quota(4, borrow=None)), BORROWS, queue("c", h100=2)],
            holding=[
                runs("low", "a", "n1/0", "n1/1", priority=-1, since_s=9000),
                *singles("b1 b2 b3 b4 b5 b6", "b", gpus("n1", 2, 8)),
            ],
            pending=[job("w", "a", pods(gpus=4))],
        ),
        preempts={"w": "low"},
        reclaims={"w": "b1 b2"},
    ),
    Scenario(
        "who borrows devices gives none of the cores that are its own",
        "YuniKorn: preemption_test, TestTryPreemption_OnNode_AskResTypesDifferent",
        snapshot(
            nodes=[node("n1", gpus=2, cores=8)],
            queues=[queue("a", h100=2), queue("b", h100=FREE, cpu=8)],
            holding=[
                runs("lent", "b", "n1/0"),
                runs("owned", "b", "n1", flavor="cpu", cores=6),
            ],
            pending=[job("w", "a", pods(cores=4))],
        ),
        waits={"w": Code.NO_FIT},
        numbers={"w": {"binds": "cores"}},
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_is_owed_is_taken_back_so_that(case: Scenario) -> None:
    check(case)
