"""What a reclaim leaves to those who gave.

A victim may go by its flavor or by its model (`equivalents`), and what goes after it by the one
may bring its project below what is guaranteed in the other. So who went is asked again in the end.
"""

from typing import NamedTuple

from scheduler.core.quota.quota import Book
from scheduler.core.units import FlavorId


class Floor(NamedTuple):
    """In one of the flavors, at least, all these members of the tree stay at capacity."""

    members: tuple[int, ...]
    flavors: tuple[FlavorId, ...]

    def is_kept(self, *, book: Book) -> bool:
        return any(
            all(book.ledger(flavor).over(member) >= 0 for member in self.members)
            for flavor in self.flavors
        )
