"""The nodes of a draft whose devices may be shared, as packings of each cluster.

A node stands in it when its whole devices are all of one model and shared in one way; the others
go by the pools of the index. Nodes that cut their devices into other numbers of replicas have a
packing of their own, in which a share is as large as what it takes there. The mix that is expected
is what waits and what runs: it will come again. No packing is made before the first pod is sought
a seat.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from scheduler.core.compiled import compiled
from scheduler.core.node import replicas
from scheduler.core.node.fit import Room
from scheduler.core.node.shapes import LARGEST, MOST_DEVICES, MOST_MODELS, Node, Shape
from scheduler.core.quota.portions import as_given
from scheduler.core.snapshot import (
    DeviceMode,
    DeviceView,
    FlavorKind,
    FlavorView,
    Isolation,
    Placing,
    PodSetView,
    Snapshot,
)
from scheduler.core.units import ONE_MILLI, ClusterId, DeviceId, FlavorId, NodeId

if TYPE_CHECKING:
    from scheduler.core.node.fragmentation import Packing


class _Kind(NamedTuple):
    """What the pods that accept a device have to agree with."""

    model: str
    shares: Isolation
    replicas: int


class _Group(NamedTuple):
    """The nodes of a cluster that are packed together."""

    cluster: ClusterId
    replicas: int


class _Seat(NamedTuple):
    """Where a node stands: its number in its group, and that of its kind."""

    group: _Group
    number: int
    kind: int


class Sought:
    """A place for one pod, on the nodes that it contains: of groups of one cluster, of which those
    where it takes least go first."""

    def __init__(
        self,
        *,
        shapes: Mapping[_Group, tuple["Packing", Shape]],
        rooms: Mapping[_Group, Sequence[Room]],
        seats: Mapping[NodeId, _Seat],
    ) -> None:
        self._shapes = sorted(shapes.items(), key=lambda each: (each[1][1].gpu_milli, each[0]))
        self._groups = shapes.keys()
        self._rooms = rooms
        self._seats = seats

    def __contains__(self, node: NodeId) -> bool:
        return node in self._seats and self._seats[node].group in self._groups

    def cost(self) -> int | None:
        """What `best` costs (`fragmentation`), no less than 0."""
        costs = (packing.cost(shape) for _, (packing, shape) in self._shapes)
        return next((cost for cost in costs if cost is not None), None)

    def best(self) -> tuple[Room, tuple[DeviceId, ...]] | None:
        """The node, and devices on it; None when the pod fits on none of these nodes."""
        for group, (packing, shape) in self._shapes:
            seat = packing.best(shape)
            if seat is not None:
                room = self._rooms[group][seat.node]
                devices = [device.id for device in _devices(room)]
                return room, tuple(devices[number] for number in seat.devices)
        return None


class Packed:
    """What is free for shares and beside them. `refresh` a room after each change of it."""

    def __init__(self, *, snapshot: Snapshot, rooms: Iterable[tuple[ClusterId, Room]]) -> None:
        """`rooms` in rank order; those that take nothing new are left out by the caller."""
        self._snapshot = snapshot
        self._flavors = {flavor.id: flavor for flavor in snapshot.flavors}
        found = [(cluster, room, kind) for cluster, room in rooms if (kind := _kind(room))]
        listed = sorted({kind for _, _, kind in found})[:MOST_MODELS]
        self._kinds = {kind: number for number, kind in enumerate(listed)}
        self._rooms: dict[_Group, list[Room]] = {}
        self._seats: dict[NodeId, _Seat] = {}
        for cluster, room, kind in found:
            if kind in self._kinds:
                group = _Group(cluster, kind.replicas)
                beside = self._rooms.setdefault(group, [])
                self._seats[room.node.id] = _Seat(group, len(beside), self._kinds[kind])
                beside.append(room)
        self._packings: dict[_Group, Packing] = {}
        self._mixes: dict[int, Counter[Shape]] = {}
        self._accepting: dict[tuple[FlavorId, ...], int] = {}

    def __contains__(self, node: NodeId) -> bool:
        return node in self._seats

    def refresh(self, room: Room) -> None:
        """The room has changed."""
        seat = self._seats.get(room.node.id)
        if seat is not None and seat.group in self._packings:
            self._packings[seat.group].update(seat.number, _node(room, seat.kind))

    def sought(
        self, *, cluster: ClusterId, pod_set: PodSetView, flavor: FlavorView
    ) -> "Sought | None":
        """What such a pod seeks here; None when these nodes go by the index for it, as they do for
        a flavor that is spread."""
        if flavor.placing is Placing.SPREAD:
            return None
        found: dict[_Group, tuple[Packing, Shape]] = {}
        for group in self._rooms:
            if group.cluster == cluster:
                shape = self._shape(pod_set, (flavor.id,), group.replicas)
                packing = self._packing(group) if shape else None
                if shape and packing and packing.takes(shape):
                    found[group] = packing, shape
        return Sought(shapes=found, rooms=self._rooms, seats=self._seats) if found else None

    def _packing(self, group: _Group) -> "Packing | None":
        packing, rooms = self._packings.get(group), self._rooms[group]
        if packing is None and (fragmentation := compiled("node.fragmentation")):
            nodes = (_node(room, self._seats[room.node.id].kind) for room in rooms)
            packing = fragmentation.Packing(nodes=nodes, mix=self._expected(group.replicas))
            self._packings[group] = packing
        return packing

    def _expected(self, cut: int) -> Counter[Shape]:
        """The pods that are like to come, as nodes with so many replicas see them."""
        if cut in self._mixes:
            return self._mixes[cut]
        mix = self._mixes[cut] = Counter()
        waiting = (pending.pod_sets for pending in self._snapshot.pending)
        running = (held.pod_sets for held in self._snapshot.holding)
        for pod_set in chain.from_iterable(chain(waiting, running)):
            given = (self._flavors[id] for id in pod_set.flavors if id in self._flavors)
            asked = next((as_given(pod_set=pod_set, flavor=flavor) for flavor in given), pod_set)
            shape = self._shape(asked, pod_set.flavors, cut)
            if shape is not None:
                mix[shape] += pod_set.count
        return mix

    def _shape(self, pod_set: PodSetView, flavors: tuple[FlavorId, ...], cut: int) -> Shape | None:
        """None when the pod is of no use here: too large for any node, or not for these kinds."""
        kinds = self._accepting.get(flavors)
        if kinds is None:
            kinds = sum(1 << n for kind, n in self._kinds.items() if self._accepts(flavors, kind))
            self._accepting[flavors] = kinds
        milli = pod_set.gpu_milli
        if milli < ONE_MILLI:
            milli = replicas.taken_milli(asked_milli=milli, replicas=cut)
        shape = Shape(pod_set.cpu_milli, pod_set.memory_mib, pod_set.gpu_count, milli, kinds)
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
    if first.shares is None:
        return None
    kind = _Kind(first.model, first.shares, first.replicas)
    alike = all((d.model, d.shares, d.replicas) == kind for d in devices)
    return kind if alike else None


def _node(room: Room, kind: int) -> Node:
    """A device that takes nothing new has nothing free, nor have cores that are overdrawn."""
    free = tuple(
        _free_milli(room, device) if device.usable and device.id not in room.broken else 0
        for device in _devices(room)
    )
    return Node(max(0, room.cpu_milli), max(0, room.memory_mib), kind, free)


def _free_milli(room: Room, device: DeviceView) -> int:
    """Of a device in part use, what shares may still take."""
    bits = room.taken[device.id]
    beyond = replicas.unshared(replicas=device.replicas) if bits else 0
    return ONE_MILLI - (bits | beyond).bit_count()
