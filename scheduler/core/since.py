"""What has changed since the last snapshot: told by which objects are still the same ones.

A snapshot's objects are frozen, so one that is there again has not changed, and need not be looked
into. An equal one may pass for the one that it stands for.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import compress
from operator import attrgetter, is_not

from scheduler.core.faults import faults, of_budgets, of_one
from scheduler.core.plan import Fault
from scheduler.core.snapshot import ClusterView, HoldingView, NodeView, PendingView, Snapshot
from scheduler.core.units import ClusterId, NodeId

_id = attrgetter("id")
_BLOCK = 64
"""So many in a row are compared in C first, and one by one only where they differ."""


class Roster[T]:
    """The objects of a list, `listed`: `come` are those that the list `before` did not have,
    `gone` those that it had and this one has not."""

    def __init__(self) -> None:
        self.come: list[T] = []
        self.gone: list[T] = []
        self.listed: Sequence[T] = ()
        self.before: Sequence[T] = ()

    def follow(self, listed: Sequence[T], *, like: "Roster[T] | None" = None) -> None:
        """The next list. Objects in the order that they had cost least, and none at all where
        `like` has gone from the same list to the same."""
        self.before = self.listed
        if like is not None and like.before is self.before and like.listed is listed:
            self.come, self.gone, self.listed = like.come, like.gone, listed
            return
        gone, come = _in_place(self.before, listed) or _in_order(self.before, listed)
        moved = set(map(id, gone)).intersection(map(id, come)) if gone else ()
        self.gone = [each for each in gone if id(each) not in moved] if moved else gone
        self.come = [each for each in come if id(each) not in moved] if moved else come
        self.listed = listed


def _in_place[T](before: Sequence[T], listed: Sequence[T]) -> tuple[list[T], list[T]] | None:
    """Who stands where another stood, each with that one; None where that is most of them."""
    if len(before) != len(listed):
        return None
    if before == listed:
        return [], []
    differ = list(map(is_not, before, listed))
    if 2 * sum(differ) > len(listed):
        return None
    return list(compress(before, differ)), list(compress(listed, differ))


def _in_order[T](before: Sequence[T], listed: Sequence[T]) -> tuple[list[T], list[T]]:
    """Who is not in the order of the others, and all from the first who is new."""
    gone, at = list[T](), 0
    for first in range(0, len(before), _BLOCK):
        block = before[first : first + _BLOCK]
        there = listed[at : at + len(block)]
        if block == there:
            at += len(block)
            continue
        rest = iter(there)
        ahead = next(rest, None)
        for each in block:
            if each is ahead:
                at += 1
                ahead = next(rest, None)
            else:
                gone.append(each)
    return gone, list(listed[at:])


class Since:
    """Follows the snapshots of one planner: `pending`, `holding` and `nodes` say what has changed
    since the one before, `is_new` that there was none, or that it contradicted itself."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self.pending = Roster[PendingView]()
        self.holding = Roster[HoldingView]()
        self.nodes = Roster[NodeView]()
        self.is_new = True
        self._last: Snapshot | None = None
        self._workloads: set[str] = set()
        self._placements: set[str] = set()
        self._homes: dict[NodeId, NodeView] = {}

    def faults(self, snapshot: Snapshot) -> tuple[Fault, ...]:
        """As `faults.faults`. A snapshot with faults is forgotten."""
        self.is_new = self._last is None
        self.pending.follow(snapshot.pending)
        self.holding.follow(snapshot.holding)
        self.nodes.follow([node for cluster in snapshot.clusters for node in cluster.nodes])
        for node in self.nodes.gone:
            self._homes.pop(node.id, None)
        self._homes.update((node.id, node) for node in self.nodes.come)
        once = self._each_once()
        stands = once and self._stands(snapshot) and not any(of_budgets(snapshot))
        if stands and not any(of_one(self._part(snapshot))):
            found: tuple[Fault, ...] = ()
        else:
            found = faults(snapshot)
        if found:
            self._forget()
        else:
            self._last = snapshot
        return found

    def _each_once(self) -> bool:
        """Whether no workload and no placement has the id of another."""
        gone = [_id(of) for of in (*self.pending.gone, *self.holding.gone)]
        come = [_id(of) for of in (*self.pending.come, *self.holding.come)]
        placed = [p.id for of in self.holding.come for p in of.placements]
        left = [p.id for of in self.holding.gone for p in of.placements]
        workloads = _moved(self._workloads, gone, come)
        return _moved(self._placements, left, placed) and workloads

    def _stands(self, snapshot: Snapshot) -> bool:
        """Whether all else is as it was, but for nodes with the devices that they had, and counted
        or not as they were: of one that is not, who holds a device that it lacks is at fault."""
        last = self._last
        return (
            last is not None
            and last.flavors == snapshot.flavors
            and last.queues == snapshot.queues
            and last.cohorts == snapshot.cohorts
            and last.reservations == snapshot.reservations
            and [c.id for c in last.clusters] == [c.id for c in snapshot.clusters]
            and len(self.nodes.come) == len(self.nodes.gone)
            and {n.id: (n.devices, n.counted) for n in self.nodes.come}
            == {n.id: (n.devices, n.counted) for n in self.nodes.gone}
        )

    def _part(self, snapshot: Snapshot) -> Snapshot:
        """What has come, and the nodes that it is about."""
        held = {p.node for of in self.holding.come for p in of.placements}
        nodes = {node.id: node for node in self.nodes.come}
        nodes |= {id: self._homes[id] for id in held if id in self._homes}
        return replace(
            snapshot,
            clusters=(ClusterView(ClusterId(""), "", tuple(nodes.values())),),
            pending=tuple(self.pending.come),
            holding=tuple(self.holding.come),
        )


def _moved(ids: set[str], gone: Sequence[str], come: Sequence[str]) -> bool:
    """Change the set; whether each that has come is new in it."""
    ids.difference_update(gone)
    before = len(ids)
    ids.update(come)
    return len(ids) == before + len(come)
