"""Whose turn it is, where each plan looks at some of many."""

from collections.abc import Sequence
from itertools import chain, islice

_GOLDEN = 0x9E3779B97F4A7C15
"""2^64 over the golden ratio: of its multiples modulo 2^64 no stride keeps away from any part."""


def in_turn[T](of: Sequence[T], *, at: int, most: int) -> list[T]:
    """All, or so many from a place on that differs from plan to plan, and round from the last to
    the first. Each comes up in time, though plans come in step: with `at * most` for the place
    some of 80 would never do with a plan each ten seconds."""
    if len(of) <= most:
        return list(of)
    first = (at * _GOLDEN % (1 << 64)) * len(of) >> 64
    return list(islice(chain(of[first:], of[:first]), most))
