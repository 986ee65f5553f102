"""The tables of what is free, filled from a snapshot and its draft."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from scheduler.core import mig
from scheduler.core.draft import Draft
from scheduler.core.fit import Room
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

KINDS = {FlavorKind.WHOLE: s.WHOLE, FlavorKind.MIG: s.CUT}


class Pool(NamedTuple):
    """The key of a pool: a row number of the cluster, a kind, and what its devices agree in."""

    cluster: int
    kind: int
    model: str = ""
    shares: Isolation | None = None


class Fleet(NamedTuple):
    """What the rows stand for. `shared`: some devices may be shared; `static`: models of which
    some are cut once and for all."""

    nodes: Sequence[NodeView]
    rank: Mapping[NodeId, int]
    pools: Mapping[Pool, int]
    shared: bool
    static: frozenset[str]


def hardware(
    *, snapshot: Snapshot, draft: Draft, clusters: Sequence[ClusterId], with_cores: bool
) -> tuple[Hardware, Fleet]:
    """All usable nodes of `clusters`, by rank. `with_cores`: nodes are found by their cores too.

    Raises Unfit.
    """
    filler = _Filler(snapshot, clusters, with_cores)
    made = filler.tables(draft)
    running.fill(made)
    for first, size in made.pools[:, (s.FIRST, s.SIZE)].tolist():
        made.entries[first : first + size].sort()
    shared, static = filler.shared, frozenset(filler.static)
    return made, Fleet(filler.nodes, filler.rank, filler.pools, shared, static)


def write_room(h: Hardware, node: int, room: Room) -> None:
    """The node is as the room says."""
    h.nodes[node, s.NODE_CPU], h.nodes[node, s.NODE_MEMORY] = room.cpu_milli, room.memory_mib
    for d, (id, bits) in enumerate(room.taken.items()):
        device = room.devices[id]
        if not device.usable or id in room.broken:
            bits = -1
        elif device.mode is not DeviceMode.MIG_DYNAMIC:
            bits = int(bits != 0)
        elif bits >= s.MASKS:
            raise Unfit(f"device {id} is held beyond its end")
        h.devices[node, d, s.TAKEN] = bits


class _Filler:
    def __init__(
        self, snapshot: Snapshot, clusters: Sequence[ClusterId], with_cores: bool
    ) -> None:
        of = {cluster.id: cluster for cluster in snapshot.clusters}
        self._found = [
            (n, node)
            for n, id in enumerate(clusters)
            for node in sorted(of[id].nodes, key=lambda node: (node.name, node.id))
            if node.usable
        ]
        self.nodes = [node for _, node in self._found]
        self.rank = {node.id: rank for rank, node in enumerate(self.nodes)}
        self._width = max((len(node.devices) for node in self.nodes), default=0)
        if len(self.rank) != len(self.nodes) or len(self.nodes) >= 1 << s.NODE_BITS:
            raise Unfit("a node is there twice, or there are too many")
        if self._width > MOST_DEVICES:
            raise Unfit("a node has too many devices")
        self.pools: dict[Pool, int] = {}
        self.shared = False
        self.static: set[str] = set()
        self._with_cores = with_cores

    def tables(self, draft: Draft) -> Hardware:
        nodes = np.zeros((len(self.nodes), s.NODE_COLUMNS), np.int64)
        nodes[:, s.NODE_CPU] = [node.cpu_milli for node in self.nodes]
        nodes[:, s.NODE_MEMORY] = [node.memory_mib for node in self.nodes]
        most = max(int(nodes[:, s.NODE_CPU].sum()), self._width * len(self.nodes) * 1000)
        if most >= MOST_HARDWARE:
            raise Unfit("more hardware than the shares can tell")
        devices = np.full((*nodes.shape[:1], self._width, s.DEVICE_COLUMNS), -1, np.int64)
        known: dict[tuple[object, ...], tuple[list[int], list[int], int]] = {}
        rows = []
        for cluster, node in self._found:
            alike = (
                cluster,
                *((d.model, d.mode, d.shares, d.usable, d.ordinal) for d in node.devices),
            )
            row = known.get(alike)
            if row is None:
                row = known[alike] = self._devices(cluster, node)
            rows.append(row)
        shape = devices.shape[:2]
        devices[:, :, s.POOL] = np.array([row[0] for row in rows], np.int64).reshape(shape)
        devices[:, :, s.TAKEN] = np.array([row[1] for row in rows], np.int64).reshape(shape)
        nodes[:, s.USABLE] = [row[2] for row in rows]
        nodes[:, s.CORES_POOL] = [
            self._pool(Pool(cluster, s.CORES)) if self._with_cores else -1
            for cluster, _ in self._found
        ]
        pools, entries = self._ranges(nodes, devices)
        made = Hardware(nodes, devices, self._wholes(devices), pools, entries)
        for id, room in draft.held().items():
            if id in self.rank:
                write_room(made, self.rank[id], room)
        return made

    def _pool(self, key: Pool) -> int:
        return self.pools.setdefault(key, len(self.pools))

    def _devices(self, cluster: int, node: NodeView) -> tuple[list[int], list[int], int]:
        pools, taken = [-1] * self._width, [-1] * self._width
        ordered = sorted(node.devices, key=lambda d: d.ordinal)
        if len({device.ordinal for device in ordered}) != len(ordered):
            raise Unfit(f"two devices of node {node.id} have one ordinal")
        for d, device in enumerate(ordered):
            if not device.usable:
                continue
            taken[d] = 0
            if device.mode is DeviceMode.WHOLE:
                self.shared = self.shared or device.shares is not None
                pools[d] = self._pool(Pool(cluster, s.WHOLE, device.model, device.shares))
            elif device.mode is DeviceMode.MIG_DYNAMIC:
                pools[d] = self._pool(Pool(cluster, s.CUT, device.model))
            else:
                self.static.add(device.model)
        return pools, taken, int(any(device.usable for device in ordered))

    def _ranges(self, nodes: Ints, devices: Ints) -> tuple[Ints, Ints]:
        """Each pool gets as many entries as it could ever have."""
        pools = np.zeros((len(self.pools) or 1, s.POOL_COLUMNS), np.int64)
        most = np.zeros(len(pools), np.int64)
        for key, pool in self.pools.items():
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
            for key, pool in self.pools.items()
            if key.kind == s.WHOLE
            for node in np.flatnonzero((devices[:, :, s.POOL] == pool).any(axis=1)).tolist()
        ]
        of: list[list[int]] = [[] for _ in self.nodes]
        for node, pool in stands:
            of[node].append(pool)
        width = max(map(len, of), default=0)
        wholes = np.full((len(of), width, s.WHOLE_COLUMNS), -1, np.int64)
        for n in range(width):
            wholes[:, n, s.POOL] = [pools[n] if n < len(pools) else -1 for pools in of]
        return wholes


def is_by_hand(fleet: Fleet, flavor: FlavorView) -> bool:
    """Whether more than the tables is needed to place pods of the flavor."""
    if flavor.placing is Placing.SPREAD:
        return True
    if flavor.kind is FlavorKind.SHARE:
        return True
    if flavor.kind is FlavorKind.MIG:
        return flavor.profile.endswith(mig.MEDIA) or flavor.model in fleet.static
    return fleet.shared
