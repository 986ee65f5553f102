"""Whose turn it is, where each plan looks at some of many."""

from collections.abc import Iterator, Sequence
from itertools import chain, islice

_MASK = (1 << 64) - 1


def in_turn[T](of: Sequence[T], *, at: int, most: int) -> list[T]:
    """All, or so many from a place on that differs from plan to plan, and round from the last to
    the first. Each comes up in time, though plans come in step: the place is as good as drawn by
    lot, where with any multiple of `at` some would wait for months of plans 901 s apart."""
    return list(of) if len(of) <= most else list(islice(from_turn(of, at=at), most))


def from_turn[T](of: Sequence[T], *, at: int) -> Iterator[T]:
    """All, from that place on."""
    first = _scattered(at) * len(of) >> 64
    return chain(of[first:], of[:first])


def _scattered(at: int) -> int:
    """A number of 64 bits that looks drawn by lot, of each moment its own: SplitMix64's
    (Steele, Lea and Flood, OOPSLA 2014)."""
    mixed = (at * 0x9E3779B97F4A7C15 + 0x9E3779B97F4A7C15) & _MASK
    mixed = ((mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9) & _MASK
    mixed = ((mixed ^ mixed >> 27) * 0x94D049BB133111EB) & _MASK
    return mixed ^ mixed >> 31
