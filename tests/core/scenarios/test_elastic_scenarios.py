"""Gangs that run get pods of what nobody waits for, and give them back first."""

from dataclasses import replace

import pytest

from scheduler.core.policy import Policy
from scheduler.core.reasons import ReasonCode as Code
from scheduler.core.snapshot import HoldingView, TopologyView
from tests.core.build import Quota, job, node, pods, queue, runs, snapshot
from tests.core.scenarios.scenario import FREE, Scenario, check, gpus, nodes, singles


def elastic(
    name: str, project: str, *where: str, least: int = 1, most: int = 4, priority: int = 0
) -> HoldingView:
    """A gang that runs with one device a pod."""
    return runs(name, project, *where, of=pods(most, least=least), priority=priority, since_s=100)


OWNS, BORROWS = queue("a", h100=4), queue("b", h100=FREE)

CASES = (
    Scenario(
        "a gang that runs with less than it asks for gets what comes free",
        "KAI: docs/elastic, additional workers on what is available",
        snapshot(
            nodes=nodes(4), queues=[queue("a", h100=8)], holding=[elastic("e", "a", "n1/0")]
        ),
        grows={"e": "n1 n1 n1"},
    ),
    Scenario(
        "work that waits starts before anything grows",
        "KAI: docs/elastic, minimum as the gang threshold",
        snapshot(
            nodes=nodes(3),
            queues=[queue("a", h100=8)],
            holding=[elastic("e", "a", "n1/0", priority=9)],
            pending=[job("w", "a")],
        ),
        starts="w",
        grows={"e": "n1"},
    ),
    Scenario(
        "a gang grows no further than its project may hold",
        "KAI: allocate_test, does not allow to project to go over allowance",
        snapshot(nodes=nodes(4), queues=[queue("a", h100=2)], holding=[elastic("e", "a", "n1/0")]),
        grows={"e": "n1"},
    ),
    Scenario(
        "nothing grows in a project whose queue is held",
        "Kueue: docs cluster_queue, stopPolicy Hold",
        snapshot(
            nodes=nodes(4),
            queues=[replace(queue("a", h100=8), held_by=("tenant a",))],
            holding=[elastic("e", "a", "n1/0")],
        ),
    ),
    Scenario(
        "who holds less grows first",
        "Kueue: KEP-1714, fair sharing",
        snapshot(
            nodes=nodes(4),
            queues=[queue("a", h100=Quota(1, None)), queue("b", h100=Quota(2, None)),
                    queue("c", h100=9)],
            holding=[elastic("x", "a", "n1/0", "n1/1"), elastic("y", "b", "n1/2")],
        ),
        grows={"y": "n1"},
    ),
    Scenario(
        "a gang that has to be in one rack grows in it alone",
        "Kueue: scheduler_tas_test, TAS workload gets scheduled as trimmed by partial admission",
        snapshot(
            nodes=[node("n1", gpus=2, at="r1"), node("n2", gpus=4, at="r2")],
            queues=[queue("a", h100=8)],
            holding=[replace(elastic("e", "a", "n1/0"), topology=TopologyView("rack", True))],
            levels="rack",
        ),
        grows={"e": "n1"},
    ),
    Scenario(
        "an elastic borrower gives what is owed, the newest pods first, and runs on",
        "KAI: reclaim_test, Reclaim only over quota task from elastic Job",
        snapshot(
            nodes=nodes(4), queues=[OWNS, BORROWS],
            holding=[elastic("e", "b", *gpus("n1", 0, 4))],
            pending=[job("w", "a", pods(2))],
        ),
        shrinks={"w": "e-3 e-2"},
    ),
    Scenario(
        "the pods beyond the least go before a whole workload of lower priority",
        "KAI: docs/elastic, evict only part of its pods",
        snapshot(
            nodes=nodes(3), queues=[OWNS, BORROWS],
            holding=[
                elastic("e", "b", *gpus("n1", 0, 2), priority=5),
                *singles("low", "b", ["n1/2"], priority=-5),
            ],
            pending=[job("w", "a")],
        ),
        shrinks={"w": "e-1"},
    ),
    Scenario(
        "of work that is not preemptible what is beyond its least goes",
        "Run:ai: What's New in 3.0, semi-preemptible workloads",
        snapshot(
            nodes=nodes(3), queues=[OWNS, BORROWS],
            holding=[replace(elastic("e", "b", *gpus("n1", 0, 3), least=2), preemptible=False)],
            pending=[job("w", "a")],
        ),
        shrinks={"w": "e-2"},
    ),
    Scenario(
        "the least of work that is not preemptible stays",
        "Run:ai: What's New in 3.0, semi-preemptible workloads",
        snapshot(
            nodes=nodes(3), queues=[OWNS, BORROWS],
            holding=[replace(elastic("e", "b", *gpus("n1", 0, 3), least=2), preemptible=False)],
            pending=[job("w", "a", pods(2))],
        ),
        waits={"w": Code.COHORT_USED},
    ),
    Scenario(
        "who needs more than the pods beyond the least takes all of a gang",
        "KAI: docs/elastic, below the minimum the entire workload is evicted",
        snapshot(
            nodes=nodes(4), queues=[OWNS, BORROWS],
            holding=[elastic("e", "b", *gpus("n1", 0, 4), least=3)],
            pending=[job("w", "a", pods(2))],
        ),
        reclaims={"w": "e"},
    ),
    Scenario(
        "pods of one gang and another gang go together for who needs both",
        "KAI: docs/elastic, evict only part of its pods",
        snapshot(
            nodes=nodes(4), queues=[OWNS, BORROWS],
            holding=[
                elastic("e", "b", *gpus("n1", 0, 2), least=1),
                runs("f", "b", *gpus("n1", 2, 4)),
            ],
            pending=[job("w", "a", pods(3))],
        ),
        shrinks={"w": "e-1"},
        reclaims={"w": "f"},
    ),
    Scenario(
        "urgent work takes pods of its own project's gangs",
        "KAI: docs/elastic, resources requested by more prioritized workload",
        snapshot(
            nodes=nodes(2), queues=[queue("a", h100=2)],
            holding=[elastic("e", "a", *gpus("n1", 0, 2))],
            pending=[job("w", "a", priority=9)],
        ),
        shrinks={"w": "e-1"},
    ),
    Scenario(
        "what was given back is not grown back while somebody waits for it",
        "KAI: reclaim_test, we don't reclaim because allocate will cause a loop",
        snapshot(
            nodes=nodes(4), queues=[OWNS, BORROWS],
            holding=[elastic("e", "b", *gpus("n1", 0, 4), most=8)],
            pending=[job("w", "a", pods(2))],
        ),
        shrinks={"w": "e-3 e-2"},
        ends="e w",
    ),
    Scenario(
        "nothing grows into the room that is kept for who has waited long",
        "Slurm: sched_config.html, backfill",
        snapshot(
            nodes=nodes(4), queues=[queue("a", h100=9), queue("b", h100=4)],
            holding=[elastic("e", "b", "n1/0"), runs("r", "a", "n1/1", limit_s=900)],
            pending=[job("w", "a", pods(3))],
        ),
        waits={"w": Code.ROOM_KEPT},
        policy=Policy(guard_s=0),
    ),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test(case: Scenario) -> None:
    check(case)
