"""The nodes of a draft whose devices may be shared, as a `Packing` of each cluster.

A node stands in it when its whole devices are all of one model and shared in one way; the others
go by the pools of the index. The mix that is expected is what waits and what runs: it will come
again. No packing is made before the first pod is sought a seat.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from scheduler.core.compiled import compiled
from scheduler.core.fit import Room
from scheduler.core.shapes import LARGEST, MOST_DEVICES, MOST_MODELS, Node, Shape
from scheduler.core.snapshot import (
    DeviceMode,
    DeviceView,
    FlavorKind,
    FlavorView,
    Isolation,
    PodSetView,
    Snapshot,
)
from scheduler.core.units import ONE_MILLI, ClusterId, DeviceId, FlavorId, NodeId

if TYPE_CHECKING:
    from scheduler.core.fragmentation import Packing


class _Kind(NamedTuple):
    """What the pods that accept a device have to agree with."""

    model: str
    shares: Isolation


class Sought(NamedTuple):
    """A place for one pod, among the nodes of one cluster."""

    packing: "Packing"
    shape: Shape
    rooms: Sequence[Room]

    def best(self) -> tuple[Room, tuple[DeviceId, ...]] | None:
        """The node, and devices on it; None when the pod fits on none of these nodes."""
        seat = self.packing.best(self.shape)
        if seat is None:
            return None
        room = self.rooms[seat.node]
        devices = [device.id for device in _devices(room)]
        return room, tuple(devices[number] for number in seat.devices)


class Packed:
    """What is free for shares and beside them. `refresh` a room after each change of it."""

    def __init__(self, *, snapshot: Snapshot, rooms: Iterable[tuple[ClusterId, Room]]) -> None:
        """`rooms` in rank order; those that take nothing new are left out by the caller."""
        self._snapshot = snapshot
        self._flavors = {flavor.id: flavor for flavor in snapshot.flavors}
        found = [(cluster, room, kind) for cluster, room in rooms if (kind := _kind(room))]
        listed = sorted({kind for _, _, kind in found})[:MOST_MODELS]
        self._kinds = {kind: number for number, kind in enumerate(listed)}
        self._rooms: dict[ClusterId, list[Room]] = {}
        self._seats: dict[NodeId, tuple[ClusterId, int, int]] = {}
        for cluster, room, kind in found:
            if kind in self._kinds:
                beside = self._rooms.setdefault(cluster, [])
                self._seats[room.node.id] = cluster, len(beside), self._kinds[kind]
                beside.append(room)
        self._packings: dict[ClusterId, Packing] = {}
        self._mix: Counter[Shape] | None = None
        self._accepting: dict[tuple[FlavorId, ...], int] = {}

    def __contains__(self, node: NodeId) -> bool:
        return node in self._seats

    def refresh(self, room: Room) -> None:
        """The room has changed."""
        cluster, rank, kind = self._seats.get(room.node.id, (None, 0, 0))
        if cluster in self._packings:
            self._packings[cluster].update(rank, _node(room, kind))

    def sought(
        self, *, cluster: ClusterId, pod_set: PodSetView, flavor: FlavorView
    ) -> "Sought | None":
        """What such a pod seeks here; None when these nodes go by the index for it."""
        shape = self._shape(pod_set, (flavor.id,)) if self._rooms else None
        packing = self._packing(cluster) if shape else None
        if shape is None or packing is None or not packing.takes(shape):
            return None
        return Sought(packing, shape, self._rooms[cluster])

    def _packing(self, cluster: ClusterId) -> "Packing | None":
        packing, rooms = self._packings.get(cluster), self._rooms.get(cluster)
        if packing is None and rooms and (fragmentation := compiled("fragmentation")):
            if self._mix is None:
                self._mix = self._expected()
            nodes = (_node(room, self._seats[room.node.id][2]) for room in rooms)
            packing = fragmentation.Packing(nodes=nodes, mix=self._mix)
            self._packings[cluster] = packing
        return packing

    def _expected(self) -> Counter[Shape]:
        mix: Counter[Shape] = Counter()
        waiting = (pending.pod_sets for pending in self._snapshot.pending)
        running = (held.pod_sets for held in self._snapshot.holding)
        for pod_set in chain.from_iterable(chain(waiting, running)):
            shape = self._shape(pod_set, pod_set.flavors)
            if shape is not None:
                mix[shape] += pod_set.count
        return mix

    def _shape(self, pod_set: PodSetView, flavors: tuple[FlavorId, ...]) -> Shape | None:
        """None when the pod is of no use here: too large for any node, or not for these kinds."""
        kinds = self._accepting.get(flavors)
        if kinds is None:
            kinds = sum(1 << n for kind, n in self._kinds.items() if self._accepts(flavors, kind))
            self._accepting[flavors] = kinds
        shape = Shape(
            pod_set.cpu_milli, pod_set.memory_mib, pod_set.gpu_count, pod_set.gpu_milli, kinds
        )
        return shape if kinds and shape.possible else None

    def _accepts(self, flavors: tuple[FlavorId, ...], kind: _Kind) -> bool:
        for id in flavors:
            flavor = self._flavors.get(id)
            if flavor is None or flavor.kind is FlavorKind.MIG:
                continue
            if flavor.kind is FlavorKind.CPU:
                return True
            if flavor.model == kind.model and (
                flavor.kind is FlavorKind.WHOLE or flavor.isolation is kind.shares
            ):
                return True
        return False


def _devices(room: Room) -> Iterator[DeviceView]:
    return (device for device in room.devices.values() if device.mode is DeviceMode.WHOLE)


def _kind(room: Room) -> _Kind | None:
    devices = list(_devices(room))
    if not 0 < len(devices) <= MOST_DEVICES:
        return None
    if room.node.cpu_milli >= LARGEST or room.node.memory_mib >= LARGEST:
        return None
    first = devices[0]
    alike = all(d.model == first.model and d.shares is first.shares for d in devices)
    return _Kind(first.model, first.shares) if first.shares and alike else None


def _node(room: Room, kind: int) -> Node:
    """A device that takes nothing new has nothing free, nor have cores that are overdrawn."""
    free = (
        ONE_MILLI - room.taken[device.id].bit_count()
        if device.usable and device.id not in room.broken
        else 0
        for device in _devices(room)
    )
    return Node(max(0, room.cpu_milli), max(0, room.memory_mib), kind, tuple(free))
