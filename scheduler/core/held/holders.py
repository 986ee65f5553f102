"""Of all that holds something the few that every plan asks for, and whom sweeps look at in sum.

Kept from one plan to the next and changed by what has changed, so that no plan walks over all.
"""

from collections.abc import Collection, Iterable, Sequence

from scheduler.core.held.elastic import gives_back, is_elastic, keeping, staying, surplus
from scheduler.core.snapshot import HoldingView
from scheduler.core.units import FlavorId, ProjectId, WorkloadId

_SPARE_GROUPS = 1 << 10


class Holders:
    """Those of one snapshot, then of the next (`follow`), in no order."""

    def __init__(self, holding: Iterable[HoldingView] = ()) -> None:
        self._giving: dict[WorkloadId, HoldingView] = {}
        self._elastic: dict[WorkloadId, HoldingView] = {}
        self._moving: dict[WorkloadId, HoldingView] = {}
        self._arrays: dict[WorkloadId, HoldingView] = {}
        self._rows: dict[tuple[ProjectId, FlavorId, int], int] = {}
        self._groups: list[tuple[ProjectId, FlavorId, int]] = []
        self._counts: list[int] = []
        self.follow(gone=(), come=holding)

    def follow(self, *, gone: Iterable[HoldingView], come: Iterable[HoldingView]) -> None:
        """Those have gone that were there, and others have come."""
        for held in gone:
            for some in (self._giving, self._elastic, self._moving, self._arrays):
                some.pop(held.id, None)
            self._count(held, -1)
        for held in come:
            if gives_back(held):
                self._giving[held.id] = held
            if is_elastic(held):
                self._elastic[held.id] = held
            if held.move_to_better:
                self._moving[held.id] = held
            if held.array is not None:
                self._arrays[held.id] = held
            self._count(held, 1)

    @property
    def giving(self) -> Collection[HoldingView]:
        """Anything of them is on its way back."""
        return self._giving.values()

    def staying(self, holding: Sequence[HoldingView]) -> Sequence[HoldingView]:
        """All of them, in that order, without what is on its way back, nor who is left with
        nothing."""
        if not self._giving:
            return holding
        each = (keeping(h, staying(h)) if h.id in self._giving else h for h in holding)
        return [held for held in each if held.placements]

    @property
    def elastic(self) -> Collection[HoldingView]:
        """They ask for pods beyond the least of a set."""
        return self._elastic.values()

    @property
    def moving(self) -> Collection[HoldingView]:
        """They ask to move to a better flavor."""
        return self._moving.values()

    @property
    def arrays(self) -> Collection[HoldingView]:
        """They are elements of arrays."""
        return self._arrays.values()

    @property
    def groups(self) -> Sequence[tuple[ProjectId, FlavorId, int]]:
        """The project, flavor and priority of work that may be evicted some day, or pods of it:
        each once, with those of whom nobody is left. New ones come last, so what was made of the
        others stays true."""
        return self._groups

    @property
    def counts(self) -> Sequence[int]:
        """Of each of the `groups`: how many devices they hold, counting a pod without devices as
        one, and one that may go by itself or with its workload twice."""
        return self._counts

    @property
    def is_stale(self) -> bool:
        """Whether it knows of many more groups than have anybody left."""
        left = len(self._counts) - self._counts.count(0)
        return len(self._counts) > 2 * left + _SPARE_GROUPS

    def _count(self, held: HoldingView, sign: int) -> None:
        if held.releasing:
            return
        pods = (*held.placements, *surplus(held)) if held.preemptible else surplus(held)
        for placement in pods:
            group = held.project, placement.flavor, held.priority
            row = self._rows.setdefault(group, len(self._groups))
            if row == len(self._groups):
                self._groups.append(group)
                self._counts.append(0)
            self._counts[row] += sign * (len(placement.spans) or 1)
