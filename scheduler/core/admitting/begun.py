"""What a plan starts, and how much more it may."""

from scheduler.core.evicting.preempt import Evictions
from scheduler.core.plan import Admit
from scheduler.core.snapshot import PendingView


class Begun:
    """`admits` in the order in which they start, each with who asked for it."""

    __slots__ = ("_evictions", "_most", "admits")

    def __init__(self, *, most: int, evictions: Evictions | None) -> None:
        """At most so many; `evictions` are told of each."""
        self.admits: list[tuple[PendingView, Admit]] = []
        self._most = most
        self._evictions = evictions

    def __len__(self) -> int:
        return len(self.admits)

    @property
    def left(self) -> int:
        """How many more may start."""
        return self._most - len(self.admits)

    @property
    def is_full(self) -> bool:
        return self.left <= 0

    def add(self, pending: PendingView, admit: Admit) -> None:
        """It starts."""
        self.admits.append((pending, admit))
        if self._evictions is not None:
            self._evictions.started(pending=pending, places=admit.places)
