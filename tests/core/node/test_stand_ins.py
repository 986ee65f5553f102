"""A node that has lost a count token: whoever holds it holds one of those that are there."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.core.faults import faults
from scheduler.core.node.fit import Misfit, Room, let_in
from scheduler.core.reasons import ReasonCode
from scheduler.core.snapshot import HeldView, HoldingView, Isolation, NodeView
from scheduler.core.units import WHOLE_DEVICE, DeviceId
from tests.core.build import BY_NAME, T4, Quota, decide, job, node, pods, queue, runs, snapshot
from tests.core.drawn.losing import counted
from tests.core.sweep.test_sweep import agree

SICK = counted(node("n1", gpus=7))
"""It had eight."""
LEFT = runs("left", "b", "n1/4", "n1/5", "n1/6", "n1/7", preemptible=False)
OTHER = runs("other", "b", "n1/0", "n1/1", "n1/2", "n1/3")
EXACT = replace(SICK, counted=False)


def _free(room: Room) -> list[str]:
    return [device for device, bits in room.taken.items() if not bits]


def _with(on: NodeView, *holding: HoldingView) -> Room:
    room = Room(node=on)
    for held in holding:
        for placement in held.placements:
            room.take(holder=placement, flavor=BY_NAME[placement.flavor])
    return room


@pytest.mark.parametrize(("on", "most"), [(SICK, 3), (EXACT, 4)])
def test_no_more_starts_than_the_cluster_has_beside_it(on: NodeView, most: int) -> None:
    """A driver that tells each device by itself has lost that very one: four are free."""
    for gpus in (3, 4, 5):
        of = snapshot(
            nodes=[on],
            queues=[queue("a", h100=8)],
            holding=[LEFT],
            pending=[job("w", "a", pods(gpus=gpus))],
        )
        made = agree(of)
        assert bool(made.admits) is (gpus <= most)


def test_one_of_those_that_are_there_stands_in_and_no_second_one() -> None:
    room = _with(SICK, LEFT)
    assert _free(room) == ["n1/0", "n1/1", "n1/2"]
    assert room.short == 0
    both = _with(SICK, LEFT, OTHER)
    assert (_free(both), both.short) == ([], 1)
    for placement in OTHER.placements:
        both.give(holder=placement, flavor=BY_NAME[placement.flavor])
    assert (both.taken, both.held, both.short) == (room.taken, room.held, 0)


def test_the_applier_refuses_what_stands_in() -> None:
    places = runs("w", "a", "n1/0", "n1/1", "n1/2", "n1/3").placements
    assert let_in(places=places[:3], rooms={SICK.id: _with(SICK, LEFT)}, flavors=BY_NAME)
    room = _with(SICK, LEFT)
    assert not let_in(places=places, rooms={SICK.id: room}, flavors=BY_NAME)
    assert room.misfit(place=places[3], flavor=BY_NAME[places[3].flavor]) is Misfit.SPAN_TAKEN


def test_nobody_is_evicted_for_more_than_is_there_then() -> None:
    def asks(gpus: int) -> list[str]:
        of = snapshot(
            nodes=[SICK],
            queues=[queue("a", h100=8), queue("b", h100=Quota(0, borrow=None))],
            holding=[LEFT, replace(OTHER, priority=-1)],
            pending=[job("w", "a", pods(gpus=gpus))],
        )
        return [preempt.victim for preempt in agree(of).preempts]

    assert asks(3) == ["other"]
    assert asks(4) == []


def test_who_holds_a_sick_one_frees_the_well_one_on_which_another_stands_in() -> None:
    """What stands in for the lost device moves onto the sick one, once that is given back."""
    two = counted(node("n1", gpus=2))
    well, sick = two.devices
    of = snapshot(
        nodes=[replace(two, devices=(well, replace(sick, usable=False))), node("n2", gpus=1)],
        queues=[queue("a", h100=8), queue("b", h100=Quota(0, borrow=None))],
        pending=[job("w", "a")],
        holding=[
            runs("lost", "b", "n1/2", preemptible=False),
            runs("v", "b", "n1/1"),
            runs("dear", "b", "n2/0", priority=2),
        ],
    )
    assert [preempt.victim for preempt in agree(of).preempts] == ["v"]


def test_it_is_told_what_is_free_and_not_that_it_never_starts() -> None:
    of = snapshot(
        nodes=[SICK],
        queues=[queue("a", h100=8)],
        holding=[LEFT],
        pending=[job("w", "a", pods(gpus=4))],
    )
    made = decide(of)
    assert made.reason("w") is ReasonCode.NO_FREE_CAPACITY
    assert made.numbers("w")["free_milli"] == 3000


def test_a_lost_count_token_is_no_contradiction_and_one_of_another_node_is() -> None:
    def told(on: NodeView, held: HoldingView) -> list[str]:
        of = snapshot(nodes=[on, node("n2", gpus=1)], queues=[queue("b", h100=8)], holding=[held])
        return [fault.id for fault in faults(of)]

    assert told(SICK, LEFT) == []
    assert told(EXACT, LEFT) == ["n1/7"]
    [elsewhere] = LEFT.placements[:1]
    spans = ((DeviceId("n2/0"), WHOLE_DEVICE),)
    apart = replace(LEFT, placements=(replace(elsewhere, spans=spans),))
    assert told(SICK, apart) == ["n2/0"]


CUT = (("1g.10gb", 0, 1), ("1g.10gb", 1, 2), ("3g.40gb", 4, 8))
HALF_CUT = (("1g.10gb", 0, 1), ("3g.40gb", 4, 8))
SHARED = counted(node("n1", gpus=2, model=T4, shares=Isolation.NONE, replicas=4))


@pytest.mark.parametrize(
    ("on", "flavor", "span", "where", "stands_in"),
    [
        (counted(node("n1", gpus=2, cut=CUT)), "1g", (1, 2), "n1/2", {"n1/1": 0b1}),
        (counted(node("n1", gpus=2, cut=HALF_CUT)), "1g", (1, 2), "n1/1", {"n1/1": 0b11}),
        (counted(node("n1", gpus=1, cut=(("3g.40gb", 4, 8),))), "1g", (0, 1), "n1/1", {}),
        (counted(node("n1", gpus=1, dynamic=True)), "3g", (0, 4), "n1/1", {"n1/0": 0xF0}),
        (SHARED, "t4slot", (0, 500), "n1/2", {"n1/1": (1 << 500) - 1}),
        (SHARED, "t4", (0, 1000), "n1/2", {"n1/1": (1 << 1000) - 1}),
        (counted(node("n1", gpus=1, dynamic=True)), "h100", (0, 1000), "n1/1", {}),
    ],
    ids=[
        "a slice of a device that is gone",
        "a slice that is gone of a device that is there, whose place is held too",
        "a slice of which there are no others",
        "a slice where they are cut on demand",
        "replicas",
        "all replicas of a device",
        "a device where all are cut now",
    ],
)
def test_one_of_its_kind_stands_in(
    on: NodeView,
    flavor: str,
    span: tuple[int, int],
    where: str,
    stands_in: dict[str, int],
) -> None:
    room = _with(on, runs("r", "a", where, flavor=flavor, span=span))
    assert {device: bits for device, bits in room.taken.items() if bits} == stands_in


HOLDERS: Sequence[HeldView] = [
    *LEFT.placements,
    *OTHER.placements,
    *runs("gone", "a", "n1/8", "n1/9").placements,
]


@given(st.integers(0, 2**32))
def test_what_stands_in_follows_from_who_is_there_not_from_who_came_and_went(seed: int) -> None:
    pick = Random(seed)
    room, there = Room(node=SICK), list[HeldView]()
    for _ in range(20):
        holder = pick.choice(HOLDERS)
        move: Callable[..., None] = room.give if holder in there else room.take
        move(holder=holder, flavor=BY_NAME[holder.flavor])
        there.remove(holder) if holder in there else there.append(holder)
        anew = Room(node=SICK)
        for each in sorted(there, key=lambda held: held.id):
            anew.take(holder=each, flavor=BY_NAME[each.flavor])
        assert (room.taken, room.held, room.lost) == (anew.taken, anew.held, anew.lost)
        assert room.short == anew.short == max(0, len(there) - len(SICK.devices))
        assert len(_free(room)) == max(0, len(SICK.devices) - len(there))
        twin = room.copy()
        assert (twin.taken, twin.held, twin.lost, twin.short) == (
            room.taken, room.held, room.lost, room.short,
        )  # fmt: skip


def test_what_was_put_since_may_not_lack_what_stands_in() -> None:
    """Of 1 and 1 that have left beside 6 and a lost one, one is free: taken, none may return."""
    six = runs("six", "b", *(f"n1/{nth}" for nth in range(2, 8)))
    [first] = runs("first", "a", "n1/0").placements
    [new] = runs("new", "a", "n1/0").placements
    room = _with(SICK, six)
    assert _free(room) == ["n1/0"]
    flavor = BY_NAME[first.flavor]
    second = runs("second", "a", "n1/1").placements[0]
    assert room.is_free(place=second, flavor=flavor)  # another one stands in then
    room.take(holder=new, flavor=flavor)
    assert not room.is_free(place=second, flavor=flavor)
    assert not room.is_free(place=first, flavor=flavor)


def test_only_what_is_free_in_both_is_left_and_what_stands_in_counts_once() -> None:
    now, then = _with(SICK, LEFT), _with(SICK, LEFT)
    [kept] = runs("kept", "a", "n1/0").placements
    then.take(holder=kept, flavor=BY_NAME[kept.flavor])
    now.tighten(other=then)
    assert _free(now) == ["n1/1", "n1/2"]
    for placement in LEFT.placements:
        then.give(holder=placement, flavor=BY_NAME[placement.flavor])
    again = _with(SICK, LEFT)
    again.tighten(other=then)
    assert _free(again) == ["n1/1", "n1/2"]


def test_who_holds_a_lost_one_may_be_put_back_where_nothing_was_put_since() -> None:
    room = _with(SICK, OTHER)
    flavor, last = BY_NAME[LEFT.placements[0].flavor], LEFT.placements[-1]
    assert last.spans[0][0] == DeviceId("n1/7")
    assert room.is_free(place=last, flavor=flavor)
    for placement in LEFT.placements[:3]:
        room.take(holder=placement, flavor=flavor)
    assert not room.is_free(place=last, flavor=flavor)


def test_a_device_that_two_hold_stands_in_for_nothing() -> None:
    twice = runs("p", "a", "n1/6"), runs("q", "a", "n1/6")
    room = _with(SICK, *twice, runs("left", "b", "n1/7"))
    assert room.broken == {DeviceId("n1/6")}
    assert _free(room) == ["n1/0", "n1/1", "n1/2", "n1/3", "n1/4"]
