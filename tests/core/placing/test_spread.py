"""Flavors whose pods are spread: the node with most free first."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from scheduler.core.snapshot import NodeView, Placing, PodSetView
from tests.core.build import FLAVORS, Outcome, cpu_pods, decide, job, node, pods, queue, snapshot
from tests.core.placing.test_place import t4

NODES = (
    node("n1", gpus=2, cores=64),
    node("n2", gpus=4, cores=32),
    node("n3", gpus=4, cores=64),
    node("n4", gpus=4, cores=64),
    node("n5", cores=16),
    node("n6", cores=32),
)


def spread(
    *asked: PodSetView,
    flavors: str = "h100 t4 cpu",
    nodes: Sequence[NodeView] = NODES,
    within: str = "",
) -> Outcome:
    of = snapshot(
        nodes=nodes,
        queues=[queue("a", h100=64, t4=64, cpu=64)],
        pending=[job("w", "a", *asked, within=within)],
        levels="rack",
    )
    chosen = flavors.split()
    known = (replace(f, placing=Placing.SPREAD) if f.id in chosen else f for f in FLAVORS)
    return decide(replace(of, flavors=tuple(known)))


@pytest.mark.parametrize(
    ("flavors", "nodes"),
    [
        ("h100", ["n3", "n4", "n2", "n3", "n4", "n2"]),
        ("", ["n1", "n1", "n2", "n2", "n2", "n2"]),
    ],
    ids=["spread", "packed"],
)
def test_pods_of_a_spread_flavor_go_to_the_node_with_most_free(
    flavors: str, nodes: list[str]
) -> None:
    """Most devices first, then most cores, then the first by name."""
    assert spread(pods(6, gpus=1), flavors=flavors).nodes("w") == nodes


def test_a_node_with_too_few_cores_is_passed_over() -> None:
    assert spread(pods(3, gpus=1, cores=40)).nodes("w") == ["n3", "n4", "n1"]


def test_cores_are_spread_over_nodes_without_devices_first() -> None:
    assert spread(cpu_pods(5, cores=10)).nodes("w") == ["n6", "n6", "n5", "n6", "n1"]


def test_nodes_with_shared_devices_are_spread_over_too() -> None:
    nodes = [t4("n1", 2), t4("n2", 4)]
    assert spread(pods(4, flavors="t4"), nodes=nodes).nodes("w") == ["n2", "n2", "n1", "n2"]


def test_a_gang_that_has_to_be_in_one_rack_is_spread_over_it() -> None:
    nodes = [node(f"n{i}", gpus=4, at="r1" if i else "r2") for i in range(4)]
    made = spread(pods(6), nodes=nodes, within="rack")
    assert made.nodes("w") == ["n1", "n2", "n3", "n1", "n2", "n3"]
