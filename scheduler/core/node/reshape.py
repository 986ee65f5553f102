"""Room for a MIG slice by moving others, where no legal start is free.

What lies in the way of one legal span moves, each slice to a legal span that is free then, on any
device; nothing else does. The least compute is moved; of equals the fewest slices, then on the
fullest device, then on the first. A move stops work and starts it elsewhere: this proposes, and
decides nothing. Nodes, cores and quota are not known here.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from scheduler.core.node import mig
from scheduler.core.node.slices import Mix, spots
from scheduler.core.units import Span


class Held(NamedTuple):
    """A slice in use. `movable`: its work may be stopped and started elsewhere."""

    profile: str
    span: Span
    movable: bool


class Move(NamedTuple):
    """The slice that lies at `span` of a device goes to `to_span` of `to`; devices by position."""

    device: int
    span: Span
    to: int
    to_span: Span


class Reshape(NamedTuple):
    """After the moves `span` is free on `device`; they move so many `compute` slices in sum."""

    compute: int
    moves: tuple[Move, ...]
    device: int
    span: Span


def reshape(
    *, mix: Mix, profile: str, devices: Sequence[Sequence[Held]], most_compute: int
) -> Reshape | None:
    """The cheapest moves after which a slice of the profile can start on one of the devices.

    None when there are none that move `most_compute` slices or fewer. Devices are of the mix's
    board; what is held on one does not overlap. Slices with media engines neither move nor are
    moved for, since the engines are not spans.
    """
    if _compute(mix, profile) is None:
        return None
    taken = [sum(mig.mask(held.span) for held in device) for device in devices]
    hopeless = set()
    for compute, _, _, device, span, leaving in sorted(_ways(mix, profile, devices, taken)):
        if compute > most_compute:
            return None
        alike = taken[device], span, leaving
        if alike in hopeless:
            continue
        after = taken.copy()
        for held in leaving:
            after[device] &= ~mig.mask(held.span)
        after[device] |= mig.mask(span)
        homes = _Homes(mix, leaving).find(0, after)
        if homes is not None:
            moves = (Move(device, h.span, *home) for h, home in zip(leaving, homes, strict=True))
            return Reshape(compute, tuple(moves), device, span)
        hopeless.add(alike)
    return None


_Way = tuple[int, int, int, int, Span, tuple[Held, ...]]


def _ways(
    mix: Mix, profile: str, devices: Sequence[Sequence[Held]], taken: Sequence[int]
) -> Iterator[_Way]:
    """(compute, slices, free bits, device, span, what is in its way, widest first)."""
    for at, device in enumerate(devices):
        for span in mig.legal_spans(model=mix.board, profile=profile):
            compute, leaving = 0, []
            for held in device:
                if mig.mask(held.span) & mig.mask(span):
                    moved = _compute(mix, held.profile) if held.movable else None
                    if moved is None:
                        break
                    compute += moved
                    leaving.append(held)
            else:
                leaving.sort(key=lambda held: (-held.span.width, held))
                yield compute, len(leaving), -taken[at].bit_count(), at, span, tuple(leaving)


def _compute(mix: Mix, name: str) -> int | None:
    """How many compute slices move with it; None for what can't."""
    profile = mig.profile(model=mix.board, name=name)
    return None if profile is None or profile.media else profile.compute


class _Homes:
    """A search for free spans for slices, depth first, where each costs least first; exact."""

    def __init__(self, mix: Mix, leaving: tuple[Held, ...]) -> None:
        self._mix = mix
        self._leaving = leaving
        self._dead: set[tuple[int, tuple[int, ...]]] = set()

    def find(self, nth: int, taken: list[int]) -> tuple[tuple[int, Span], ...] | None:
        """A (device, span) for each from the nth on, given the bits in use of each device."""
        if nth == len(self._leaving):
            return ()
        state = nth, tuple(sorted(taken))
        if state in self._dead:
            return None
        firsts = {bits: at for at, bits in reversed(list(enumerate(taken)))}
        profile = self._leaving[nth].profile
        found = sorted(
            (spot, at)
            for bits, at in firsts.items()
            for spot in spots(mix=self._mix, profile=profile, taken=bits)
        )
        for spot, at in found:
            taken[at] |= mig.mask(spot.span)
            others = self.find(nth + 1, taken)
            taken[at] &= ~mig.mask(spot.span)
            if others is not None:
                return (at, spot.span), *others
        self._dead.add(state)
        return None
