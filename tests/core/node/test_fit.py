"""One pod on one node: what the planner and the applier both ask."""

from dataclasses import replace

import pytest

from scheduler.core.node.fit import Misfit, Room, let_in
from scheduler.core.plan import Place
from scheduler.core.snapshot import HeldView, Isolation, NodeView
from scheduler.core.units import DeviceId, FlavorId, NodeId, PodSetId, Span
from tests.core.build import BY_NAME, T4, device, node, runs

CUT = (("3g.40gb", 4, 8), ("1g.10gb", 0, 1), ("1g.10gb", 1, 2))
WHOLE = node("n1", gpus=2, cores=8, memory_gib=8)
STATIC = node("n1", gpus=1, cut=CUT)
DYNAMIC = node("n1", gpus=1, dynamic=True)
MEDIA_CUT = node("n1", gpus=1, cut=(("1g.10gb+me", 0, 1), ("1g.10gb+me", 1, 2)))
SHARED = node("n1", gpus=2, model=T4, shares=Isolation.MEMORY)
IN_THREE = node("n1", gpus=1, model=T4, shares=Isolation.MEMORY, replicas=3)


def place(
    flavor: str,
    *spans: tuple[int, int, int],
    amount: int | None = None,
    cores: int = 1,
    memory_gib: int = 1,
    on: str = "n1",
) -> Place:
    """Spans are (device number, start, end)."""
    whole = 1000 * len(spans) or cores * 1000
    return Place(
        PodSetId("main"),
        0,
        NodeId(on),
        FlavorId(flavor),
        whole if amount is None else amount,
        cores * 1000,
        memory_gib * 1024,
        tuple((DeviceId(f"n1/{d}"), Span(start, end)) for d, start, end in spans),
    )


def room_with(on: NodeView, beside: list[HeldView]) -> Room:
    room = Room(node=on)
    for holder in beside:
        room.take(holder=holder, flavor=BY_NAME[holder.flavor])
    return room


def held(*holders: tuple[str, tuple[int, int], str]) -> list[HeldView]:
    return [
        placement
        for device_id, span, flavor in holders
        for placement in runs("r", "a", device_id, flavor=flavor, span=span).placements
    ]


@pytest.mark.parametrize(
    ("on", "wanted", "beside", "expected"),
    [
        pytest.param(WHOLE, place("h100", (0, 0, 1000)), [], None, id="a whole device"),
        pytest.param(
            WHOLE, place("h100", (0, 0, 1000), (1, 0, 1000)), [], None, id="two whole devices"
        ),
        pytest.param(
            WHOLE,
            place("h100", (0, 0, 1000)),
            held(("n1/0", (0, 1000), "h100")),
            Misfit.SPAN_TAKEN,
            id="a device that is held",
        ),
        pytest.param(
            WHOLE,
            place("h100", (0, 0, 1000), (0, 0, 1000)),
            [],
            Misfit.SPAN_TAKEN,
            id="the same device twice",
        ),
        pytest.param(
            WHOLE, place("h100", (0, 0, 500)), [], Misfit.ILLEGAL_SPAN, id="half a whole device"
        ),
        pytest.param(
            WHOLE, place("h100", (5, 0, 1000)), [], Misfit.UNKNOWN_DEVICE, id="no such device"
        ),
        pytest.param(WHOLE, place("t4", (0, 0, 1000)), [], Misfit.MODEL, id="another model"),
        pytest.param(
            WHOLE, place("1g", (0, 0, 1)), [], Misfit.MODE, id="a slice of a device without MIG"
        ),
        pytest.param(
            WHOLE,
            place("h100", (0, 0, 1000), amount=2000),
            [],
            Misfit.AMOUNT,
            id="charged for more than it holds",
        ),
        pytest.param(WHOLE, place("h100"), [], Misfit.AMOUNT, id="a GPU pod without a device"),
        pytest.param(
            WHOLE,
            place("h100", amount=1),
            [],
            Misfit.AMOUNT,
            id="without one, for next to nothing",
        ),
        pytest.param(
            SHARED,
            place("t4share", amount=1),
            [],
            Misfit.AMOUNT,
            id="a share without a device, for next to nothing",
        ),
        pytest.param(
            WHOLE, place("h100", (0, 0, 1000), cores=9), [], Misfit.CPU, id="too many cores"
        ),
        pytest.param(
            WHOLE,
            place("h100", (0, 0, 1000), memory_gib=9),
            [],
            Misfit.MEMORY,
            id="too much memory",
        ),
        pytest.param(
            WHOLE,
            place("cpu", cores=8),
            held(("n1/0", (0, 1000), "h100")),
            Misfit.CPU,
            id="cores that another pod holds",
        ),
        pytest.param(WHOLE, place("cpu", cores=8), [], None, id="all cores"),
        pytest.param(WHOLE, place("cpu", memory_gib=8), [], None, id="all memory"),
        pytest.param(
            WHOLE,
            place("cpu", (0, 0, 1000), cores=1),
            [],
            Misfit.AMOUNT,
            id="a CPU flavor with a device",
        ),
        pytest.param(
            WHOLE,
            place("cpu", (0, 0, 1000), amount=1),
            [],
            Misfit.AMOUNT,
            id="a CPU flavor with a device, for next to nothing",
        ),
        pytest.param(
            WHOLE, place("h100", (0, 0, 1000), on="n2"), [], Misfit.WRONG_NODE, id="another node"
        ),
        pytest.param(
            replace(WHOLE, usable=False),
            place("h100", (0, 0, 1000)),
            [],
            Misfit.NODE_UNUSABLE,
            id="a node that takes nothing new",
        ),
        pytest.param(
            replace(WHOLE, devices=(device("n1/0", usable=False),)),
            place("h100", (0, 0, 1000)),
            [],
            Misfit.DEVICE_UNUSABLE,
            id="a sick device",
        ),
        pytest.param(
            WHOLE,
            place("h100", (0, 0, 1000)),
            held(("n1/0", (0, 500), "h100"), ("n1/0", (400, 600), "h100")),
            Misfit.DEVICE_UNUSABLE,
            id="a device on which two holders overlap already",
        ),
        pytest.param(
            IN_THREE, place("t4share", (0, 0, 666), amount=334), [], None, id="two of 3 replicas"
        ),
        pytest.param(
            IN_THREE,
            place("t4share", (0, 0, 334), amount=334),
            [],
            Misfit.AMOUNT,
            id="a share in less than the replicas that hold it",
        ),
        pytest.param(
            IN_THREE,
            place("t4share", (0, 667, 1000), amount=333),
            [],
            Misfit.ILLEGAL_SPAN,
            id="a share in what is of no replica",
        ),
        pytest.param(
            IN_THREE,
            place("t4share", (0, 666, 999), amount=333),
            held(("n1/0", (0, 300), "t4share")),
            Misfit.DEVICE_UNUSABLE,
            id="a device with a share from before it had its replicas",
        ),
        pytest.param(STATIC, place("1g", (0, 1, 2)), [], None, id="a slice that exists"),
        pytest.param(
            STATIC,
            place("1g", (0, 2, 3)),
            [],
            Misfit.ILLEGAL_SPAN,
            id="a slice that was not cut",
        ),
        pytest.param(
            STATIC,
            place("1g", (0, 0, 1)),
            held(("n1/0", (0, 1), "1g")),
            Misfit.SPAN_TAKEN,
            id="a slice that is held",
        ),
        pytest.param(
            STATIC, place("1g", (0, 0, 1), (0, 1, 2)), [], None, id="two slices of one device"
        ),
        pytest.param(
            STATIC, place("h100", (0, 0, 1000)), [], Misfit.MODE, id="a cut device as a whole"
        ),
        pytest.param(DYNAMIC, place("3g", (0, 4, 8)), [], None, id="a new slice at a legal start"),
        pytest.param(
            DYNAMIC,
            place("3g", (0, 2, 6)),
            [],
            Misfit.ILLEGAL_SPAN,
            id="a new slice at an illegal start",
        ),
        pytest.param(
            DYNAMIC,
            place("3g", (0, 4, 8)),
            held(("n1/0", (6, 7), "1g")),
            Misfit.SPAN_TAKEN,
            id="a new slice over an old one",
        ),
        pytest.param(
            DYNAMIC,
            place("1gme", (0, 1, 2)),
            held(("n1/0", (0, 1), "1gme")),
            Misfit.SPAN_TAKEN,
            id="media engines that are in use",
        ),
        pytest.param(
            DYNAMIC,
            place("1gme", (0, 1, 2)),
            held(("n1/0", (0, 1), "1g")),
            None,
            id="media engines beside a plain slice",
        ),
        pytest.param(
            MEDIA_CUT,
            place("1gme", (0, 1, 2)),
            held(("n1/0", (0, 1), "1gme")),
            None,
            id="media engines of a slice that was cut with its own",
        ),
        pytest.param(
            DYNAMIC, place("1g", (0, 1, 2), (0, 0, 1)), [], None, id="two new slices of one device"
        ),
        pytest.param(
            DYNAMIC,
            place("1g", (0, 0, 1), (0, 1, 2), (0, 0, 1)),
            [],
            Misfit.SPAN_TAKEN,
            id="the same new slice twice",
        ),
        pytest.param(
            SHARED, place("t4share", (0, 0, 250), amount=250), [], None, id="a quarter of a device"
        ),
        pytest.param(
            SHARED,
            place("t4share", (0, 0, 100), (0, 300, 400), amount=200),
            held(("n1/0", (100, 300), "t4share")),
            None,
            id="a share around what is held",
        ),
        pytest.param(
            SHARED,
            place("t4share", (0, 0, 100), (1, 0, 100), amount=200),
            [],
            Misfit.ILLEGAL_SPAN,
            id="a share over two devices",
        ),
        pytest.param(
            SHARED,
            place("t4slot", (0, 0, 250), amount=250),
            [],
            Misfit.ISOLATION,
            id="a share with less isolation than the node gives",
        ),
        pytest.param(
            node("n1", gpus=1, model=T4),
            place("t4share", (0, 0, 250), amount=250),
            [],
            Misfit.ISOLATION,
            id="a share of a device that is not shared",
        ),
        pytest.param(
            SHARED,
            place("t4", (0, 0, 1000)),
            held(("n1/0", (0, 100), "t4share")),
            Misfit.SPAN_TAKEN,
            id="a whole device that is shared out in part",
        ),
        pytest.param(
            SHARED, place("t4", (1, 0, 1000)), [], None, id="a whole device that may be shared"
        ),
    ],
)
def test_a_pod_on_a_node(
    on: NodeView, wanted: Place, beside: list[HeldView], expected: Misfit | None
) -> None:
    room = room_with(on, beside)
    assert room.misfit(place=wanted, flavor=BY_NAME[wanted.flavor]) == expected


def test_places_of_a_gang_count_beside_each_other() -> None:
    rooms = {WHOLE.id: Room(node=WHOLE)}
    gang = [place("h100", (0, 0, 1000)), place("h100", (0, 0, 1000))]
    assert not let_in(places=gang, rooms=rooms, flavors=BY_NAME)
    # The first of them is out again: another gang finds the room as it was.
    other = [place("h100", (0, 0, 1000)), place("h100", (1, 0, 1000))]
    assert let_in(places=other, rooms=rooms, flavors=BY_NAME)
    assert not let_in(places=gang[:1], rooms=rooms, flavors=BY_NAME)


@pytest.mark.parametrize(
    "stray", [place("h100", (0, 0, 1000), on="n2"), place("no-such", (0, 0, 1000))]
)
def test_a_place_on_an_unknown_node_or_of_an_unknown_flavor_does_not_fit(stray: Place) -> None:
    assert not let_in(places=[stray], rooms={WHOLE.id: Room(node=WHOLE)}, flavors=BY_NAME)


def test_media_engines_are_counted_within_a_gang_and_free_again_where_it_does_not_fit() -> None:
    rooms = {DYNAMIC.id: Room(node=DYNAMIC)}
    gang = [place("1gme", (0, 0, 1)), place("1gme", (0, 1, 2))]
    assert not let_in(places=gang, rooms=rooms, flavors=BY_NAME)
    assert let_in(places=gang[1:], rooms=rooms, flavors=BY_NAME)
