"""Gangs that have to be, or had better be, together in a rack or a zone."""

import pytest

from scheduler.core.reasons import ReasonCode as Code
from scheduler.core.snapshot import NodeView, PendingView, Snapshot
from tests.core.build import cluster, job, node, pods, queue, runs, snapshot
from tests.core.drawn.together import near, within
from tests.core.scenarios.scenario import Scenario, check, gpus

ALL = [queue("a", h100=64)]
RACKS = (
    node("n1", gpus=4, at="z1/r1"),
    node("n2", gpus=4, at="z1/r1"),
    node("n3", gpus=4, at="z1/r2"),
    node("n4", gpus=4, at="z2/r1"),
)


def of(*pending: PendingView, on: tuple[NodeView, ...] = RACKS, taken: str = "") -> Snapshot:
    """Of each of the nodes `taken` the first two devices are held, by work that stays."""
    held = [runs(f"r-{name}", "a", *gpus(name, 0, 2), preemptible=False) for name in taken.split()]
    return snapshot(nodes=on, queues=ALL, pending=pending, holding=held, levels="zone rack")


CASES = (
    Scenario(
        "a gang that has to be in one rack goes where all of it has room",
        "Kueue: scheduler_tas_test, workload required TAS gets scheduled",
        of(job("w", "a", pods(6), within="rack")),
        starts="w",
        on={"w": "n1 n1 n1 n1 n2 n2"},
    ),
    Scenario(
        "a gang that has to be in one rack goes to the fullest that holds it",
        "KAI: allocate_topology_test, prefer domains with existing allocations",
        of(job("w", "a", pods(2), within="rack"), taken="n3"),
        starts="w",
        on={"w": "n3 n3"},
    ),
    Scenario(
        "a gang that no rack could hold is told so, though the fleet could",
        "KAI: allocate_topology_test, job cannot fit in single domain, stays pending",
        of(job("w", "a", pods(9), within="rack")),
        waits={"w": Code.EXCEEDS_CAPACITY},
        numbers={"w": {"level": "rack", "domains_count": 3, "most_pods_count": 8}},
    ),
    Scenario(
        "a gang for which each rack lacks some waits, though enough is free in sum",
        "KAI: allocate_topology_test, sufficient resources but fragmented across domains",
        of(job("w", "a", pods(8), within="rack"), taken="n1 n3"),
        waits={"w": Code.NO_FIT},
        numbers={"w": {"free_milli": 12000, "most_pods_count": 6}},
    ),
    Scenario(
        "a gang that has to be in one zone may use several of its racks",
        "KAI: allocate_topology_test, Three-level topology",
        of(job("w", "a", pods(12), within="zone")),
        starts="w",
        on={"w": "n1 n1 n1 n1 n2 n2 n2 n2 n3 n3 n3 n3"},
    ),
    Scenario(
        "racks of one name in two zones are two racks",
        "Kueue: KEP-2724, a domain is the values from the outermost level on",
        of(job("w", "a", pods(12), within="rack")),
        waits={"w": Code.EXCEEDS_CAPACITY},
        numbers={"w": {"domains_count": 3}},
    ),
    Scenario(
        "a gang that had better be in one rack is, where there is room",
        "KAI: allocate_topology_test, pack job in single rack with preferred level",
        of(job("w", "a", pods(4), near="rack"), taken="n1 n2"),
        starts="w",
        on={"w": "n1 n1 n2 n2"},
    ),
    Scenario(
        "a gang that had better be in one rack goes out to the zone where it must",
        "Kueue: scheduler_tas_test, admits workload when nodes are partially empty; preferred",
        of(job("w", "a", pods(10), near="rack")),
        starts="w",
        on={"w": "n1 n1 n1 n1 n2 n2 n2 n2 n3 n3"},
    ),
    Scenario(
        "a gang that had better be in one rack starts anywhere where it must",
        "KAI: allocate_topology_test, still allocates when preferred level cannot be satisfied",
        of(job("w", "a", pods(16), near="rack")),
        starts="w",
        pods={"w": 16},
    ),
    Scenario(
        "a level that the fleet does not have holds nothing that has to be in it",
        "Kueue: scheduler_tas_test, requests topology level which is not present in topology",
        of(job("w", "a", within="row"), job("x", "a", near="row")),
        starts="x",
        waits={"w": Code.EXCEEDS_CAPACITY},
    ),
    Scenario(
        "a node that is in no known rack holds nothing that has to be in one",
        "Kueue: KEP-2724, nodes without the label of a level",
        of(job("w", "a", within="rack"), on=(node("n1", gpus=4),)),
        waits={"w": Code.EXCEEDS_CAPACITY},
        numbers={"w": {"domains_count": 0}},
    ),
    Scenario(
        "an elastic gang starts with as many as its rack holds",
        "Kueue: scheduler_tas_test, TAS workload gets scheduled as trimmed by partial admission",
        of(job("w", "a", pods(16, least=5), within="rack")),
        starts="w",
        pods={"w": 8},
    ),
    Scenario(
        "each group of a pod set is in one rack, and groups may be in different ones",
        "Kueue: KEP-2724, podset-slice-required-topology and podset-slice-size",
        of(job("w", "a", within("rack", pods(12), groups_of=4))),
        starts="w",
        on={"w": "n1 n1 n1 n1 n2 n2 n2 n2 n3 n3 n3 n3"},
    ),
    Scenario(
        "a group that no rack holds keeps all others from starting",
        "KAI: designs/segmented-subgroups, each segment is co-located",
        of(job("w", "a", within("rack", pods(8), groups_of=4)), taken="n1 n3 n4"),
        waits={"w": Code.NO_FIT},
        numbers={"w": {"most_groups_count": 1, "most_pods_count": 6}},
    ),
    Scenario(
        "a pod set has to be in one rack while another goes anywhere",
        "KAI: docs/topology/multilevel, a subgroup with a topology constraint of its own",
        of(job("w", "a", within("rack", pods(8, name="train")), pods(6, name="serve"))),
        starts="w",
        on={"w": "n1 n1 n1 n1 n2 n2 n2 n2 n3 n3 n3 n3 n4 n4"},
    ),
    Scenario(
        "two pod sets are each in one rack of the one zone that all are in",
        "KAI: docs/topology/multilevel, subgroups within the constraint of the whole",
        of(
            job(
                "w",
                "a",
                within("rack", pods(4, name="prefill")),
                within("rack", pods(7, name="decode")),
                within="zone",
            )
        ),
        starts="w",
        on={"w": "n3 n3 n3 n3 n1 n1 n1 n1 n2 n2 n2"},
    ),
    Scenario(
        "groups that had better be in one rack are torn where they must",
        "Kueue: KEP-2724, podset-preferred-topology",
        of(job("w", "a", near("rack", pods(10), groups_of=5)), taken="n1 n3 n4"),
        starts="w",
    ),
    Scenario(
        "groups that no racks hold are told how many of them there is room for",
        "Kueue: KEP-2724, the slice is what has to fit into a domain",
        of(job("w", "a", within("rack", pods(20), groups_of=4))),
        waits={"w": Code.EXCEEDS_CAPACITY},
        numbers={"w": {"asked_milli": 20000}},
    ),
    Scenario(
        "racks of two clusters are two racks, whatever their names",
        "Armada: gang_scheduler_test, NodeUniformityLabel insufficient capacity",
        snapshot(
            clusters=[
                cluster("c1", [node("m", gpus=4, at="z/r")]),
                cluster("c2", [node("n", gpus=4, at="z/r")]),
            ],
            queues=ALL,
            pending=[job("w", "a", pods(8), within="rack")],
            levels="zone rack",
        ),
        waits={"w": Code.EXCEEDS_CAPACITY},
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_where_nodes_stand_counts_so_that(case: Scenario) -> None:
    check(case)
