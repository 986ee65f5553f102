"""Whose turn it is, where each plan looks at some of many."""

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from math import gcd

_MASK = (1 << 64) - 1


def in_turn[T](of: Sequence[T], *, at: int, most: int) -> list[T]:
    """All, or so many from a place on that differs from plan to plan, and round from the last to
    the first. Each comes up in time, though plans come in step: the place is as good as drawn by
    lot, where with any multiple of `at` some would wait for months of plans 901 s apart."""
    if len(of) <= most:
        return list(of)
    first = _scattered(at) * len(of) >> 64
    return list(islice(chain(of[first:], of[:first]), most))


def by_lot[T](of: Sequence[T], *, at: int) -> Iterator[T]:
    """All, one after another, in an order that differs from plan to plan: of those that the caller
    looks for, few among many, each is as likely to be found first, wherever they stand."""
    count, first = len(of), _scattered(at)
    step = 1 + (_scattered(first) * count >> 64)
    while gcd(step, count) > 1:
        step += 1
    return (of[(first + nth * step) % count] for nth in range(count))


def _scattered(at: int) -> int:
    """A number of 64 bits that looks drawn by lot, of each moment its own: SplitMix64's
    (Steele, Lea and Flood, OOPSLA 2014)."""
    mixed = (at * 0x9E3779B97F4A7C15 + 0x9E3779B97F4A7C15) & _MASK
    mixed = ((mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9) & _MASK
    mixed = ((mixed ^ mixed >> 27) * 0x94D049BB133111EB) & _MASK
    return mixed ^ mixed >> 31
