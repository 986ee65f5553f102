"""The tables of what is free, filled from a snapshot and its draft."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from scheduler.core.fleet.draft import Draft
from scheduler.core.node import mig
from scheduler.core.node.fit import Room
from scheduler.core.snapshot import (
    DeviceMode,
    FlavorKind,
    FlavorView,
    Isolation,
    NodeView,
    Placing,
    Snapshot,
)
from scheduler.core.sweep import running
from scheduler.core.sweep import state as s
from scheduler.core.sweep.state import Hardware, Ints, Unfit
from scheduler.core.units import ClusterId, NodeId

MOST_DEVICES = 48
MOST_HARDWARE = 1 << 35
"""Thousandths of a flavor that the fleet may have, so that shares stay below 2^62."""

_HARDWARE = attrgetter("model", "mode", "shares", "ordinal")
_USABLE = attrgetter("usable")

KINDS = {FlavorKind.WHOLE: s.WHOLE, FlavorKind.MIG: s.CUT}


class Pool(NamedTuple):
    """The key of a pool: a row number of the cluster, a kind, and what its devices agree in."""

    cluster: int
    kind: int
    model: str = ""
    shares: Isolation | None = None


class Fleet(NamedTuple):
    """What the rows stand for. `shared`: some devices may be shared; `static`: models of which
    some are cut once and for all. `hardware` is the same object as long as nodes have the same."""

    nodes: Sequence[NodeView]
    rank: Mapping[NodeId, int]
    pools: Mapping[Pool, int]
    shared: bool
    static: frozenset[str]
    hardware: object


def hardware(
    *, snapshot: Snapshot, draft: Draft, clusters: Sequence[ClusterId], with_cores: bool
) -> tuple[Hardware, Fleet]:
    """All nodes of `clusters`, by rank. `with_cores`: nodes are found by their cores too. The
    tables are a copy of those that the draft's world keeps for plans to come.

    Raises Unfit.
    """
    world, rooms = draft.world, draft.held()
    kept, world.tables = world.tables, None
    changed, world.unread = world.unread, set()
    if not isinstance(kept, Machines) or not kept.follow(rooms, changed):
        kept = Machines(snapshot, clusters, with_cores)
        kept.fill(rooms)
    world.tables = kept
    return Hardware(*(table.copy() for table in kept.tables)), kept.fleet()


def write_room(h: Hardware, node: int, room: Room) -> None:
    """The node is as the room says."""
    usable = room.node.usable
    h.nodes[node, s.NODE_CPU], h.nodes[node, s.NODE_MEMORY] = room.cpu_milli, room.memory_mib
    h.nodes[node, s.USABLE] = any(map(_USABLE, room.node.devices)) if usable else -1
    for d, (id, bits) in enumerate(room.taken.items()):
        device = room.devices[id]
        if not usable or not device.usable or id in room.broken:
            bits = -1
        elif device.mode is not DeviceMode.MIG_DYNAMIC:
            bits = int(bits != 0)
        elif bits >= s.MASKS:
            raise Unfit(f"device {id} is held beyond its end")
        h.devices[node, d, s.TAKEN] = bits


class Machines:
    """The tables of the nodes of one world, as their rooms were when it last looked at them:
    `follow` is told which may have changed since. Nodes and devices that are not usable have
    their rows and pools, and no entry."""

    def __init__(
        self, snapshot: Snapshot, clusters: Sequence[ClusterId], with_cores: bool
    ) -> None:
        of = {cluster.id: cluster for cluster in snapshot.clusters}
        found = [
            (n, node)
            for n, id in enumerate(clusters)
            for node in sorted(of[id].nodes, key=lambda node: (node.name, node.id))
        ]
        self._nodes = [node for _, node in found]
        self._rank = {node.id: rank for rank, node in enumerate(self._nodes)}
        self._width = max((len(node.devices) for node in self._nodes), default=0)
        if len(self._rank) != len(self._nodes) or len(self._nodes) >= 1 << s.NODE_BITS:
            raise Unfit("a node is there twice, or there are too many")
        if self._width > MOST_DEVICES:
            raise Unfit("a node has too many devices")
        self._pools: dict[Pool, int] = {}
        self._shared = False
        self._static: set[str] = set()
        self.tables = self._empty([cluster for cluster, _ in found], with_cores)

    def fleet(self) -> Fleet:
        """What the rows stand for now."""
        static = frozenset(self._static)
        return Fleet(list(self._nodes), self._rank, self._pools, self._shared, static, self)

    def fill(self, rooms: Mapping[NodeId, Room]) -> None:
        """Look at all of them for the first time; of who has no room, we hold nothing."""
        for rank, node in enumerate(self._nodes):
            room = rooms.get(node.id)
            if room is not None or node.foreign or not node.usable:
                write_room(self.tables, rank, room or Room(node=node))
        running.fill(self.tables)
        for first, size in self.tables.pools[:, (s.FIRST, s.SIZE)].tolist():
            self.tables.entries[first : first + size].sort()

    def follow(self, rooms: Mapping[NodeId, Room], changed: AbstractSet[NodeId]) -> bool:
        """Look at those that may have changed. False when other hardware is in one of them: it is
        of no further use then, as it is when it raises Unfit."""
        for id in changed & self._rank.keys():
            rank, room = self._rank[id], rooms[id]
            if not _is_like(self._nodes[rank], room.node):
                return False
            self._nodes[rank] = room.node
            write_room(self.tables, rank, room)
            running.refresh(self.tables, rank)
        return True

    def _empty(self, clusters: Sequence[int], with_cores: bool) -> Hardware:
        """Nothing is held, and nothing is in its pools."""
        nodes = np.zeros((len(self._nodes), s.NODE_COLUMNS), np.int64)
        nodes[:, s.NODE_CPU] = [node.cpu_milli for node in self._nodes]
        nodes[:, s.NODE_MEMORY] = [node.memory_mib for node in self._nodes]
        most = max(int(nodes[:, s.NODE_CPU].sum()), self._width * len(self._nodes) * 1000)
        if most >= MOST_HARDWARE:
            raise Unfit("more hardware than the shares can tell")
        devices = np.full((*nodes.shape[:1], self._width, s.DEVICE_COLUMNS), -1, np.int64)
        known: dict[tuple[object, ...], tuple[list[int], list[int], int]] = {}
        rows = []
        for cluster, node in zip(clusters, self._nodes, strict=True):
            alike = cluster, *map(_HARDWARE, node.devices), *map(_USABLE, node.devices)
            row = known.get(alike)
            if row is None:
                row = known[alike] = self._devices(cluster, node)
            rows.append(row)
        shape = devices.shape[:2]
        devices[:, :, s.POOL] = np.array([row[0] for row in rows], np.int64).reshape(shape)
        devices[:, :, s.TAKEN] = np.array([row[1] for row in rows], np.int64).reshape(shape)
        nodes[:, s.USABLE] = [row[2] for row in rows]
        nodes[:, s.CORES_POOL] = [
            self._pool(Pool(cluster, s.CORES)) if with_cores else -1 for cluster in clusters
        ]
        pools, entries = self._ranges(nodes, devices)
        return Hardware(nodes, devices, self._wholes(devices), pools, entries)

    def _pool(self, key: Pool) -> int:
        return self._pools.setdefault(key, len(self._pools))

    def _devices(self, cluster: int, node: NodeView) -> tuple[list[int], list[int], int]:
        pools, taken = [-1] * self._width, [-1] * self._width
        ordered = sorted(node.devices, key=lambda d: d.ordinal)
        if len({device.ordinal for device in ordered}) != len(ordered):
            raise Unfit(f"two devices of node {node.id} have one ordinal")
        for d, device in enumerate(ordered):
            taken[d] = 0 if device.usable else -1
            if device.mode is DeviceMode.WHOLE:
                self._shared = self._shared or device.shares is not None
                pools[d] = self._pool(Pool(cluster, s.WHOLE, device.model, device.shares))
            elif device.mode is DeviceMode.MIG_DYNAMIC:
                pools[d] = self._pool(Pool(cluster, s.CUT, device.model))
            else:
                self._static.add(device.model)
        return pools, taken, int(any(device.usable for device in ordered))

    def _ranges(self, nodes: Ints, devices: Ints) -> tuple[Ints, Ints]:
        """Each pool gets as many entries as it could ever have."""
        pools = np.zeros((len(self._pools) or 1, s.POOL_COLUMNS), np.int64)
        most = np.zeros(len(pools), np.int64)
        for key, pool in self._pools.items():
            pools[pool, s.KIND] = key.kind
            if key.kind == s.CORES:
                most[pool] = (nodes[:, s.CORES_POOL] == pool).sum()
            else:
                here = devices[:, :, s.POOL] == pool
                most[pool] = here.sum() if key.kind == s.CUT else here.any(axis=1).sum()
        pools[1:, s.FIRST] = np.cumsum(most)[:-1]
        return pools, np.zeros(int(most.sum()) + 1, np.int64)

    def _wholes(self, devices: Ints) -> Ints:
        stands = [
            (node, pool)
            for key, pool in self._pools.items()
            if key.kind == s.WHOLE
            for node in np.flatnonzero((devices[:, :, s.POOL] == pool).any(axis=1)).tolist()
        ]
        of: list[list[int]] = [[] for _ in self._nodes]
        for node, pool in stands:
            of[node].append(pool)
        width = max(map(len, of), default=0)
        wholes = np.full((len(of), width, s.WHOLE_COLUMNS), -1, np.int64)
        for n in range(width):
            wholes[:, n, s.POOL] = [pools[n] if n < len(pools) else -1 for pools in of]
        return wholes


def _is_like(node: NodeView, other: NodeView) -> bool:
    """Whether both have the same hardware, well or sick."""
    return node is other or (
        (node.cpu_milli, node.memory_mib, *map(_HARDWARE, node.devices))
        == (other.cpu_milli, other.memory_mib, *map(_HARDWARE, other.devices))
    )


def is_by_hand(fleet: Fleet, flavor: FlavorView) -> bool:
    """Whether more than the tables is needed to place pods of the flavor."""
    if flavor.placing is Placing.SPREAD:
        return True
    if flavor.kind is FlavorKind.SHARE:
        return True
    if flavor.kind is FlavorKind.MIG:
        return flavor.profile.endswith(mig.MEDIA) or flavor.model in fleet.static
    return fleet.shared
