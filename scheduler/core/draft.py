"""A mutable what-if copy of the fleet: rooms, usage and index, moved together, taken back exactly.

A what-if is an operation log that is cut off again, as in KAI's `Statement`: nothing is copied.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from scheduler.core.domains import Domains
from scheduler.core.fit import Holds, Room
from scheduler.core.index import Index
from scheduler.core.packed import Packed
from scheduler.core.plan import Place
from scheduler.core.quota import Book
from scheduler.core.slices import Slices
from scheduler.core.snapshot import FlavorView, HeldView, HoldingView, Snapshot
from scheduler.core.units import ClusterId, FlavorId, NodeId, ProjectId


class Draft:
    """The fleet with some workloads in it.

    What is held on a node or device that the snapshot lacks is charged to its project and takes no
    room. Clusters and nodes that are not usable keep what they hold and are in no pool. Rooms and
    pools are made when something is first asked of them: usage alone costs little.
    """

    __slots__ = (
        *("_held", "_late", "_log", "_packs", "_snapshot", "_world"),
        *("book", "clusters", "flavors", "slices"),
    )

    def __init__(
        self, *, snapshot: Snapshot, holding: Iterable[HoldingView], packs: bool = False
    ) -> None:
        """With `packs` the prices of gaps decide on nodes with shared devices; without, as a
        question whether something fits needs no more, best fit does."""
        self.flavors: dict[FlavorId, FlavorView] = {f.id: f for f in snapshot.flavors}
        self.book = Book(
            cohorts=snapshot.cohorts, queues=snapshot.queues, flavors=snapshot.flavors
        )
        self.clusters: tuple[ClusterId, ...] = tuple(
            sorted(cluster.id for cluster in snapshot.clusters if cluster.usable)
        )
        self._snapshot = snapshot
        self._packs = packs
        self._world: _World | None = None
        self.slices = Slices(snapshot=snapshot)
        self._log: list[tuple[bool, ProjectId, Holds, int]] = []
        self._held: dict[NodeId, Room] = {}
        self._late: list[Holds] = []
        for held in holding:
            self._late += held.placements
            for placement in held.placements:
                self.book.charge(
                    project=held.project,
                    flavor=placement.flavor,
                    amount_milli=placement.amount_milli,
                )

    @property
    def packs(self) -> bool:
        return self._packs

    def held(self) -> Mapping[NodeId, Room]:
        """The nodes on which something is held, and at times others. To be read."""
        if self._world is not None:
            return self._world.rooms
        if self._late:
            nodes = {node.id: node for c in self._snapshot.clusters for node in c.nodes}
            for holder in self._late:
                room = self._held.get(holder.node)
                if room is None:
                    if holder.node not in nodes:
                        continue
                    room = self._held[holder.node] = Room(node=nodes[holder.node])
                room.take(holder=holder, flavor=self.flavors.get(holder.flavor))
            self._late.clear()
        return self._held

    @property
    def rooms(self) -> dict[NodeId, Room]:
        """Every node of the snapshot."""
        return self._made().rooms

    @property
    def index(self) -> Index:
        return self._made().index

    @property
    def packed(self) -> Packed:
        return self._made().packed

    @property
    def domains(self) -> Domains:
        return self._made().domains

    def add(self, *, project: ProjectId, holder: Place | HeldView) -> None:
        """Charge it and let it take its room, without asking whether it fits."""
        self._do(True, project, holder, holder.amount_milli)

    def remove(self, *, project: ProjectId, holder: Place | HeldView) -> None:
        """Take back what `add` or the snapshot put in."""
        self._do(False, project, holder, holder.amount_milli)

    def let_in(self, *, holders: Sequence[Holds]) -> None:
        """Let them take their room; they have been charged. Final: not for a what-if."""
        if self._world is None and not self._log:
            self._late += holders
            return
        world = self._made()
        for holder in holders:
            world.move(True, holder, self.flavors)
        for node in {holder.node for holder in holders}:
            world.refresh(node)

    def changed(self) -> set[NodeId]:
        """The nodes that were touched since last asked, whether or not it was taken back."""
        if self._world is None:
            return set()
        changed, self._world.changed = self._world.changed, set()
        return changed

    def checkpoint(self) -> int:
        """A mark to roll back to."""
        return len(self._log)

    def rollback(self, mark: int) -> None:
        """Undo everything since `mark`, latest first."""
        while len(self._log) > mark:
            added, project, holder, amount = self._log.pop()
            self._move(not added, project, holder, amount)

    def tighten(self, *, node: NodeId, other: Room) -> None:
        """Leave on the node only what is free here and in `other`. Final: not for a what-if."""
        world = self._made()
        room = world.rooms[node]
        room.cpu_milli = min(room.cpu_milli, other.cpu_milli)
        room.memory_mib = min(room.memory_mib, other.memory_mib)
        room.media |= other.media
        for device, bits in other.taken.items():
            room.taken[device] |= bits
        self._log.clear()
        world.refresh(node)

    def _made(self) -> "_World":
        if self._world is None:
            moves = [(added, holder) for added, _, holder, _ in self._log]
            held = self.held()
            self._world = _World(self._snapshot, held, moves, self.flavors, self._packs)
        return self._world

    def _do(self, add: bool, project: ProjectId, holder: Holds, amount: int) -> None:
        self._move(add, project, holder, amount)
        self._log.append((add, project, holder, amount))

    def _move(self, add: bool, project: ProjectId, holder: Holds, amount: int) -> None:
        self.book.charge(
            project=project, flavor=holder.flavor, amount_milli=amount if add else -amount
        )
        if self._world is not None:
            self._world.move(add, holder, self.flavors)
            self._world.refresh(holder.node)


class _World:
    """Rooms, and what finds room in them."""

    __slots__ = ("changed", "domains", "index", "packed", "rooms")

    def __init__(
        self,
        snapshot: Snapshot,
        held: Mapping[NodeId, Room],
        moves: Iterable[tuple[bool, Holds]],
        flavors: Mapping[FlavorId, FlavorView],
        packs: bool,
    ) -> None:
        self.rooms: dict[NodeId, Room] = {}
        self.changed: set[NodeId] = set()
        ranked = []
        for cluster in sorted(snapshot.clusters, key=lambda c: c.id):
            for node in sorted(cluster.nodes, key=lambda n: (n.name, n.id)):
                room = self.rooms[node.id] = held.get(node.id) or Room(node=node)
                if cluster.usable and node.usable:
                    ranked.append((cluster.id, room))
        for add, holder in moves:
            self.move(add, holder, flavors)
        self.index = Index(rooms=ranked)
        self.packed = Packed(snapshot=snapshot, rooms=ranked if packs else ())
        self.domains = Domains(levels=snapshot.levels, index=self.index, rooms=ranked)

    def move(self, add: bool, holder: Holds, flavors: Mapping[FlavorId, FlavorView]) -> None:
        room = self.rooms.get(holder.node)
        if room is None:
            return
        flavor = flavors.get(holder.flavor)
        if add:
            room.take(holder=holder, flavor=flavor)
        else:
            room.give(holder=holder, flavor=flavor)

    def refresh(self, node: NodeId) -> None:
        room = self.rooms.get(node)
        if room is not None:
            self.changed.add(node)
            old, new = self.index.refresh(room)
            self.packed.refresh(room)
            self.domains.refresh(room, old, new)


def empty(*, snapshot: Snapshot) -> Draft:
    """The fleet with nothing in it, all of it usable: what could ever be placed."""
    clusters = tuple(
        replace(
            cluster,
            usable=True,
            nodes=tuple(
                node
                if node.usable and all(device.usable for device in node.devices)
                else replace(
                    node,
                    usable=True,
                    devices=tuple(replace(device, usable=True) for device in node.devices),
                )
                for node in cluster.nodes
            ),
        )
        for cluster in snapshot.clusters
    )
    return Draft(snapshot=replace(snapshot, clusters=clusters), holding=())
