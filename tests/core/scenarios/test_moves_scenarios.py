"""Who is moved for whom: only where all that is stopped goes on elsewhere, and little is lost."""

from dataclasses import replace

import pytest

from scheduler.core.policy import Policy
from scheduler.core.reasons import ReasonCode as Code
from scheduler.core.snapshot import HoldingView, Placing
from tests.core.build import A30, AT, FLAVORS, Quota, job, node, pods, queue, runs, snapshot
from tests.core.scenarios.scenario import Scenario, check, nodes

OWN = [queue("a", h100=99), queue("b", h100=99)]
HOUR = 3600 * 1000
MOVES = Policy(consolidation_budget_milli_s=HOUR)


def saved(name: str, project: str, *where: str, ago_s: int = 60, priority: int = 0) -> HoldingView:
    """One pod that holds those devices, and can go on from what it saved so long ago."""
    held = runs(name, project, *where, since_s=7200, priority=priority)
    (asked,) = job(name, project, pods(gpus=len(where))).pod_sets
    pod = replace(
        held.placements[0],
        amount_milli=1000 * len(where),
        spans=tuple(span for placement in held.placements for span in placement.spans),
    )
    return replace(held, placements=(pod,), pod_sets=(asked,), checkpointed_at=AT - ago_s)


PAIRS = [saved("p", "b", "n1/0", "n1/1"), saved("q", "b", "n2/0", "n2/1", ago_s=90)]

BETTER = [node("n1", gpus=2), node("n2", gpus=2, model=A30)]
LADDER = [queue("a", h100=9, a30=9), queue("b", h100=9)]


def asking(name: str, *where: str) -> HoldingView:
    """A gang on A30s that would rather have H100s, and asks to be moved."""
    held = runs(
        name, "a", *where, flavor="a30", since_s=7200, of=pods(len(where), flavors="h100 a30")
    )
    return replace(held, checkpointed_at=AT - 60, move_to_better=True)


CASES = (
    Scenario(
        "one moves beside another so that a larger pod fits, and the next waits",
        "KAI: consolidation_test, two pending jobs, only first can be consolidated",
        snapshot(
            nodes=nodes(4, 4),
            queues=OWN,
            holding=PAIRS,
            pending=[job("w", "a", pods(gpus=3)), job("x", "a", pods(gpus=3), submitted_at=1)],
        ),
        moves={"w": "p"},
        waits={"x": Code.NO_FIT},
        policy=MOVES,
    ),
    Scenario(
        "who could never fit keeps nobody behind it from having others moved",
        "KAI: consolidation_test, 2 pending jobs, only second can be consolidated",
        snapshot(
            nodes=nodes(4, 4),
            queues=OWN,
            holding=PAIRS,
            pending=[job("w", "a", pods(gpus=5)), job("x", "a", pods(gpus=3), submitted_at=1)],
        ),
        moves={"x": "p"},
        waits={"w": Code.EXCEEDS_CAPACITY},
        policy=MOVES,
    ),
    Scenario(
        "nobody is stopped who has nowhere else to go",
        "KAI: consolidation_test, two pending jobs - can't Consolidate",
        snapshot(
            nodes=nodes(4, 4),
            queues=OWN,
            holding=[
                saved("p", "b", "n1/0", "n1/1", "n1/2"),
                saved("q", "b", "n2/0", "n2/1", "n2/2"),
            ],
            pending=[job("w", "a", pods(gpus=2))],
        ),
        waits={"w": Code.NO_FIT},
        policy=MOVES,
    ),
    Scenario(
        "work of any project moves, whatever its priority, since it goes on",
        "KAI: consolidation.go, victims of any queue and priority",
        snapshot(
            nodes=nodes(2, 2),
            queues=OWN,
            holding=[
                saved("p", "b", "n1/0", priority=9),
                saved("q", "b", "n2/0", priority=9, ago_s=90),
            ],
            pending=[job("w", "a", pods(gpus=2))],
        ),
        moves={"w": "p"},
        policy=MOVES,
    ),
    Scenario(
        "what may not be preempted is not moved",
        "KAI: consolidation.go, victims are preemptible jobs alone",
        snapshot(
            nodes=nodes(2, 2),
            queues=OWN,
            holding=[
                replace(saved("p", "b", "n1/0"), preemptible=False),
                saved("q", "b", "n2/0", ago_s=90),
            ],
            pending=[job("w", "a", pods(gpus=2))],
        ),
        moves={"w": "q"},
        policy=MOVES,
    ),
    Scenario(
        "unlike in KAI, nobody moves where more work would be lost than may be",
        "KAI: consolidation.go, the number of victims is bounded and not their work",
        snapshot(
            nodes=nodes(2, 2),
            queues=OWN,
            holding=[
                saved("p", "b", "n1/0", ago_s=3700),
                saved("q", "b", "n2/0", ago_s=3700),
            ],
            pending=[job("w", "a", pods(gpus=2))],
        ),
        waits={"w": Code.NO_FIT},
        policy=MOVES,
    ),
    Scenario(
        "unlike in KAI, work that has not run for its least time is not moved",
        "KAI: docs/plugins/minruntime, protects from reclaim and preempt",
        snapshot(
            nodes=nodes(2, 2),
            queues=[OWN[0], replace(OWN[1], min_run_time_s=9999)],
            holding=[saved("p", "b", "n1/0"), saved("q", "b", "n2/0")],
            pending=[job("w", "a", pods(gpus=2))],
        ),
        waits={"w": Code.NO_FIT},
        policy=MOVES,
    ),
    Scenario(
        "nobody moves for work that its quota keeps waiting",
        "KAI: allocate_test, does not allow to project to go over allowance",
        snapshot(
            nodes=nodes(2, 2),
            queues=[queue("a", h100=1), OWN[1]],
            holding=[saved("p", "b", "n1/0"), saved("q", "b", "n2/0")],
            pending=[job("w", "a", pods(gpus=2))],
        ),
        waits={"w": Code.NEVER_ADMISSIBLE},
        policy=MOVES,
    ),
    Scenario(
        "unlike in KAI, a borrower gives before anybody moves",
        "KAI: scheduler-config-customization, consolidation comes before reclaim",
        snapshot(
            nodes=nodes(2, 2),
            queues=[queue("a", h100=4), queue("b", h100=Quota(0, borrow=None))],
            holding=[saved("p", "b", "n1/0"), saved("q", "b", "n2/0")],
            pending=[job("w", "a", pods(gpus=2))],
        ),
        reclaims={"w": "p"},
        policy=MOVES,
    ),
    Scenario(
        "unlike in KAI, work moves also where pods are spread",
        "KAI: scheduler-config-customization, consolidation is off where a strategy is spread",
        replace(
            snapshot(
                nodes=nodes(2, 2),
                queues=OWN,
                holding=[saved("p", "b", "n1/0"), saved("q", "b", "n2/0", ago_s=90)],
                pending=[job("w", "a", pods(gpus=2))],
            ),
            flavors=tuple(replace(each, placing=Placing.SPREAD) for each in FLAVORS),
        ),
        moves={"w": "p"},
        policy=MOVES,
    ),
    Scenario(
        "a gang that has to be in one rack has others moved out of it",
        "KAI: consolidation_subgroups_test, a gang with topology is consolidated for",
        snapshot(
            nodes=[
                node("n1", gpus=2, at="r1"),
                node("n2", gpus=2, at="r1"),
                node("n3", gpus=2, at="r2"),
            ],
            queues=OWN,
            holding=[saved("p", "b", "n1/0"), saved("q", "b", "n3/0", ago_s=90)],
            pending=[job("w", "a", pods(2, gpus=2), within="rack")],
            levels="rack",
        ),
        moves={"w": "p"},
        policy=MOVES,
    ),
    Scenario(
        "work goes to a flavor that it prefers once that is free",
        "Kueue: KEP-8691, concurrent admission, migration to a more preferred flavor",
        snapshot(nodes=BETTER, queues=LADDER, holding=[asking("p", "n2/0")]),
        better="p",
        policy=MOVES,
    ),
    Scenario(
        "unlike in Kueue, nothing goes to a flavor that other work waits for",
        "Kueue: KEP-8691, concurrent admission, variants wait in the queue as workloads do",
        snapshot(
            nodes=BETTER,
            queues=LADDER,
            holding=[asking("p", "n2/0"), saved("q", "b", "n1/0")],
            pending=[job("w", "b", pods(gpus=2))],
        ),
        waits={"w": Code.NO_FREE_CAPACITY},
        policy=MOVES,
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_work_is_moved_so_that(case: Scenario) -> None:
    check(case)
