"""Work in the order of what would be lost if it stopped now, kept while time goes by.

All that loses as much each second stays in its order: who saved last has the least to lose, at any
moment. So only the first of each such line are compared as they are at a moment.
"""

from collections.abc import Iterable, Iterator, Sequence
from heapq import merge

from scheduler.core.held.losses import lost_milli_s, lost_since
from scheduler.core.held.victims import Held, UnitId
from scheduler.core.ordered import Ordered
from scheduler.core.snapshot import FlavorView
from scheduler.core.units import ClusterId

type _Entry = tuple[int, int, UnitId]
"""Since when its work is lost, the latest first; its pods; who it is."""


class LeastLost:
    """By cluster and by what is held there. To be told who comes and goes: pods that may go by
    themselves are none of it."""

    def __init__(self, *, flavors: Iterable[FlavorView]) -> None:
        self._models = {flavor.id: flavor.model for flavor in flavors}
        self._held: dict[UnitId, Held] = {}
        self._lines: dict[tuple[ClusterId, str], dict[int, Ordered[_Entry]]] = {}

    def add(self, held: Held) -> None:
        if not held.is_whole:
            return
        self._held[held.id] = held
        a_second, entry = _stands(held)
        for key in self._keys(held):
            lines = self._lines.setdefault(key, {})
            lines.setdefault(a_second, Ordered()).add(entry)

    def drop(self, held: Held) -> None:
        if not held.is_whole:
            return
        del self._held[held.id]
        a_second, entry = _stands(held)
        for key in self._keys(held):
            self._lines[key][a_second].discard(entry)

    def of(self, *, cluster: ClusterId, model: str, at: int) -> Iterator[Held]:
        """Who holds devices of the model there, or anything for none, with the least loss first.
        To be read before the next change."""
        lines = self._lines.get((cluster, model), {})
        for a_second in [each for each, line in lines.items() if not line.entries]:
            del lines[a_second]
        each = [_losing(a_second, line.entries, at) for a_second, line in lines.items()]
        return (self._held[id] for *_, id in merge(*each))

    def _keys(self, held: Held) -> set[tuple[ClusterId, str]]:
        of = held.holding
        models = {self._models[p.flavor] for p in of.placements if p.flavor in self._models}
        return {(of.cluster, model) for model in (*models, "")}


def _stands(held: Held) -> tuple[int, _Entry]:
    """What it loses each second, and its entry among those that lose as much."""
    of = held.holding
    since = lost_since(started_at=of.started_at, checkpointed_at=of.checkpointed_at)
    if since is None:
        return 0, (0, held.pods, held.id)
    return held.sevenths_milli, (-since, held.pods, held.id)


def _losing(
    a_second: int, entries: Sequence[_Entry], at: int
) -> Iterator[tuple[int, int, int, UnitId]]:
    """Each with its loss at that moment before it."""
    for since, pods, id in entries:
        lost = lost_milli_s(
            sevenths_milli=a_second, started_at=-since, checkpointed_at=None, at=at
        )
        yield lost, since, pods, id
