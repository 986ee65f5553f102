"""What is kept from one plan to the next, so that a plan costs what has changed.

Nothing that is planned goes by what is kept here: tests compare with plans made from nothing.
"""

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Protocol, cast

from scheduler.core.demand import Demand
from scheduler.core.fleet.draft import Draft
from scheduler.core.fleet.world import World
from scheduler.core.held.candidates import Candidates
from scheduler.core.held.holders import Holders
from scheduler.core.held.runs import Ends
from scheduler.core.plan import Fault
from scheduler.core.quota.quota import Book
from scheduler.core.since import Since
from scheduler.core.snapshot import HoldingView, PendingView, Snapshot
from scheduler.core.units import ProjectId


class Backlog(Protocol):
    """What is asked of a sweep's tables here."""

    @property
    def is_stale(self) -> bool: ...
    def change(self, *, gone: Sequence[PendingView], come: Sequence[PendingView]) -> None: ...


class _Apart:
    """What is found out of a snapshot that is not the one that was looked at: since then some were
    told to go. Kept for the plan."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot

    @cached_property
    def holders(self) -> Holders:
        return Holders(self.snapshot.holding)

    @cached_property
    def ends(self) -> Ends:
        return Ends(self.snapshot.holding)


class Memory:
    """Of one planner; for one plan at a time, and none after one that raised."""

    def __init__(self) -> None:
        self._since = Since()
        self._turn = 0
        self._seen: Snapshot | None = None
        self._classes_by: tuple[object, ...] | None = None
        self._backlog: tuple[int, Backlog] | None = None
        self._candidates: tuple[int, Candidates] | None = None
        self._worlds: dict[str, World] = {}
        self._holders: Holders | None = None
        self._ends: Ends | None = None
        self._apart: _Apart | None = None
        self._demand: Demand | None = None

    def look(self, snapshot: Snapshot) -> tuple[Fault, ...]:
        """The faults of the next snapshot, which is what is asked about from now on."""
        self._turn, self._apart = self._turn + 1, None
        self._seen, since = snapshot, self._since
        found = since.faults(snapshot)
        pending, holding = since.pending, since.holding
        if since.is_new:
            self._holders = self._demand = self._ends = None
        if self._holders is not None:
            self._holders.follow(gone=holding.gone, come=holding.come)
            if self._holders.is_stale:
                self._holders = None
        if self._ends is not None:
            self._ends.follow(gone=holding.gone, come=holding.come)
        if self._demand is not None:
            self._demand.follow(gone=pending.gone, come=pending.come)
            self._demand.follow(gone=holding.gone, come=holding.come)
        return found

    def draft(
        self,
        purpose: str,
        *,
        snapshot: Snapshot,
        holding: Sequence[HoldingView],
        packs: bool = False,
    ) -> Draft:
        """As `Draft`. One of each purpose at a time."""
        world = self._worlds.get(purpose)
        world = world or self._twin(len(holding))
        known = self._since.holding
        if world is None or not world.follow(snapshot=snapshot, holding=holding, known=known):
            world = World(snapshot)
            world.follow(snapshot=snapshot, holding=holding)
        self._worlds[purpose] = world
        demand = partial(self._demand_of, snapshot)
        return Draft(
            snapshot=snapshot,
            holding=holding,
            packs=packs,
            world=world,
            demand=demand,
            others=self._worlds.values(),
        )

    def _twin(self, holders: int) -> World | None:
        """Of a world that has about as many; of one with an index, if there is one."""
        like = [world for world in self._worlds.values() if 0 < world.holders < 2 * holders]
        of = max(like, key=lambda world: world.has_index, default=None)
        return None if of is None else of.twin()

    def _demand_of(self, snapshot: Snapshot) -> Demand:
        of, seen = snapshot, self._seen
        if seen is None or of.pending is not seen.pending or of.holding is not seen.holding:
            return Demand(snapshot)
        self._demand = self._demand or Demand(snapshot)
        return self._demand

    def holders(self, snapshot: Snapshot) -> Holders:
        """Who holds what in it."""
        if snapshot is not self._seen:
            return self._of(snapshot).holders
        self._holders = self._holders or Holders(snapshot.holding)
        return self._holders

    def ends(self, snapshot: Snapshot) -> Ends:
        """When what runs in it ends."""
        if snapshot is not self._seen:
            return self._of(snapshot).ends
        self._ends = self._ends or Ends(snapshot.holding)
        return self._ends

    def _of(self, snapshot: Snapshot) -> "_Apart":
        if self._apart is None or self._apart.snapshot is not snapshot:
            self._apart = _Apart(snapshot)
        return self._apart

    def candidates(self, snapshot: Snapshot) -> Candidates:
        """Who may be evicted; for who asked last alone."""
        if snapshot is not self._seen:  # since then some were told to go
            return Candidates(snapshot)
        kept, since = self._candidates, self._since
        if (
            kept is None
            or kept[0] != self._turn - 1
            or since.is_new
            or not kept[1].may_follow(snapshot)
        ):
            made = Candidates(snapshot)
        else:
            made, held = kept[1], since.holding
            made.follow(gone=held.gone, come=held.come, at=snapshot.at)
        self._candidates = self._turn, made
        return made

    def backlog[B: Backlog](
        self,
        snapshot: Snapshot,
        *,
        book: Book,
        timed: frozenset[ProjectId],
        new: Callable[..., B],
    ) -> B:
        """Who waits, in tables; made with `new` where none are kept. What it raises, that they
        can't hold it, is passed on, and they are forgotten."""
        kept, self._backlog = self._backlog, None
        since = self._since
        if (
            kept is None
            or kept[0] != self._turn - 1
            or kept[1].is_stale
            or since.is_new
            or self._classes_by != (snapshot.flavors, book.parts, book.isolations, timed)
        ):
            made = new(flavors=snapshot.flavors, book=book, timed=timed)
            made.change(gone=(), come=snapshot.pending)
        else:
            made = cast(B, kept[1])
            made.change(gone=since.pending.gone, come=since.pending.come)
        self._backlog = self._turn, made
        self._classes_by = snapshot.flavors, book.parts, book.isolations, timed
        return made
