"""What comes into the room of a node, what it gives back, and what is free beside it."""

from dataclasses import replace

import pytest

from scheduler.core.node.fit import Misfit, Room
from scheduler.core.snapshot import HeldView, NodeView
from scheduler.core.units import DeviceId, FlavorId, Span
from tests.core.build import A30, BY_NAME, device
from tests.core.node.test_fit import (
    DYNAMIC,
    MEDIA_CUT,
    WHOLE,
    held,
    place,
    room_with,
)  # fmt: skip


def test_what_is_held_on_a_device_that_is_gone_takes_cores_only() -> None:
    room = room_with(WHOLE, held(("n1/7", (0, 1000), "h100")))
    whole, cores = place("h100", (0, 0, 1000)), place("cpu", cores=8)
    assert room.misfit(place=whole, flavor=BY_NAME[whole.flavor]) is None
    assert room.misfit(place=cores, flavor=BY_NAME[cores.flavor]) is Misfit.CPU


def test_a_room_gives_back_exactly_what_was_taken() -> None:
    room = Room(node=replace(DYNAMIC, devices=(*DYNAMIC.devices, device("n1/1", A30))))
    wanted = place("1gme", (0, 3, 4))
    before = room.cpu_milli, room.memory_mib, dict(room.taken), set(room.media)
    room.take(holder=wanted, flavor=BY_NAME[FlavorId("1gme")])
    assert (room.cpu_milli, room.memory_mib, room.taken, room.media) != before
    room.give(holder=wanted, flavor=BY_NAME[FlavorId("1gme")])
    assert (room.cpu_milli, room.memory_mib, room.taken, room.media) == before


def test_of_what_is_held_on_several_devices_only_the_lost_one_is_passed_over() -> None:
    room = Room(node=WHOLE)
    spread = place("h100", (7, 0, 1000), (0, 0, 1000))
    room.take(holder=spread, flavor=BY_NAME[spread.flavor])
    again = place("h100", (0, 0, 1000))
    assert room.misfit(place=again, flavor=BY_NAME[again.flavor]) is Misfit.SPAN_TAKEN
    room.give(holder=spread, flavor=BY_NAME[spread.flavor])
    assert room.misfit(place=again, flavor=BY_NAME[again.flavor]) is None


def test_what_is_held_of_an_unknown_flavor_takes_its_room_and_gives_it_back() -> None:
    room, wanted = Room(node=WHOLE), place("h100", (0, 0, 1000))
    room.take(holder=wanted, flavor=None)
    assert room.misfit(place=wanted, flavor=BY_NAME[wanted.flavor]) is Misfit.SPAN_TAKEN
    room.give(holder=wanted, flavor=None)
    assert room.misfit(place=wanted, flavor=BY_NAME[wanted.flavor]) is None


def test_a_room_is_in_no_index_unless_one_says_so() -> None:
    room = Room(node=WHOLE)
    assert room.rank == -1
    room.rank = 3
    assert room.copy().rank == -1


@pytest.mark.parametrize(
    ("on", "since", "free"),
    [
        pytest.param(WHOLE, [], True, id="nothing was put there since"),
        pytest.param(WHOLE, [place("h100", (1, 0, 1000))], True, id="beside it"),
        pytest.param(WHOLE, [place("h100", (0, 0, 1000))], False, id="on its device"),
        pytest.param(WHOLE, [place("cpu", cores=7)], True, id="all other cores"),
        pytest.param(WHOLE, [place("cpu", cores=8)], False, id="its cores"),
        pytest.param(WHOLE, [place("cpu", memory_gib=7)], True, id="all other memory"),
        pytest.param(WHOLE, [place("cpu", memory_gib=8)], False, id="its memory"),
    ],
)
def test_a_place_that_was_given_back_is_free_until_something_is_put_there(
    on: NodeView, since: list[HeldView], free: bool
) -> None:
    was = place("h100", (0, 0, 1000))
    room = room_with(on, since)
    assert room.is_free(place=was, flavor=BY_NAME[was.flavor]) is free


def test_a_place_on_several_devices_is_free_where_all_of_them_are() -> None:
    was = place("h100", (0, 0, 1000), (1, 0, 1000))
    for device_id in ("n1/0", "n1/1"):
        room = room_with(WHOLE, held((device_id, (0, 1000), "h100")))
        assert not room.is_free(place=was, flavor=BY_NAME[was.flavor])


def test_on_a_device_that_is_broken_or_gone_nothing_was_put_since() -> None:
    twice = held(("n1/0", (0, 1000), "h100"), ("n1/0", (0, 1000), "h100"))
    room = room_with(WHOLE, twice)
    assert room.is_free(place=place("h100", (0, 0, 1000)), flavor=BY_NAME[FlavorId("h100")])
    assert room.is_free(place=place("h100", (7, 0, 1000)), flavor=BY_NAME[FlavorId("h100")])
    beside = room_with(WHOLE, [*twice, *held(("n1/1", (0, 1000), "h100"))])
    both = place("h100", (0, 0, 1000), (1, 0, 1000))
    assert not beside.is_free(place=both, flavor=BY_NAME[FlavorId("h100")])


def test_media_engines_are_free_where_nobody_else_has_them() -> None:
    was = place("1gme", (0, 0, 1))
    for flavor, free in (("1gme", False), ("1g", True)):
        room = room_with(DYNAMIC, held(("n1/0", (3, 4), flavor)))
        assert room.is_free(place=was, flavor=BY_NAME[was.flavor]) is free
        assert room.is_free(place=was, flavor=None)
    cut = room_with(MEDIA_CUT, held(("n1/0", (1, 2), "1gme")))
    assert cut.is_free(place=was, flavor=BY_NAME[was.flavor])


def test_what_is_free_in_two_rooms_has_the_media_engines_of_neither() -> None:
    two = replace(DYNAMIC, devices=(*DYNAMIC.devices, device("n1/1", dynamic=True)))
    room = room_with(two, held(("n1/0", (0, 1), "1gme")))
    room.tighten(other=room_with(two, held(("n1/1", (0, 1), "1gme"))))
    for number in (0, 1):
        wants = place("1gme", (number, 2, 3))
        assert room.misfit(place=wants, flavor=BY_NAME[wants.flavor]) is Misfit.SPAN_TAKEN
        without = place("1g", (number, 2, 3))
        assert room.misfit(place=without, flavor=BY_NAME[without.flavor]) is None
    alone = room_with(two, held(("n1/0", (0, 1), "1gme")))
    alone.tighten(other=Room(node=two))
    wants = place("1gme", (0, 2, 3))
    assert alone.misfit(place=wants, flavor=BY_NAME[wants.flavor]) is Misfit.SPAN_TAKEN


def test_a_room_may_be_of_another_view_of_its_node() -> None:
    """Devices come and go; what is held stays on those that are there."""
    room = room_with(WHOLE, held(("n1/0", (0, 1000), "h100")))
    more = replace(WHOLE, devices=(*WHOLE.devices, device("n1/2")))
    other = room.copy(node=more)
    wants = place("h100", (2, 0, 1000))
    assert room.misfit(place=wants, flavor=BY_NAME[wants.flavor]) is Misfit.UNKNOWN_DEVICE
    assert [*other.devices] == ["n1/0", "n1/1", "n1/2"]
    room.empty(node=more)
    for number in range(3):
        wants = place("h100", (number, 0, 1000))
        assert room.misfit(place=wants, flavor=BY_NAME[wants.flavor]) is None


def test_what_others_hold_of_a_device_is_not_free() -> None:
    first, second, gone = DeviceId("n1/0"), DeviceId("n1/1"), DeviceId("n1/9")
    slices = replace(
        DYNAMIC,
        devices=(*DYNAMIC.devices, device("n1/1", dynamic=True)),
        foreign=((first, Span(0, 2)), (first, Span(4, 6)), (gone, Span(0, 8))),
    )
    room = Room(node=slices)
    assert room.taken == {first: 0b110011, second: 0}
