"""A mutable what-if copy of the fleet: rooms, usage and index, moved together, taken back exactly.

A what-if is an operation log that is cut off again, as in KAI's `Statement`: nothing is copied.
"""

from collections.abc import Iterable
from dataclasses import replace

from scheduler.core.fit import Holds, Room
from scheduler.core.index import Index
from scheduler.core.packed import Packed
from scheduler.core.plan import Place
from scheduler.core.quota import Book
from scheduler.core.snapshot import FlavorView, HeldView, HoldingView, Snapshot
from scheduler.core.units import ClusterId, FlavorId, NodeId, ProjectId


class Draft:
    """The fleet with some workloads in it.

    What is held on a node or device that the snapshot lacks is charged to its project and takes no
    room. Clusters and nodes that are not usable keep what they hold and are in no pool.
    """

    __slots__ = ("_log", "book", "clusters", "flavors", "index", "packed", "packs", "rooms")

    def __init__(
        self, *, snapshot: Snapshot, holding: Iterable[HoldingView], packs: bool = False
    ) -> None:
        """With `packs` the prices of gaps decide on nodes with shared devices; without, as a
        question whether something fits needs no more, best fit does."""
        self.flavors: dict[FlavorId, FlavorView] = {f.id: f for f in snapshot.flavors}
        self.book = Book(cohorts=snapshot.cohorts, queues=snapshot.queues)
        self.rooms: dict[NodeId, Room] = {}
        self._log: list[tuple[bool, ProjectId, Holds, int]] = []
        ranked = []
        for cluster in sorted(snapshot.clusters, key=lambda c: c.id):
            for node in sorted(cluster.nodes, key=lambda n: (n.name, n.id)):
                room = self.rooms[node.id] = Room(node=node)
                if cluster.usable and node.usable:
                    ranked.append((cluster.id, room))
        self.clusters: tuple[ClusterId, ...] = tuple(
            sorted(cluster.id for cluster in snapshot.clusters if cluster.usable)
        )
        for held in holding:
            for placement in held.placements:
                self._move(True, held.project, placement, placement.amount_milli)
        self.index = Index(rooms=ranked)
        self.packs = packs
        self.packed = Packed(snapshot=snapshot, rooms=ranked if packs else ())

    def add(self, *, project: ProjectId, holder: Place | HeldView) -> None:
        """Charge it and let it take its room, without asking whether it fits."""
        self._do(True, project, holder, holder.amount_milli)

    def remove(self, *, project: ProjectId, holder: Place | HeldView) -> None:
        """Take back what `add` or the snapshot put in."""
        self._do(False, project, holder, holder.amount_milli)

    def checkpoint(self) -> int:
        """A mark to roll back to."""
        return len(self._log)

    def rollback(self, mark: int) -> None:
        """Undo everything since `mark`, latest first."""
        while len(self._log) > mark:
            added, project, holder, amount = self._log.pop()
            self._move(not added, project, holder, amount)
            self._refresh(holder)

    def tighten(self, *, node: NodeId, other: Room) -> None:
        """Leave on the node only what is free here and in `other`. Final: not for a what-if."""
        room = self.rooms[node]
        room.cpu_milli = min(room.cpu_milli, other.cpu_milli)
        room.memory_mib = min(room.memory_mib, other.memory_mib)
        room.media |= other.media
        for device, bits in other.taken.items():
            room.taken[device] |= bits
        self._log.clear()
        self.index.refresh(room)
        self.packed.refresh(room)

    def _do(self, add: bool, project: ProjectId, holder: Holds, amount: int) -> None:
        self._move(add, project, holder, amount)
        self._log.append((add, project, holder, amount))
        self._refresh(holder)

    def _move(self, add: bool, project: ProjectId, holder: Holds, amount: int) -> None:
        self.book.charge(
            project=project, flavor=holder.flavor, amount_milli=amount if add else -amount
        )
        room = self.rooms.get(holder.node)
        if room is None:
            return
        flavor = self.flavors.get(holder.flavor)
        if add:
            room.take(holder=holder, flavor=flavor)
        else:
            room.give(holder=holder, flavor=flavor)

    def _refresh(self, holder: Holds) -> None:
        room = self.rooms.get(holder.node)
        if room is not None:
            self.index.refresh(room)
            self.packed.refresh(room)


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
