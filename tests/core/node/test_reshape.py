"""What is moved to make room for a slice, against every way to do it."""

from collections.abc import Iterator
from itertools import combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.node import mig
from scheduler.core.node.reshape import Held, Move, Reshape, reshape
from scheduler.core.node.slices import mix_of
from scheduler.core.units import Span

FEW = settings(max_examples=150, deadline=None)
BOARD = "H100-80GB"
NAMES = ("1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb", "1g.10gb+me")
EVEN = mix_of(model=BOARD, asked={}, devices=1)

Devices = list[list[Held]]


def _held(profile: str, start: int, *, movable: bool = True) -> Held:
    [span] = [s for s in mig.legal_spans(model=BOARD, profile=profile) if s.start == start]
    return Held(profile, span, movable)


def _compute(profile: str) -> int:
    found = mig.profile(model=BOARD, name=profile)
    assert found is not None
    return found.compute


@st.composite
def devices(draw: st.DrawFn) -> Devices:
    """One or two, filled as slices come that fit."""
    wanted = st.tuples(st.sampled_from(NAMES), st.integers(0, 6), st.integers(0, 4))
    found: Devices = []
    for _ in range(draw(st.integers(1, 2))):
        device: list[Held] = []
        for profile, start, chance in draw(st.lists(wanted, max_size=8)):
            spans = mig.legal_spans(model=BOARD, profile=profile)
            held = Held(profile, spans[start % len(spans)], movable=chance > 0)
            if not _overlap([*device, held]):
                device.append(held)
        found.append(device)
    return found


def _overlap(device: list[Held]) -> bool:
    pairs = combinations(device, 2)
    return any(mig.mask(one.span) & mig.mask(other.span) for one, other in pairs)


def _every_way(devices: Devices, profile: str) -> Iterator[int]:
    """The compute moved by each lawful way in which only what is in the way is moved."""
    for at, span in product(range(len(devices)), mig.legal_spans(model=BOARD, profile=profile)):
        leaving = [h for h in devices[at] if mig.mask(h.span) & mig.mask(span)]
        if any(not held.movable or held.profile.endswith("+me") for held in leaving):
            continue
        homes = (
            product(range(len(devices)), mig.legal_spans(model=BOARD, profile=held.profile))
            for held in leaving
        )
        for chosen in product(*homes):
            after = [
                [h for h in device if h not in leaving or i != at]
                for i, device in enumerate(devices)
            ]
            after[at].append(Held(profile, span, movable=False))
            for held, (device, to) in zip(leaving, chosen, strict=True):
                after[device].append(held._replace(span=to))
            if not any(map(_overlap, after)):
                yield sum(_compute(held.profile) for held in leaving)
                break


def _moved(devices: Devices, found: Reshape, profile: str) -> Devices:
    after = [list(device) for device in devices]
    moving = []
    for move in found.moves:
        [held] = [h for h in after[move.device] if h.span == move.span]
        assert held.movable
        after[move.device].remove(held)
        moving.append((move, held))
    for move, held in moving:
        assert move.to_span in mig.legal_spans(model=BOARD, profile=held.profile)
        after[move.to].append(held._replace(span=move.to_span))
    assert found.span in mig.legal_spans(model=BOARD, profile=profile)
    after[found.device].append(Held(profile, found.span, movable=False))
    return after


@FEW
@given(devices=devices(), profile=st.sampled_from(NAMES[:-1]), most=st.integers(0, 7))
def test_the_least_compute_is_moved_that_makes_lawful_room(
    devices: Devices, profile: str, most: int
) -> None:
    found = reshape(mix=EVEN, profile=profile, devices=devices, most_compute=most)
    least = min(_every_way(devices, profile), default=None)
    if least is None or least > most:
        assert found is None
        return
    assert found is not None
    assert found.compute == least
    assert not any(map(_overlap, _moved(devices, found, profile)))


@pytest.mark.parametrize(
    ("devices", "profile", "expected"),
    [
        pytest.param(
            [[_held("1g.10gb", 0), _held("2g.20gb", 4)], [_held("3g.40gb", 0)]],
            "7g.80gb",
            Reshape(
                3,
                (Move(0, Span(4, 6), 1, Span(4, 6)), Move(0, Span(0, 1), 1, Span(6, 7))),
                0,
                Span(0, 8),
            ),
            id="the device whose slices move with least compute",
        ),
        pytest.param(
            [[_held("2g.20gb", 0)], [_held("1g.10gb", 4), _held("1g.10gb", 0)]],
            "4g.40gb",
            Reshape(1, (Move(1, Span(0, 1), 1, Span(5, 6)),), 1, Span(0, 4)),
            id="one small slice rather than a larger one",
        ),
        pytest.param(
            [[_held("1g.20gb", 0), _held("3g.40gb", 4)], [_held("2g.20gb", 0)]],
            "3g.40gb",
            Reshape(0, (), 1, Span(4, 8)),
            id="nothing where a start is free",
        ),
    ],
)
def test_what_is_moved(devices: Devices, profile: str, expected: Reshape) -> None:
    assert reshape(mix=EVEN, profile=profile, devices=devices, most_compute=7) == expected


@pytest.mark.parametrize(
    "held",
    [
        pytest.param(_held("1g.10gb", 0, movable=False), id="what may not be stopped"),
        pytest.param(_held("1g.10gb+me", 0), id="what has the media engines"),
    ],
)
def test_some_slices_stay_where_they_are(held: Held) -> None:
    devices = [[held, _held("3g.40gb", 4)], [_held("4g.40gb", 0)]]
    assert reshape(mix=EVEN, profile="4g.40gb", devices=devices, most_compute=7) is None


def test_nothing_is_moved_for_a_slice_with_media_engines() -> None:
    found = reshape(mix=EVEN, profile="1g.10gb+me", devices=[[]], most_compute=7)
    assert found is None


@pytest.mark.parametrize(("most", "moves"), [(1, None), (2, 2)])
def test_no_more_is_moved_than_may_be(most: int, moves: int | None) -> None:
    devices = [[_held("2g.20gb", 0)], [_held("3g.40gb", 0), _held("3g.40gb", 4)]]
    found = reshape(mix=EVEN, profile="4g.40gb", devices=devices, most_compute=most)
    assert (found and found.compute) == moves


def test_what_two_devices_hold_is_told_apart_though_the_same_bits_are_in_use() -> None:
    """Quarters find no home where single slices do."""
    quarters = [_held("1g.20gb", 0), _held("1g.20gb", 2), _held("3g.40gb", 4, movable=False)]
    singles = [*(_held("1g.10gb", n) for n in range(4)), _held("3g.40gb", 4, movable=False)]
    holes = [_held("1g.10gb", n, movable=False) for n in (0, 2, 4, 6)]
    devices = [quarters, singles, holes, holes]
    found = reshape(mix=EVEN, profile="4g.40gb", devices=devices, most_compute=7)
    assert found is not None
    assert (found.device, found.compute, len(found.moves)) == (1, 4, 4)
