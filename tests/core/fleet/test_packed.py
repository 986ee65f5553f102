"""Nodes with shared devices: which of them are packed, and what that changes."""

import sys
from dataclasses import replace

import pytest

from scheduler.core import node as of_node
from scheduler.core.compiled import compiled
from scheduler.core.fleet.draft import Draft
from scheduler.core.node import fragmentation
from scheduler.core.node.shapes import LARGEST
from scheduler.core.snapshot import DeviceView, Isolation, NodeView, PodSetView
from scheduler.core.units import NodeId, WorkloadId
from tests.core.build import (
    H100,
    T4,
    Quota,
    cpu_pods,
    decide,
    device,
    job,
    node,
    pods,
    queue,
    runs,
    snapshot,
)

ANY = Quota(1000, borrow=None)
QUEUE = queue("a", h100=ANY, t4=ANY, t4share=ANY, cpu=ANY)
SHARED = node("n1", gpus=2, model=T4, shares=Isolation.MEMORY)
WHOLE_T4 = pods(flavors="t4")


@pytest.mark.parametrize(
    ("alone", "is_packed"),
    [
        pytest.param(SHARED, True, id="one model, shared in one way"),
        pytest.param(node("n1", gpus=2), False, id="devices that can't be shared"),
        pytest.param(node("n1"), False, id="no devices"),
        pytest.param(
            replace(SHARED, devices=(*SHARED.devices, device("n1/2", T4))),
            False,
            id="devices of which one can't be shared",
        ),
        pytest.param(
            replace(
                SHARED, devices=(*SHARED.devices, device("n1/2", H100, shares=Isolation.MEMORY))
            ),
            False,
            id="two models",
        ),
        pytest.param(
            replace(SHARED, devices=(*SHARED.devices, device("n1/2", H100, dynamic=True))),
            True,
            id="a device in MIG mode beside them",
        ),
        pytest.param(replace(SHARED, cpu_milli=LARGEST), False, id="more cores than can be"),
        pytest.param(replace(SHARED, usable=False), False, id="a node that takes nothing new"),
    ],
)
def test_a_node_is_packed_when_its_whole_devices_are_shared_alike(
    alone: NodeView, is_packed: bool
) -> None:
    draft = Draft(snapshot=snapshot(nodes=[alone], queues=[QUEUE]), holding=(), packs=True)
    assert (NodeId("n1") in draft.packed) is is_packed


def t4(name: str, *, gpus: int = 4, cores: int = 64) -> NodeView:
    return node(name, gpus=gpus, model=T4, cores=cores, shares=Isolation.MEMORY)


@pytest.mark.parametrize(
    ("nodes", "wanted", "others", "expected"),
    [
        pytest.param(
            [t4("n1", cores=8), t4("n2")],
            cpu_pods(cores=8),
            [pods(gpus=4, flavors="t4", cores=4)] * 2,
            "n2",
            id="cores that devices need to be of use are left to them",
        ),
        pytest.param(
            [t4("n1"), node("n2", gpus=8, model=T4)],
            WHOLE_T4,
            [],
            "n2",
            id="a whole device is one that can't be shared, where there is one",
        ),
        pytest.param(
            [t4("n1"), node("n2")],
            cpu_pods(),
            [],
            "n2",
            id="work without devices goes where there are none",
        ),
    ],
)
def test_what_is_free_stays_of_use(
    nodes: list[NodeView], wanted: PodSetView, others: list[PodSetView], expected: str
) -> None:
    first = job("first", "a", wanted, priority=1)
    behind = [job(f"w{i}", "a", pod_set) for i, pod_set in enumerate(others)]
    made = decide(snapshot(nodes=nodes, queues=[QUEUE], pending=[first, *behind]))
    assert made.nodes("first") == [expected]
    assert not made.holds


def test_a_share_is_put_where_the_rest_is_asked_for() -> None:
    """Best fit would put 0.3 beside 0.65, and leave 0.05 that nobody asks for."""
    nodes = [t4("n1", gpus=1), t4("n2", gpus=1)]
    holding = [
        runs("r1", "a", "n1/0", flavor="t4share", span=(0, 650), amount=0.65),
        runs("r2", "a", "n2/0", flavor="t4share", span=(0, 450), amount=0.45),
    ]
    wanted = job("w", "a", pods(flavors="t4share", share=0.3), priority=1)
    like = [job(f"v{i}", "a", pods(flavors="t4share", share=0.35)) for i in range(4)]
    like += [job(f"u{i}", "a", pods(flavors="t4share", share=0.25)) for i in range(4)]
    made = decide(snapshot(nodes=nodes, queues=[QUEUE], holding=holding, pending=[wanted, *like]))
    assert made.nodes("w") == ["n2"]
    assert sum(held.startswith(("u", "v")) for held in made.admits) == 2


@pytest.mark.parametrize(
    "sick",
    [
        pytest.param(replace(SHARED.devices[0], usable=False), id="sick"),
        pytest.param(SHARED.devices[0], id="held twice"),
    ],
)
def test_nothing_is_packed_on_a_device_that_takes_nothing_new(sick: DeviceView) -> None:
    nodes = [replace(SHARED, devices=(sick, *SHARED.devices[1:]))]
    holding = [runs(f"r{i}", "a", "n1/0", flavor="t4share", span=(0, 10)) for i in range(2)]
    pending = [job("w", "a", pods(2, flavors="t4share", share=0.3)), job("x", "a", WHOLE_T4)]
    made = decide(snapshot(nodes=nodes, queues=[QUEUE], holding=holding, pending=pending))
    assert {place.spans[0][0] for place in made.admits[WorkloadId("w")].places} == {"n1/1"}
    assert "x" in made.holds


def test_more_cores_held_than_the_node_has_leaves_none() -> None:
    holding = [runs("r", "a", "n1", flavor="cpu", cores=100)]
    pending = [job("w", "a", pods(flavors="t4share", share=0.3, cores=1))]
    nodes = [SHARED, t4("n2")]
    made = decide(snapshot(nodes=nodes, queues=[QUEUE], holding=holding, pending=pending))
    assert made.nodes("w") == ["n2"]


def test_quantities_beyond_any_node_are_held_with_a_reason() -> None:
    pending = [job("w", "a", pods(flavors="t4share", share=0.3, cores=2**50))]
    made = decide(snapshot(nodes=[SHARED], queues=[QUEUE], pending=pending))
    assert "w" in made.holds


def test_without_compiled_code_the_index_decides(
    monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    nodes, pending = [t4("n1", cores=8), t4("n2")], [job("w", "a", WHOLE_T4)]
    of = snapshot(nodes=nodes, queues=[QUEUE], pending=pending)
    monkeypatch.delattr(of_node, "fragmentation")
    monkeypatch.setitem(sys.modules, "scheduler.core.node.fragmentation", None)
    compiled.cache_clear()
    try:
        assert decide(of).nodes("w") == ["n1"]
    finally:
        compiled.cache_clear()
    assert [
        "node.fragmentation goes without compiled code" in str(w.message) for w in recwarn
    ] == [True]


def test_the_loss_of_precision_never_refuses_a_pod_that_fits_exactly() -> None:
    tight = replace(SHARED, cpu_milli=4095, memory_mib=1023)
    wanted = replace(pods(flavors="t4share", share=0.3), cpu_milli=4095, memory_mib=1023)
    more = replace(wanted, cpu_milli=4096)
    for pod_set, starts in ((wanted, True), (more, False)):
        made = decide(snapshot(nodes=[tight], queues=[QUEUE], pending=[job("w", "a", pod_set)]))
        assert ("w" in made.admits) is starts


def test_more_kinds_of_pods_than_are_kept_go_by_the_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fragmentation, "MOST_SOUGHT", 1)
    pending = [
        job(f"w{i}", "a", pods(flavors="t4share", share=share))
        for i, share in enumerate((0.3, 0.5, 0.2))
    ]
    made = decide(snapshot(nodes=[SHARED], queues=[QUEUE], pending=pending))
    assert len(made.admits) == 3
