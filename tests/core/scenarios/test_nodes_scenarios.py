"""On which node a pod goes, and what it is told where no node holds it."""

from dataclasses import replace

import pytest

from scheduler.core.reasons import ReasonCode as Code
from scheduler.core.snapshot import Placing, Snapshot
from tests.core.build import (
    cpu_pods,
    job,
    node,
    pods,
    queue,
    runs,
    snapshot,
)
from tests.core.drawn.losing import counted
from tests.core.scenarios.scenario import Scenario, check, gpus, nodes, singles

HEALTHY = node("n1", gpus=2)
SICK = replace(HEALTHY, devices=(replace(HEALTHY.devices[0], usable=False), HEALTHY.devices[1]))
ALL = [queue("a", h100=64, a30=64, cpu=64)]


def spread(given: Snapshot) -> Snapshot:
    flavors = tuple(replace(f, placing=Placing.SPREAD) for f in given.flavors)
    return replace(given, flavors=flavors)


CASES = (
    Scenario(
        "devices that are free in sum do not hold a pod that wants them on one node",
        "KAI: consolidation_test, 1 pending job of 2 GPUs - don't consolidate",
        snapshot(
            nodes=nodes(2, 2),
            queues=ALL,
            holding=singles("p q", "a", ["n1/0", "n2/0"]),
            pending=[job("w", "a", pods(gpus=2))],
        ),
        waits={"w": Code.NO_FIT},
        numbers={"w": {"free_milli": 2000, "largest_free_milli": 1000}},
    ),
    Scenario(
        "unlike in KAI, nobody is moved together for a pod that waits",
        "KAI: consolidation_test, 1 pending job of 2 GPUs - consolidate",
        snapshot(
            nodes=nodes(2, 2),
            queues=ALL,
            holding=singles("p q", "a", ["n1/0", "n2/0"], priority=-1),
            pending=[job("w", "a", pods(gpus=2), priority=-1)],
        ),
        waits={"w": Code.NO_FIT},
    ),
    Scenario(
        "a pod goes to the node where it leaves least",
        "Armada: docs scheduling_and_preempting_jobs, the smallest amount of resources possible",
        snapshot(
            nodes=nodes(8, 4, 8),
            queues=ALL,
            holding=[runs("r", "a", *gpus("n2", 0, 2))],
            pending=[job("w", "a", pods(gpus=2))],
        ),
        starts="w",
        on={"w": "n2"},
    ),
    Scenario(
        "small pods leave a whole node to a large one that comes after them",
        "Volcano: binpack_test, nodes are scored by what is used",
        snapshot(
            nodes=nodes(4, 4),
            queues=ALL,
            pending=[
                *(job(f"s{i}", "a", submitted_at=i) for i in range(3)),
                job("large", "a", pods(gpus=4), submitted_at=9),
            ],
        ),
        starts="s0 s1 s2 large",
        on={"s0": "n1", "s1": "n1", "s2": "n1", "large": "n2"},
    ),
    Scenario(
        "work without devices goes to nodes without devices",
        "KAI: resourcetype_test, CPU Only Preference",
        snapshot(
            nodes=[node("n1", gpus=4), node("n2")],
            queues=ALL,
            pending=[job("c", "a", cpu_pods(2, cores=4))],
        ),
        starts="c",
        on={"c": "n2 n2"},
    ),
    Scenario(
        "cores that are missing beside free devices are told",
        "Kueue: KEP-10852, why a workload is inadmissible",
        snapshot(
            nodes=[node("n1", gpus=4, cores=8)],
            queues=ALL,
            holding=[runs("c", "a", "n1", flavor="cpu", cores=6)],
            pending=[job("w", "a", pods(gpus=2, cores=4))],
        ),
        waits={"w": Code.NO_FIT},
        numbers={"w": {"binds": "cores", "pod_cpu_milli": 4000, "largest_cpu_milli": 2000}},
    ),
    Scenario(
        "memory that no node has is told as such",
        "Armada: pricer node_scheduler_test, node too small",
        snapshot(
            nodes=[node("n1", gpus=4, memory_gib=16)],
            queues=ALL,
            pending=[job("w", "a", pods(memory_gib=32))],
        ),
        waits={"w": Code.EXCEEDS_CAPACITY},
        numbers={"w": {"binds": "memory", "pod_memory_mib": 32768}},
    ),
    Scenario(
        "where a flavor is spread a pod goes to the node with most free",
        "YuniKorn: nodesorting_test, TestSortPolicy, fair",
        spread(
            snapshot(
                nodes=nodes(4, 4),
                queues=ALL,
                holding=singles("p", "a", ["n1/0"]),
                pending=[job("w", "a")],
            )
        ),
        starts="w",
        on={"w": "n2"},
    ),
    Scenario(
        "where a flavor is packed a pod goes to the node with least free",
        "YuniKorn: nodesorting_test, TestSortPolicy, binpacking",
        snapshot(
            nodes=nodes(4, 4),
            queues=ALL,
            holding=singles("p", "a", ["n2/0"]),
            pending=[job("w", "a")],
        ),
        starts="w",
        on={"w": "n2"},
    ),
    Scenario(
        "who would fit on a node that is out is told of the node",
        "YuniKorn: operation_test, TestUpdateNodeCapacity",
        snapshot(
            nodes=[node("n1", gpus=4, usable=False), node("n2", gpus=2)],
            queues=ALL,
            pending=[job("w", "a", pods(gpus=4)), job("x", "a", pods(gpus=2), submitted_at=1)],
        ),
        starts="x",
        on={"x": "n2"},
        waits={"w": Code.CLUSTER_UNAVAILABLE},
        numbers={"w": {"nodes_count": 1}},
    ),
    Scenario(
        "work on a node that takes nothing new stays",
        "Armada: preempting_queue_scheduler_test, Cordoning prevents scheduling new jobs",
        snapshot(
            nodes=[node("n1", gpus=1, usable=False), node("n2", gpus=1)],
            queues=ALL,
            holding=[runs("r", "a", "n1/0", priority=-9), runs("s", "a", "n2/0", priority=-1)],
            pending=[job("w", "a")],
        ),
        preempts={"w": "s"},
    ),
    Scenario(
        "a pod may take all cores and all memory of a node",
        "Armada: pricer node_scheduler_test, job matches node",
        snapshot(
            nodes=[node("n1", gpus=1, cores=8, memory_gib=16)],
            queues=ALL,
            pending=[job("w", "a", pods(cores=8, memory_gib=16))],
        ),
        starts="w",
    ),
    Scenario(
        "memory that others hold beside free devices is told",
        "YuniKorn: partition_test, TestTryAllocateLarge",
        snapshot(
            nodes=[node("n1", gpus=4, memory_gib=16)],
            queues=ALL,
            pending=[job("w", "a", pods(memory_gib=10)), job("x", "a", pods(memory_gib=9))],
        ),
        starts="w",
        waits={"x": Code.NO_FIT},
        numbers={"x": {"binds": "memory", "largest_memory_mib": 6144}},
    ),
    Scenario(
        "as many go as free the cores that a pod lacks",
        "YuniKorn: preemption_test, TestTryPreemptionOnNode",
        snapshot(
            nodes=[node("n1", gpus=1, cores=8)],
            queues=ALL,
            holding=[runs(name, "a", "n1", flavor="cpu", cores=3) for name in ("p", "q")],
            pending=[job("w", "a", pods(cores=6), priority=1)],
        ),
        preempts={"w": "p q"},
    ),
    Scenario(
        "as many go as free the memory that a pod lacks",
        "YuniKorn: preemption_test, TestTryPreemptionOnNode",
        snapshot(
            nodes=[node("n1", gpus=1, memory_gib=4)],
            queues=ALL,
            holding=[runs(name, "a", "n1", flavor="cpu") for name in ("p", "q", "r")],
            pending=[job("w", "a", pods(memory_gib=3), priority=1)],
        ),
        preempts={"w": "p q"},
    ),
    Scenario(
        "a sick device takes nothing new, and those beside it do",
        "Kueue: scheduler_tas_test, workload with unhealthyNode",
        snapshot(
            nodes=[SICK],
            queues=ALL,
            pending=[job("w", "a", pods(gpus=2)), job("x", "a", submitted_at=1)],
        ),
        starts="x",
        spans={"x": [("n1/1", 0, 1000)]},
        waits={"w": Code.NO_FREE_CAPACITY},
        numbers={"w": {"free_milli": 0}},
    ),
    Scenario(
        "whoever holds a device that was counted and is lost holds one of those that are there",
        "YuniKorn: operation_test, TestUpdateNodeCapacity, what is allocated counts on",
        snapshot(
            nodes=[counted(node("n1", gpus=3))],
            queues=ALL,
            holding=[runs("r", "a", "n1/2", "n1/3")],
            pending=[job("w", "a", pods(gpus=2)), job("x", "a", submitted_at=1)],
        ),
        starts="x",
        spans={"x": [("n1/0", 0, 1000)]},
        waits={"w": Code.NO_FREE_CAPACITY},
        numbers={"w": {"free_milli": 0}},
    ),
    Scenario(
        "a device that two hold takes nothing new, and neither of them is stopped",
        "Armada: scheduling_algo_test, reschedules all jobs onto overallocated node",
        snapshot(
            nodes=nodes(2),
            queues=ALL,
            holding=[runs("p", "a", "n1/0"), runs("q", "a", "n1/0")],
            pending=[job("w", "a", pods(gpus=2)), job("x", "a", submitted_at=1)],
        ),
        starts="x",
        spans={"x": [("n1/1", 0, 1000)]},
        waits={"w": Code.NO_FREE_CAPACITY},
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_node_is_found_so_that(case: Scenario) -> None:
    check(case)
