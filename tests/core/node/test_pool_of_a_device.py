"""A device is in one pool: no other model's flavors have it, and its own have it in one way each.

That no two flavors mean the same is the database's (`flavor_meaning_once`), as is that no two of
them hold the same part of a device (`span_held_once`).
"""

import pytest

from scheduler.core.node import mig
from scheduler.core.node.fit import Room
from scheduler.core.plan import Place
from scheduler.core.snapshot import FlavorKind, FlavorView, Isolation, NodeView
from scheduler.core.units import DeviceId, NodeId, PodSetId, Span
from tests.core.build import A30, FLAVORS, T4, node

HALF, WHOLE = Span(0, 500), Span(0, 1000)


def amount_milli(flavor: FlavorView, span: Span) -> int:
    return span.width if flavor.kind is FlavorKind.SHARE else 1000


def fits(on: NodeView, flavor: FlavorView, span: Span) -> bool:
    wanted = Place(
        PodSetId("main"), 0, NodeId("n1"), flavor.id, amount_milli(flavor, span), 1000, 1024,
        ((DeviceId("n1/0"), span),),
    )  # fmt: skip
    return Room(node=on).misfit(place=wanted, flavor=flavor) is None


def legal_spans(on: NodeView) -> set[Span]:
    """Every span that any flavor could have on the node's device, and some that none has."""
    slices = {
        span
        for flavor in FLAVORS
        if flavor.kind is FlavorKind.MIG
        for span in mig.legal_spans(model=on.devices[0].model, profile=flavor.profile)
    }
    return slices | {HALF, WHOLE}


@pytest.mark.parametrize(
    ("on", "had_by"),
    [
        pytest.param(node("n1", gpus=1), {"h100"}, id="a whole device"),
        pytest.param(node("n1", gpus=1, model=A30), {"a30"}, id="one of another model"),
        pytest.param(
            node("n1", gpus=1, model=T4, shares=Isolation.MEMORY), {"t4", "t4share"}, id="by MPS"
        ),
        pytest.param(
            node("n1", gpus=1, model=T4, shares=Isolation.NONE), {"t4", "t4slot"}, id="in turns"
        ),
        pytest.param(
            node("n1", gpus=1, cut=(("3g.40gb", 4, 8), ("1g.10gb", 0, 1))),
            {"1g", "3g"},
            id="one that is cut",
        ),
        pytest.param(
            node("n1", gpus=1, dynamic=True),
            {"1g", "1gme", "2g", "3g", "7g"},
            id="one that is cut on demand",
        ),
    ],
)
def test_a_device_is_had_by_the_flavors_of_its_model_and_cut_alone(
    on: NodeView, had_by: set[str]
) -> None:
    spans = legal_spans(on)
    found = {flavor for flavor in FLAVORS if any(fits(on, flavor, span) for span in spans)}
    assert {flavor.name for flavor in found} == had_by
    assert {flavor.model for flavor in found} == {on.devices[0].model}


def test_a_part_of_a_shared_device_is_of_one_flavor() -> None:
    for isolation in (Isolation.NONE, Isolation.MEMORY):
        on = node("n1", gpus=1, model=T4, shares=isolation)
        assert len([flavor for flavor in FLAVORS if fits(on, flavor, HALF)]) == 1
