"""A mutable what-if copy of the fleet: rooms, usage and index, moved together, taken back exactly.

A what-if is an operation log that is cut off again, as in KAI's `Statement`: nothing is copied.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from functools import partial
from typing import Protocol

from scheduler.core.demand import Demand
from scheduler.core.fleet.domains import Domains
from scheduler.core.fleet.index import Index
from scheduler.core.fleet.packed import Packed
from scheduler.core.fleet.world import World
from scheduler.core.node.fit import Holds, Room
from scheduler.core.node.slices import Slices
from scheduler.core.plan import Place
from scheduler.core.rates import Rates
from scheduler.core.snapshot import FlavorView, HeldView, HoldingView, NodeView, Snapshot
from scheduler.core.units import ClusterId, FlavorId, NodeId, ProjectId


class Totals(Protocol):
    """Who knows what is free of a flavor in sum, or on one node; None where it does not."""

    def free_milli(self, *, cluster: ClusterId, flavor: FlavorView) -> int | None: ...
    def largest_free_milli(self, *, cluster: ClusterId, flavor: FlavorView) -> int | None: ...


class Draft:
    """The fleet with some workloads in it; `world` is where they are. No two states have the same
    number `state`; `rollback` brings back that of its mark.

    What is held on a node or device that the snapshot lacks is charged to its project and takes no
    room, but where another device stands in (`fit`). Clusters and nodes that are not usable keep
    what they hold and are in no pool.
    """

    __slots__ = (
        *(
            "_demand",
            "_domains",
            "_index",
            "_inside",
            "_late",
            "_latest",
            "_log",
            "_others",
            "_packed",
        ),
        *("_rooms", "_snapshot", "_stale", "_totals"),
        *("book", "clusters", "flavors", "packs", "rates", "slices", "state", "world"),
    )

    def __init__(
        self,
        *,
        snapshot: Snapshot,
        holding: Sequence[HoldingView],
        packs: bool = False,
        world: World | None = None,
        demand: Callable[[], Demand] | None = None,
        others: Iterable[World] = (),
    ) -> None:
        """With `packs` the prices of gaps decide on nodes with shared devices; without, as a
        question whether something fits needs no more, best fit does. `world` has followed the
        snapshot; it is this draft's until it follows the next. `demand` tells that of the
        snapshot; `others` are worlds of the same planner."""
        self.flavors: dict[FlavorId, FlavorView] = {f.id: f for f in snapshot.flavors}
        self.clusters: tuple[ClusterId, ...] = tuple(
            sorted(cluster.id for cluster in snapshot.clusters if cluster.usable)
        )
        if world is None:
            world = World(snapshot)
            world.follow(snapshot=snapshot, holding=holding)
        self._demand = demand or partial(Demand, snapshot)
        self.slices = Slices(
            flavors=snapshot.flavors, demand=self._demand, devices=world.cut_on_demand
        )
        self.book = world.book()
        self.rates = Rates(snapshot.rates)
        self._snapshot = snapshot
        self.packs = packs
        self.world = world
        self._others = others
        self._inside = False
        self._rooms: Mapping[NodeId, Room] = {}
        self._index: Index | None = None
        self._packed: Packed | None = None
        self._domains: Domains | None = None
        self.state = self._latest = 0
        self._log: list[tuple[bool, ProjectId, Holds, int, int]] = []
        self._late: list[Holds] = []
        self._stale: dict[NodeId, None] = {}
        self._totals: Totals | None = None

    def beside(
        self, nodes: Iterable[NodeView], *, more: Sequence[tuple[ClusterId, NodeView]] = ()
    ) -> "Draft":
        """This one with these nodes in the place of its own, in every cluster, by best fit, and
        with `more` that are not there. To ask
        what would fit while this one is in the same state: most rooms are the same ones."""
        self._index = self.index  # into which all has come that was let in
        return self._over(self.world.beside({node.id: node for node in nodes}, more))

    def only(self, nodes: Sequence[tuple[ClusterId, NodeView]]) -> "Draft":
        """This one with these nodes alone, in the order of an index, in every cluster, by best
        fit. To ask what would fit there while this one is in the same state."""
        self._enter()
        return self._over(self.world.only(nodes))

    def _over(self, world: World) -> "Draft":
        beside = copy(self)
        beside.world = world
        beside._rooms, beside.book = beside.world.rooms(), self.book.copy()
        beside.clusters = tuple(sorted(cluster.id for cluster in self._snapshot.clusters))
        beside.slices = Slices(
            flavors=self._snapshot.flavors,
            demand=self._demand,
            devices=beside.world.cut_on_demand,
        )
        beside.packs, beside._packed, beside._domains, beside._totals = False, None, None, None
        beside._index, beside._stale, beside._log = None, {}, []
        return beside

    def held(self) -> Mapping[NodeId, Room]:
        """The nodes on which something is held, or that were `changed`, and at times others. To
        be read: before the first change, as the snapshot says."""
        return self.world.held()

    @property
    def rooms(self) -> Mapping[NodeId, Room]:
        """Every node of the snapshot. To be read."""
        if self._index is None:
            self._index = self.index  # which ranks them
        return self._rooms

    @property
    def index(self) -> Index:
        self._enter()
        if self._index is None:
            self._index = self.world.index(moved=self._stale, others=self._others)
            self._stale.clear()
        elif self._stale:
            self._catch_up(self._index)
        return self._index

    @property
    def totals(self) -> Totals | None:
        """For who asks no more than that, and no index has to be made for it."""
        known = not self.world.changed and (self._inside or not self._log)
        return self._totals if known else None

    def count_by(self, totals: Totals) -> None:
        """They know of all that is let in, and of other changes once somebody asked for those."""
        self._totals = totals

    @property
    def packed(self) -> Packed:
        index = self.index
        if self._packed is None:
            rooms = index.ranked() if self.packs else ()
            self._packed = Packed(snapshot=self._snapshot, rooms=rooms)
        return self._packed

    @property
    def domains(self) -> Domains:
        if self._domains is None:
            self._domains = Domains(levels=self._snapshot.levels, index=self.index)
        return self._domains

    def add(self, *, project: ProjectId, holder: Place | HeldView) -> None:
        """Charge it and let it take its room, without asking whether it fits."""
        self._do(True, project, holder, holder.amount_milli)

    def remove(self, *, project: ProjectId, holder: Place | HeldView) -> None:
        """Take back what `add` or the snapshot put in."""
        self._do(False, project, holder, holder.amount_milli)

    def admit(self, places: Iterable[tuple[ProjectId, Sequence[Place]]]) -> None:
        """Charge each project for its places in sum and let those take their room, without asking
        whether they fit. Final: not for a what-if."""
        sums, holders = dict[tuple[ProjectId, FlavorId], int](), list[Place]()
        for project, own in places:
            holders += own
            for place in own:
                key = project, place.flavor
                sums[key] = sums.get(key, 0) + place.amount_milli
        for (project, flavor), amount in sums.items():
            self.book.charge(project=project, flavor=flavor, amount_milli=amount)
        self.let_in(holders=holders)

    def let_in(self, *, holders: Sequence[Holds]) -> None:
        """Let them take their room; they have been charged. Final: not for a what-if."""
        self._change()
        if not self._inside and not self._log:
            self._late += holders
            return
        self._enter()
        for node in self.world.move((True, holder) for holder in holders):
            self._refresh(node)

    def changed(self) -> set[NodeId]:
        """The nodes that were touched since last asked, whether or not it was taken back."""
        changed, self.world.changed = self.world.changed, set()
        return changed

    def checkpoint(self) -> int:
        """A mark to roll back to."""
        return len(self._log)

    def rollback(self, mark: int) -> None:
        """Undo everything since `mark`, latest first. Nothing is let in or tightened between."""
        while len(self._log) > mark:
            added, project, holder, amount, self.state = self._log.pop()
            self._move(not added, project, holder, amount)

    def tighten(self, *, node: NodeId, other: Room) -> None:
        """Leave on the node only what is free here and in `other`. Final: not for a what-if."""
        self._enter()
        room = self.world.room(node)
        if room is None:
            raise LookupError(f"there is no node {node}")
        room.tighten(other=other)
        self._log.clear()
        self._change()
        self._refresh(node)

    def _enter(self) -> None:
        """Do in the rooms what has been done so far."""
        if self._inside:
            return
        self._inside = True
        moves = [*((True, h) for h in self._late), *((add, h) for add, _, h, *_ in self._log)]
        self._late.clear()
        self._rooms = self.world.rooms()
        self._stale = dict.fromkeys(self.world.move(moves))
        # What was let in is known to who let it in.
        self.world.changed = {holder.node for _, _, holder, *_ in self._log}

    def _do(self, add: bool, project: ProjectId, holder: Holds, amount: int) -> None:
        self._move(add, project, holder, amount)
        self._log.append((add, project, holder, amount, self.state))
        self._change()

    def _change(self) -> None:
        """In no state that has been."""
        self._latest += 1
        self.state = self._latest

    def _move(self, add: bool, project: ProjectId, holder: Holds, amount: int) -> None:
        self.book.charge(
            project=project, flavor=holder.flavor, amount_milli=amount if add else -amount
        )
        if self._inside:
            for node in self.world.move([(add, holder)]):
                self._refresh(node)

    def _refresh(self, node: NodeId) -> None:
        """The room has changed. Much is moved and taken back before somebody looks for room: only
        domains, which are kept by those who asked for them, are brought up to date at once."""
        if node in self._rooms:
            self._stale[node] = None
            if self._domains is not None:
                self._catch_up(self.index)

    def _catch_up(self, index: Index) -> None:
        for node in self._stale:
            room = self._rooms[node]
            old, new = index.refresh(room)
            if self._packed is not None:
                self._packed.refresh(room)
            if self._domains is not None:
                self._domains.refresh(room, old, new)
        self._stale.clear()
