"""What runs, in the order in which it ends by its run-time limits.

Work without a limit is taken to end last, the one that has run longest first. The order is kept
from one plan to the next, and of many ends only those are worked out that are asked for.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import merge
from itertools import islice
from operator import attrgetter, itemgetter
from typing import NamedTuple, overload

from scheduler.core.held.victims import begun_at
from scheduler.core.ordered import Ordered
from scheduler.core.plan import Place
from scheduler.core.snapshot import HeldView, HoldingView, PendingView
from scheduler.core.units import ProjectId, WorkloadId

OVERDUE_S = 300
"""Work that has run so much longer than its limit has no end that anybody knows."""

type _Entry = tuple[int, WorkloadId, tuple[str, ...], int]
"""When it ends by its limit, or has begun without one; who it is. A workload that holds twice,
which contradicts itself, stands by its nodes, and then by a number."""

_when: Callable[[_Entry], int] = itemgetter(0)


class Run(NamedTuple):
    """What ends at a moment, or last: then `ends_at` is when it has begun."""

    ends_late: bool
    ends_at: int
    id: WorkloadId
    project: ProjectId
    holders: Sequence[Place | HeldView]

    @classmethod
    def of(cls, held: HoldingView, stays: Sequence[HeldView], *, at: int) -> "Run":
        """It runs with what stays of it, and ends after that moment."""
        end = ends_at(held, at)
        late, when = (True, begun_at(held)) if end is None else (False, end)
        return cls(late, when, held.id, held.project, stays)

    @classmethod
    def begun(cls, pending: PendingView, places: Sequence[Place], *, at: int) -> "Run":
        """It starts then with these places."""
        limit_s = pending.run_time_limit_s
        late, when = (True, at) if limit_s is None else (False, at + max(1, limit_s))
        return cls(late, when, pending.id, pending.project, places)

    @property
    def order(self) -> tuple[bool, int, str, list[str]]:
        return self.ends_late, self.ends_at, self.id, sorted(p.node for p in self.holders)


ORDER = attrgetter("order")


def ends_at(held: HoldingView, at: int) -> int | None:
    """When it ends by its run-time limit, after `at`; None when nobody knows."""
    if held.run_time_limit_s is None:
        return None
    end = begun_at(held) + held.run_time_limit_s
    return None if end + OVERDUE_S < at else max(at + 1, end)


class Ends:
    """Of those of one snapshot that hold something, then of the next (`follow`)."""

    def __init__(self, holding: Iterable[HoldingView] = ()) -> None:
        self._held: dict[_Entry, HoldingView] = {}
        self._limited = Ordered[_Entry]()
        self._unlimited = Ordered[_Entry]()
        self._of: dict[ProjectId, set[_Entry]] = {}
        self.follow(gone=(), come=holding)

    def __len__(self) -> int:
        return len(self._held)

    def follow(self, *, gone: Iterable[HoldingView], come: Iterable[HoldingView]) -> None:
        """Those have gone that were there, and others have come. Nobody who goes held twice."""
        for held in gone:
            if held.placements:
                entry = _entry(held)
                del self._held[entry]
                self._line(held).discard(entry)
                self._of[held.project].discard(entry)
        for held in come:
            if held.placements:
                entry = _entry(held)
                while entry in self._held:
                    entry = (*entry[:3], entry[3] + 1)
                self._held[entry] = held
                self._line(held).add(entry)
                self._of.setdefault(held.project, set()).add(entry)

    def runs(self, *, at: int) -> Iterator[Run]:
        """In their order, as they end after that moment. To be read before the next change."""
        limited, unlimited = self._limited.entries, self._unlimited.entries
        overdue = bisect_left(limited, at - OVERDUE_S, key=_when)
        due = bisect_right(limited, at + 1, overdue, key=_when)
        yield from sorted(self._runs(limited[overdue:due], at), key=ORDER)
        yield from self._runs(islice(limited, due, None), at)
        late = sorted(self._runs(limited[:overdue], at), key=ORDER)
        yield from merge(late, self._runs(unlimited, at), key=ORDER)

    def held_by(self, project: ProjectId) -> list[HoldingView]:
        """What the project runs, in no order."""
        return [self._held[entry] for entry in self._of.get(project, ())]

    def _runs(self, entries: Iterable[_Entry], at: int) -> Iterator[Run]:
        for entry in entries:
            held = self._held[entry]
            yield Run.of(held, held.placements, at=at)

    def _line(self, held: HoldingView) -> Ordered[_Entry]:
        return self._unlimited if held.run_time_limit_s is None else self._limited


def _entry(held: HoldingView) -> _Entry:
    when = begun_at(held) + (held.run_time_limit_s or 0)
    return when, held.id, tuple(sorted(p.node for p in held.placements)), 0


class Runs(Sequence[Run]):
    """So many in their order, worked out as far as they are asked for."""

    def __init__(self, runs: Iterator[Run], *, count: int) -> None:
        self._more = runs
        self._known: list[Run] = []
        self._count = count

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, at: int) -> Run: ...
    @overload
    def __getitem__(self, at: slice) -> list[Run]: ...
    def __getitem__(self, at: int | slice) -> Run | list[Run]:
        beyond = at.indices(self._count)[1] if isinstance(at, slice) else at + 1
        self._known += islice(self._more, max(0, beyond - len(self._known)))
        return self._known[at]
