"""Gangs start whole or not at all, in one cluster; elastic ones with as many as have room."""

import pytest

from scheduler.core.reasons import ReasonCode as Code
from scheduler.core.snapshot import ClusterView
from tests.core.build import A30, Quota, cluster, cpu_pods, job, node, pods, queue, runs, snapshot
from tests.core.scenarios.scenario import FREE, Scenario, check, gpus, nodes, singles

ALL = [queue("a", h100=64, a30=64, cpu=64)]


def two(first: int, second: int) -> list[ClusterView]:
    return [cluster("c1", [node("m", gpus=first)]), cluster("c2", [node("n", gpus=second)])]


CASES = (
    Scenario(
        "a gang starts on as many nodes as it takes",
        "Armada: queue_scheduler_test, gang success",
        snapshot(nodes=nodes(2, 2), queues=ALL, pending=[job("w", "a", pods(4))]),
        starts="w",
        on={"w": "n1 n1 n2 n2"},
    ),
    Scenario(
        "a gang for which one device is missing starts nothing, and holds nothing",
        "Armada: queue_scheduler_test, gang failure",
        snapshot(
            nodes=nodes(2, 2),
            queues=ALL,
            holding=[runs("r", "a", "n1/0")],
            pending=[job("gang", "a", pods(4)), job("x", "a", pods(3), submitted_at=1)],
        ),
        starts="x",
        waits={"gang": Code.NO_FREE_CAPACITY},
        numbers={"gang": {"asked_milli": 4000, "free_milli": 0, "pods_count": 4}},
    ),
    Scenario(
        "of two gangs that fit each alone one starts, and neither holds half",
        "Volcano: docs/design/job-api, gang scheduling by minAvailable",
        snapshot(
            nodes=nodes(4),
            queues=ALL,
            pending=[job("g1", "a", pods(3)), job("g2", "a", pods(3), submitted_at=1)],
        ),
        starts="g1",
        waits={"g2": Code.NO_FREE_CAPACITY},
        numbers={"g2": {"free_milli": 1000}},
    ),
    Scenario(
        "a gang that waits keeps no smaller work of less priority from starting",
        "Armada: queue_scheduler_test, unschedulable jobs do not block schedulable jobs",
        snapshot(
            nodes=nodes(4),
            queues=ALL,
            holding=[runs("r", "a", "n1/0", priority=99)],
            pending=[
                job("gang", "a", pods(4), priority=9),
                job("x", "a"),
                job("y", "a", submitted_at=1),
            ],
        ),
        starts="x y",
        waits={"gang": Code.NO_FREE_CAPACITY},
    ),
    Scenario(
        "unlike in Armada, a gang stays within one cluster",
        "Armada: scheduling_algo_test, Schedule gang job over multiple executors",
        snapshot(clusters=two(4, 4), queues=ALL, pending=[job("w", "a", pods(6))]),
        waits={"w": Code.EXCEEDS_CAPACITY},
        numbers={"w": {"asked_milli": 6000, "free_milli": 4000}},
    ),
    Scenario(
        "a gang starts in the cluster that takes all of it",
        "Armada: scheduling_algo_test, gang scheduling successful",
        snapshot(clusters=two(2, 4), queues=ALL, pending=[job("w", "a", pods(3))]),
        starts="w",
        on={"w": "n n n"},
    ),
    Scenario(
        "of clusters that take all of it the fuller is taken",
        "Armada: docs scheduling_and_preempting_jobs, node selection and bin-packing",
        snapshot(
            clusters=two(8, 8),
            queues=ALL,
            holding=[runs("r", "a", *gpus("n", 0, 2), in_cluster="c2")],
            pending=[job("w", "a", pods(3))],
        ),
        starts="w",
        on={"w": "n n n"},
    ),
    Scenario(
        "an elastic gang prefers the cluster that takes all of it to the fuller",
        "Kueue: KEP-420, partial admission as a last resort",
        snapshot(clusters=two(2, 4), queues=ALL, pending=[job("w", "a", pods(4, least=1))]),
        starts="w",
        on={"w": "n n n n"},
    ),
    Scenario(
        "an elastic gang that no cluster takes whole starts where most of it does",
        "Kueue: KEP-420, the largest count that fits",
        snapshot(clusters=two(2, 3), queues=ALL, pending=[job("w", "a", pods(8, least=1))]),
        starts="w",
        on={"w": "n n n"},
    ),
    Scenario(
        "leader and workers start together",
        "Kueue: flavorassigner_test, leader worker set, leader does not request GPU, fits",
        snapshot(
            nodes=[node("n1", gpus=4), node("n2")],
            queues=ALL,
            pending=[job("w", "a", cpu_pods(name="leader"), pods(2, gpus=2, name="worker"))],
        ),
        starts="w",
        on={"w": "n2 n1 n1"},
    ),
    Scenario(
        "workers do not start without the leader's flavor",
        "Volcano: allocate_test, master's min member can not be allocated, break from allocating",
        snapshot(
            nodes=[node("n1", gpus=4), node("n2", gpus=1, model=A30)],
            queues=ALL,
            holding=[runs("r", "a", "n2/0", flavor="a30")],
            pending=[job("w", "a", pods(flavors="a30", name="leader"), pods(2, name="worker"))],
        ),
        waits={"w": Code.NO_FREE_CAPACITY},
        numbers={"w": {"flavor": "a30"}},
    ),
    Scenario(
        "an elastic gang starts with as many pods as there is room for",
        "Kueue: scheduler_test, partial admission single variable pod set",
        snapshot(nodes=nodes(5), queues=ALL, pending=[job("w", "a", pods(8, least=2))]),
        starts="w",
        pods={"w": 5},
    ),
    Scenario(
        "an elastic gang starts with no fewer than its least",
        "KAI: docs/elastic, minimum as the gang threshold",
        snapshot(
            nodes=nodes(5),
            queues=ALL,
            holding=[runs("r", "a", "n1/0")],
            pending=[job("w", "a", pods(8, least=5))],
        ),
        waits={"w": Code.NO_FREE_CAPACITY},
        numbers={"w": {"asked_milli": 5000, "free_milli": 4000}},
    ),
    Scenario(
        "an elastic gang grows no further than the quota",
        "KAI: allocate_test, does not allow to project to go over allowance",
        snapshot(
            nodes=nodes(8), queues=[queue("a", h100=3)], pending=[job("w", "a", pods(8, least=2))]
        ),
        starts="w",
        pods={"w": 3},
    ),
    Scenario(
        "an elastic gang starts within nominal and grows on what others lend",
        "KAI: docs/elastic, additional workers on what is available",
        snapshot(
            nodes=nodes(8),
            queues=[queue("a", h100=Quota(2, borrow=3)), queue("b", h100=6)],
            pending=[job("w", "a", pods(8, least=2))],
        ),
        starts="w",
        pods={"w": 2},  # the other three come in the next plan
    ),
    Scenario(
        "each set of an elastic gang has its least before one grows",
        "Kueue: scheduler_test, partial admission multiple variable pod sets",
        snapshot(
            nodes=nodes(5),
            queues=ALL,
            pending=[
                job("w", "a", pods(4, least=1, name="x"), pods(4, gpus=2, least=1, name="y"))
            ],
        ),
        starts="w",
        pods={"w": 3},
    ),
    Scenario(
        "unlike in Kueue, a gang that may start smaller evicts nobody to start larger",
        "Kueue: scheduler_test, partial admission single variable pod set, preempt first",
        snapshot(
            nodes=nodes(4),
            queues=ALL,
            holding=singles("p q", "a", gpus("n1", 0, 2), priority=-9),
            pending=[job("w", "a", pods(4, least=2), priority=9)],
        ),
        starts="w",
        pods={"w": 2},
    ),
    Scenario(
        "an elastic gang evicts for its least alone",
        "Kueue: scheduler_test, preempt with partial admission",
        snapshot(
            nodes=nodes(4),
            queues=ALL,
            holding=singles("p q r s", "a", gpus("n1", 0, 4), priority=-9),
            pending=[job("w", "a", pods(4, least=2), priority=9)],
        ),
        preempts={"w": "p q"},
        numbers={"w": {"coming_milli": 2000}},
    ),
    Scenario(
        "a gang takes what several borrowers hold and leaves the rest alone",
        "KAI: preemptGang_test, preempt those who are needed to allocate all the pods of a gang",
        snapshot(
            nodes=nodes(2, 2),
            queues=[queue("a", h100=4), queue("b", h100=FREE)],
            holding=[
                runs("pair", "b", *gpus("n1", 0, 2), since_s=5000),
                *singles("p q", "b", gpus("n2", 0, 2)),
            ],
            pending=[job("w", "a", pods(2))],
        ),
        reclaims={"w": "p q"},
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_gang_is_placed_so_that(case: Scenario) -> None:
    check(case)
