"""Where pods go: cluster, request, expected places."""

import pytest

from scheduler.core.snapshot import ClusterView, Isolation, NodeView, PodSetView
from tests.core.build import (
    A30,
    T4,
    Quota,
    cluster,
    cpu_pods,
    decide,
    job,
    node,
    pods,
    queue,
    runs,
    snapshot,
)

ANY = Quota(1000, borrow=None)
QUEUE = queue("a", h100=ANY, _1g=ANY, _1gme=ANY, _2g=ANY, _3g=ANY, _7g=ANY, a30=ANY, t4=ANY,
              t4share=ANY, t4slot=ANY, cpu=ANY)  # fmt: skip
BALANCED = (("2g.20gb", 0, 2), ("1g.10gb", 2, 3), ("1g.10gb", 3, 4), ("3g.40gb", 4, 8))


def t4(name: str, gpus: int = 2) -> NodeView:
    return node(name, gpus=gpus, model=T4, shares=Isolation.MEMORY)


@pytest.mark.parametrize(
    ("nodes", "held", "wanted", "expected"),
    [
        pytest.param(
            [node("n1", gpus=8), node("n2", gpus=2)],
            [],
            pods(gpus=2),
            ["n2"],
            id="the node with fewest devices left over",
        ),
        pytest.param(
            [node("n1", gpus=4), node("n2", gpus=4)],
            ["n2/0"],
            pods(gpus=1),
            ["n2"],
            id="a node that is in use already",
        ),
        pytest.param(
            [node("n1", gpus=4, cores=64), node("n2", gpus=4, cores=32)],
            [],
            pods(gpus=1),
            ["n2"],
            id="the node tightest in cores at equal devices",
        ),
        pytest.param(
            [node("n2", gpus=4), node("n1", gpus=4)],
            [],
            pods(gpus=1),
            ["n1"],
            id="the first by name when all is equal",
        ),
        pytest.param(
            [node("n1", gpus=2, cores=4), node("n2", gpus=8, cores=64)],
            [],
            pods(gpus=1, cores=8),
            ["n2"],
            id="a node with the cores that it needs",
        ),
        pytest.param(
            [node("n1", gpus=2, memory_gib=4), node("n2", gpus=8)],
            [],
            pods(gpus=1, memory_gib=8),
            ["n2"],
            id="a node with the memory that it needs",
        ),
        pytest.param(
            [node("n1", gpus=2, usable=False), node("n2", gpus=8)],
            [],
            pods(gpus=1),
            ["n2"],
            id="no node that takes nothing new",
        ),
        pytest.param(
            [node("n1", gpus=2, model=A30), node("n2", gpus=8)],
            [],
            pods(gpus=1),
            ["n2"],
            id="no node of another model",
        ),
        pytest.param(
            [node("n1", gpus=8), node("n2", gpus=8)],
            ["n1/0"],
            pods(2, gpus=4),
            ["n1", "n2"],
            id="a gang over nodes, the fuller first",
        ),
        pytest.param(
            [node("g1", gpus=8), node("c1", cores=8), node("c2", cores=16)],
            [],
            cpu_pods(cores=4),
            ["c1"],
            id="CPU work on the tightest node without devices",
        ),
        pytest.param(
            [node("g1", gpus=4), node("g2", gpus=2), node("c1", cores=2)],
            [],
            cpu_pods(cores=4),
            ["g2"],
            id="CPU work on the node with fewest empty devices, when there is no other",
        ),
    ],
)
def test_whole_devices_and_cores_go_to(
    nodes: list[NodeView], held: list[str], wanted: PodSetView, expected: list[str]
) -> None:
    holding = [runs("r", "a", *held)] if held else []
    of = snapshot(nodes=nodes, queues=[QUEUE], holding=holding, pending=[job("w", "a", wanted)])
    assert decide(of).nodes("w") == expected


@pytest.mark.parametrize(
    ("nodes", "held", "wanted", "expected"),
    [
        pytest.param(
            [t4("n1")], [], (0.25,), [("n1/0", 0, 250)], id="a share at the start of a device"
        ),
        pytest.param(
            [t4("n1")],
            [("n1/1", 0, 500)],
            (0.25,),
            [("n1/1", 500, 750)],
            id="a share on the device that is in use",
        ),
        pytest.param(
            [t4("n1")],
            [("n1/0", 0, 300), ("n1/1", 0, 700)],
            (0.3,),
            [("n1/1", 700, 1000)],
            id="a share on the fullest device that holds it",
        ),
        pytest.param(
            [t4("n1")],
            [("n1/0", 0, 800), ("n1/1", 0, 900)],
            (0.2,),
            [("n1/0", 800, 1000)],
            id="a share on a device that it fits",
        ),
        pytest.param(
            [t4("n1", 1)],
            [("n1/0", 300, 400), ("n1/0", 600, 700)],
            (0.2,),
            [("n1/0", 400, 600)],
            id="a share in the tightest hole",
        ),
        pytest.param(
            [t4("n1", 1)],
            [("n1/0", 100, 200), ("n1/0", 400, 800)],
            (0.4,),
            [("n1/0", 0, 100), ("n1/0", 200, 400), ("n1/0", 800, 900)],
            id="a share over several holes of one device",
        ),
        pytest.param(
            [t4("n1", 3), t4("n2", 1)],
            [("n1/0", 0, 900)],
            (0.5,),
            [("n2/0", 0, 500)],
            id="a share that needs a new device on the node with fewest",
        ),
        pytest.param(
            [t4("n1")],
            [],
            (0.6, 0.6, 0.4),
            [("n1/0", 0, 600), ("n1/1", 0, 600), ("n1/0", 600, 1000)],
            id="shares that fill up each other",
        ),
    ],
)
def test_shares_go_to(
    nodes: list[NodeView],
    held: list[tuple[str, int, int]],
    wanted: tuple[float, ...],
    expected: list[tuple[str, int, int]],
) -> None:
    holding = [
        runs(
            f"r{i}", "a", device, flavor="t4share", span=(start, end), amount=(end - start) / 1000
        )
        for i, (device, start, end) in enumerate(held)
    ]
    pending = [
        job(f"w{i}", "a", pods(share=share, flavors="t4share"), submitted_at=i)
        for i, share in enumerate(wanted)
    ]
    of = snapshot(nodes=nodes, queues=[QUEUE], holding=holding, pending=pending)
    made = decide(of)
    assert [span for i in range(len(wanted)) for span in made.spans(f"w{i}")] == expected


@pytest.mark.parametrize(
    ("nodes", "held", "wanted", "expected"),
    [
        pytest.param(
            [node("n1", gpus=2, cut=BALANCED)],
            [],
            pods(gpus=1, flavors="1g"),
            [("n1/0", 2, 3)],
            id="a slice that is cut",
        ),
        pytest.param(
            [node("n1", gpus=2, cut=BALANCED)],
            [("n1/1", "1g", 2, 3)],
            pods(gpus=1, flavors="2g"),
            [("n1/1", 0, 2)],
            id="a slice of the fuller device",
        ),
        pytest.param(
            [node("n1", gpus=2, cut=BALANCED)],
            [],
            pods(gpus=3, flavors="1g"),
            [("n1/0", 2, 3), ("n1/0", 3, 4), ("n1/1", 2, 3)],
            id="several slices for one pod",
        ),
        pytest.param(
            [node("n1", gpus=1, dynamic=True)],
            [],
            pods(gpus=1, flavors="1g"),
            [("n1/0", 6, 7)],
            id="a new slice where it costs fewest starts",
        ),
        pytest.param(
            [node("n1", gpus=2, dynamic=True)],
            [("n1/1", "1g", 6, 7)],
            pods(gpus=1, flavors="1g"),
            [("n1/1", 4, 5)],
            id="a new slice on the device that is cut up already",
        ),
        pytest.param(
            [node("n1", gpus=2, dynamic=True)],
            [("n1/1", "1g", 0, 1)],
            pods(gpus=1, flavors="3g"),
            [("n1/1", 4, 8)],
            id="a new large slice beside a small one",
        ),
        pytest.param(
            [node("n1", gpus=1, dynamic=True)],
            [],
            pods(7, gpus=1, flavors="1g"),
            [("n1/0", s, s + 1) for s in (6, 4, 5, 0, 1, 2, 3)],
            id="seven slices of one device",
        ),
        pytest.param(
            [node("n1", gpus=2, dynamic=True)],
            [],
            pods(2, gpus=1, flavors="1gme"),
            [("n1/0", 6, 7), ("n1/1", 6, 7)],
            id="one slice with media engines a device",
        ),
        pytest.param(
            [node("n1", gpus=1, dynamic=True), node("n2", gpus=1, dynamic=True)],
            [("n2/0", "1g", 0, 1)],
            pods(gpus=1, flavors="1g"),
            [("n2/0", 1, 2)],
            id="a new slice on the node where it costs fewest starts",
        ),
        pytest.param(
            [node("n1", gpus=2, dynamic=True)],
            [],
            pods(gpus=2, flavors="1gme"),
            [("n1/0", 6, 7), ("n1/1", 6, 7)],
            id="two slices with media engines for one pod on two devices",
        ),
        pytest.param(
            [node("n1", gpus=1, dynamic=True), node("n2", gpus=1, cut=BALANCED)],
            [],
            pods(gpus=1, flavors="1g"),
            [("n2/0", 2, 3)],
            id="a slice that exists before one that must be cut",
        ),
    ],
)
def test_slices_go_to(
    nodes: list[NodeView],
    held: list[tuple[str, str, int, int]],
    wanted: PodSetView,
    expected: list[tuple[str, int, int]],
) -> None:
    holding = [
        runs(f"r{i}", "a", device, flavor=flavor, span=(start, end))
        for i, (device, flavor, start, end) in enumerate(held)
    ]
    of = snapshot(nodes=nodes, queues=[QUEUE], holding=holding, pending=[job("w", "a", wanted)])
    assert decide(of).spans("w") == expected


TWO = [cluster("c1", [node("n1", gpus=8)]), cluster("c2", [node("n2", gpus=4)])]


@pytest.mark.parametrize(
    ("clusters", "wanted", "accepted", "expected"),
    [
        pytest.param(TWO, pods(2, gpus=2), "", ["n2", "n2"], id="the cluster it fits tightest"),
        pytest.param(TWO, pods(3, gpus=2), "", ["n1"] * 3, id="one cluster for the whole gang"),
        pytest.param(TWO, pods(gpus=1), "c1", ["n1"], id="an accepted cluster only"),
        pytest.param(
            [TWO[0], cluster("c2", [node("n2", gpus=4)], usable=False)],
            pods(gpus=1),
            "",
            ["n1"],
            id="no cluster that takes nothing new",
        ),
        pytest.param(
            TWO, pods(6, gpus=1, least=3), "", ["n1"] * 6, id="the cluster that takes all of it"
        ),
        pytest.param(
            TWO, pods(9, gpus=1, least=3), "", ["n1"] * 8, id="else the one that takes most of it"
        ),
    ],
)
def test_a_workload_goes_to(
    clusters: list[ClusterView], wanted: PodSetView, accepted: str, expected: list[str]
) -> None:
    waiting = job("w", "a", wanted, clusters=accepted)
    of = snapshot(clusters=clusters, queues=[QUEUE], pending=[waiting])
    assert decide(of).nodes("w") == expected
