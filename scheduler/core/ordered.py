"""Entries that are kept in order while few of many come and go."""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Sequence
from copy import copy
from typing import Any, Self

_MOST_UNSETTLED = 1 << 10
"""So many changes beyond one for each entry wait to be put in order where nobody looks."""
_MOVED = 512
"""So many entries are moved along in the time in which one is found. What comes or goes in its
place moves half of all; where changes times that is more than there are entries, it is quicker to
sort all anew (measured with 50 to 5,000 entries)."""


class Ordered[E: tuple[Any, ...]]:
    """Tuples in their order, some perhaps several times.

    What comes and goes is put in order when `entries` are next asked for: of many nobody asks.
    """

    __slots__ = ("_come", "_entries", "_gone")

    def __init__(self, entries: Iterable[E] = ()) -> None:
        self._entries = sorted(entries)
        self._come: list[E] = []
        self._gone: list[E] = []

    def add(self, entry: E) -> None:
        self._come.append(entry)

    def discard(self, entry: E) -> None:
        """One that is there."""
        self._gone.append(entry)
        if len(self._gone) > len(self._entries) + _MOST_UNSETTLED:
            self._settle()

    @property
    def entries(self) -> Sequence[E]:
        """In order. To be read before the next change."""
        if self._come or self._gone:
            self._settle()
        return self._entries

    def twin(self) -> Self:
        """Another with the same in it."""
        twin = copy(self)
        twin._entries, twin._come, twin._gone = self._entries[:], self._come[:], self._gone[:]
        return twin

    def _settle(self) -> None:
        come, gone = self._come, self._gone
        self._come, self._gone = [], []
        size = len(self._entries)
        if (len(come) + len(gone)) * (1 + size // _MOVED) < size:
            for entry in come:
                insort(self._entries, entry)
            for entry in gone:
                del self._entries[bisect_left(self._entries, entry)]
            return
        self._entries += come
        self._entries.sort()
        if gone:
            self._entries = _without(self._entries, Counter(gone))


def _without[E](entries: Iterable[E], gone: Counter[E]) -> list[E]:
    left = []
    for entry in entries:
        if gone.get(entry):
            gone[entry] -= 1
        else:
            left.append(entry)
    return left
