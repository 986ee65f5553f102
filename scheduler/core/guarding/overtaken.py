"""Who went ahead, on room that is kept for others, is evicted for nobody who comes after those.

Once it had gone, that room would be kept again, and it would go ahead on it again, for ever. While
it runs those others may come up later than they would, as it uses quota that they count on: so
they are asked about as if it had given that back.
"""

from collections.abc import Collection, Mapping
from functools import cached_property

from scheduler.core.admitting.order import place_in_queue
from scheduler.core.quota.guarantees import Needs, tier
from scheduler.core.quota.quota import Book
from scheduler.core.request import Requests
from scheduler.core.snapshot import FlavorView, HoldingView, PendingView, Snapshot
from scheduler.core.units import FlavorId, WorkloadId


class Overtaken:
    """Of the usage in `book`, as it is when it is asked. No room is kept for who is `blocked`,
    whatever is free: to have gone ahead of those protects from nobody."""

    def __init__(
        self,
        *,
        snapshot: Snapshot,
        flavors: Mapping[FlavorId, FlavorView],
        book: Book,
        blocked: Collection[WorkloadId],
    ) -> None:
        self._snapshot = snapshot
        self._book = book
        self._requests = Requests(flavors=flavors, book=book)
        self._blocked = blocked

    def comes_before(self, pending: PendingView, holding: HoldingView, needs: Needs) -> bool:
        """Whether one that still waits, and of which the holding went ahead, would come before the
        pending one with those needs."""
        return any(
            other.id != pending.id and self._is_first(other, pending, needs, holding)
            for id in holding.ahead_of
            if (other := self._waits.get(id)) is not None
        )

    @cached_property
    def _waits(self) -> dict[WorkloadId, PendingView]:
        ids = {id for holding in self._snapshot.holding for id in holding.ahead_of}
        ids.difference_update(self._blocked)
        return {each.id: each for each in self._snapshot.pending if each.id in ids}

    def _is_first(
        self, other: PendingView, pending: PendingView, needs: Needs, without: HoldingView
    ) -> bool:
        """By the round in which it comes up, then by its turn; of two projects, whose shares are
        not asked here, by priority, and no later than one of the same."""
        with self._book.given_back(project=without.project, holders=without.placements):
            own = tier(self._book, project=pending.project, needs=needs)
            theirs = max(
                (
                    tier(self._book, project=other.project, needs=option.needs)
                    for option in self._requests.of(other).options
                ),
                default=-1,
            )
        if theirs != own:
            return theirs > own
        if other.project == pending.project:
            return place_in_queue(other) < place_in_queue(pending)
        return other.priority >= pending.priority
