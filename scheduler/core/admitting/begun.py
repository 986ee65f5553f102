"""What a plan starts, and how much more it may."""

from collections.abc import Sequence

from scheduler.core.evicting.preempt import Evictions
from scheduler.core.plan import Admit
from scheduler.core.snapshot import PendingView
from scheduler.core.units import ProjectId

type _Started = tuple[PendingView, Admit]


class Begun:
    """`admits` in the order in which they start, each with who asked for it."""

    __slots__ = ("_evictions", "_most", "_of", "_told", "admits")

    def __init__(self, *, most: int, evictions: Evictions | None) -> None:
        """At most so many; `evictions` are told of each."""
        self.admits: list[_Started] = []
        self._of: dict[ProjectId, list[_Started]] = {}
        self._told = 0
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

    def of(self, project: ProjectId) -> Sequence[_Started]:
        """Those of the project so far, in the order in which they start. Most plans start much,
        and ask about few projects, so they are told apart only then."""
        for started in self.admits[self._told :]:
            self._of.setdefault(started[0].project, []).append(started)
        self._told = len(self.admits)
        return self._of.get(project, ())

    def add(self, pending: PendingView, admit: Admit) -> None:
        """It starts."""
        self.admits.append((pending, admit))
        if self._evictions is not None:
            self._evictions.started(pending=pending, places=admit.places)
