"""What of each model in each cluster is free, how large a gang it takes now, what is stranded.

Of one moment. Gangs are counted as if each of their pods asked for the cores and memory of
`LEAST`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from scheduler.core.fleet.draft import Draft
from scheduler.core.node import mig, replicas
from scheduler.core.node.fit import FULL, Room
from scheduler.core.quota.portions import as_given
from scheduler.core.snapshot import (
    ClusterView,
    DeviceMode,
    DeviceView,
    FlavorKind,
    FlavorView,
    PendingView,
    Snapshot,
)
from scheduler.core.units import ONE_MILLI, ClusterId, FlavorId, NodeId

SIZES = (1, 2, 4, 8)
"""Whole devices a pod, of which gangs are counted."""
MEMORY_SLICES = 8
"""Of a MIG device that is of no known board."""


@dataclass(frozen=True, slots=True, order=True)
class Shape:
    """What one pod takes on its node. `gpu_milli` is less than 1000 for a share of one device."""

    gpu_count: int
    gpu_milli: int
    cpu_milli: int
    memory_mib: int

    def fits(self, room: Room) -> bool:
        """Whether its cores and memory do."""
        return self.cpu_milli <= room.cpu_milli and self.memory_mib <= room.memory_mib

    def within(self, other: "Shape") -> bool:
        """Whether it fits wherever the other does."""
        return (
            self.gpu_count <= other.gpu_count
            and self.gpu_milli <= other.gpu_milli
            and self.cpu_milli <= other.cpu_milli
            and self.memory_mib <= other.memory_mib
        )


LEAST = Shape(1, ONE_MILLI, 1000, 1024)
"""A pod of one device, one core and 1 GiB: stands for all while none of the model waits."""


@dataclass(frozen=True, slots=True)
class Gangs:
    """The most pods of `gpus` whole devices each that fit now, beside each other: in the one
    domain of `level` that takes most, anywhere in the cluster for ""."""

    level: str
    gpus: int
    pods: int


@dataclass(frozen=True, slots=True)
class PoolFigures:
    """One model in one cluster; amounts in thousandths of a device, a slice by its memory.

    `total_milli` counts usable devices of usable nodes, `free_milli` what of them nobody holds.
    `stranded_milli` is free, and neither on a node that is all free nor of use to any pod that
    waits. `whole_nodes` are all free. `scattered_milli` is the part of what is free that is not on
    them, in thousandths; 0 when nothing is free.
    """

    cluster: ClusterId
    model: str
    total_milli: int
    free_milli: int
    stranded_milli: int
    whole_nodes: int
    scattered_milli: int
    gangs: tuple[Gangs, ...]


def pools(*, snapshot: Snapshot) -> tuple[PoolFigures, ...]:
    """By cluster, then by model. Of a cluster that takes nothing new nothing is told."""
    rooms = Draft(snapshot=snapshot, holding=snapshot.holding).held()
    return tuple(
        figures
        for cluster in sorted(snapshot.clusters, key=lambda c: c.id)
        if cluster.usable
        for figures in _of_cluster(snapshot, cluster, rooms)
    )


def _of_cluster(
    snapshot: Snapshot, cluster: ClusterView, rooms: Mapping[NodeId, Room]
) -> Iterator[PoolFigures]:
    waiting = _waiting(snapshot, cluster)
    found: dict[str, _Pool] = {}
    for node in cluster.nodes:
        if node.usable:
            room = rooms.get(node.id) or Room(node=node)
            for model in {device.model for device in node.devices}:
                pool = found.setdefault(model, _Pool(waiting.get(model, {})))
                pool.add(room, model, snapshot.levels)
    for model, pool in sorted(found.items()):
        if pool.total_milli:
            yield pool.figures(cluster.id, model, snapshot.levels)


def _waiting(snapshot: Snapshot, cluster: ClusterView) -> dict[str, dict[FlavorView, list[Shape]]]:
    """By model and flavor, the shapes of pods that wait there, without those that fit only where
    a smaller one does."""
    flavors = {flavor.id: flavor for flavor in snapshot.flavors}
    shapes: dict[FlavorView, set[Shape]] = {}
    for pending in snapshot.pending:
        if not pending.clusters or cluster.id in pending.clusters:
            for flavor, shape in _shapes(pending, flavors):
                shapes.setdefault(flavor, set()).add(shape)
    found: dict[str, dict[FlavorView, list[Shape]]] = {}
    for flavor, asked in shapes.items():
        found.setdefault(flavor.model, {})[flavor] = _smallest(asked)
    return found


def _shapes(
    pending: PendingView, flavors: Mapping[FlavorId, FlavorView]
) -> Iterator[tuple[FlavorView, Shape]]:
    for pod_set in pending.pod_sets:
        for flavor in (flavors[id] for id in pod_set.flavors if id in flavors):
            asked = as_given(pod_set=pod_set, flavor=flavor)
            if asked.gpu_count:
                yield (
                    flavor,
                    Shape(asked.gpu_count, asked.gpu_milli, asked.cpu_milli, asked.memory_mib),
                )


def _smallest(shapes: Iterable[Shape]) -> list[Shape]:
    kept: list[Shape] = []
    for shape in sorted(shapes):
        if not any(other.within(shape) for other in kept):
            kept.append(shape)
    return kept


@dataclass(slots=True)
class _Pool:
    """Adds up node after node, of one model."""

    waiting: Mapping[FlavorView, list[Shape]]
    total_milli: int = 0
    free_milli: int = 0
    stranded_milli: int = 0
    on_whole_milli: int = 0
    whole_nodes: int = 0
    pods: Counter[int] = field(default_factory=Counter)
    apart: dict[tuple[str, tuple[str, ...]], Counter[int]] = field(default_factory=dict)

    def add(self, room: Room, model: str, levels: tuple[str, ...]) -> None:
        """All devices of the model on the node."""
        own = [d for d in room.devices.values() if d.model == model and d.usable]
        free = {d.id: 0 if d.id in room.broken else _axis(d) & ~room.taken[d.id] for d in own}
        here = sum(_milli(d, free[d.id]) for d in own)
        self.total_milli += len(own) * ONE_MILLI
        self.free_milli += here
        empty = sum(1 for d in own if free[d.id] == FULL)
        fits = LEAST.fits(room)
        idle = sum(1 for d in own if free[d.id] == _axis(d))
        if fits and idle == len(room.devices):
            self.whole_nodes += 1
            self.on_whole_milli += here
        else:
            for device in own:
                left = free[device.id]
                self.stranded_milli += _milli(
                    device, left & ~self._useful(room, device, left, empty)
                )
        if fits:
            self._count(room, empty, levels)

    def _useful(self, room: Room, device: DeviceView, left: int, empty: int) -> int:
        """The bits of what is `left` that a pod could get, with cores and memory beside them; of
        those that wait, or of any while none waits for devices like this."""
        asked = {f: shapes for f, shapes in self.waiting.items() if _suits(device, f)}
        useful = 0
        for flavor, shapes in (asked or _anything(device)).items():
            if flavor.kind is FlavorKind.MIG:
                if any(shape.fits(room) for shape in shapes):
                    useful |= _cuts(room, device, flavor, left)
            elif any(
                shape.fits(room)
                and shape.gpu_count <= max(empty, 1)
                and shape.gpu_milli <= _largest_milli(device, flavor, left)
                for shape in shapes
            ):
                useful = left
        return useful

    def _count(self, room: Room, empty: int, levels: tuple[str, ...]) -> None:
        beside = min(room.cpu_milli // LEAST.cpu_milli, room.memory_mib // LEAST.memory_mib, empty)
        stands = room.node.topology
        for gpus in SIZES:
            pods = min(empty // gpus, beside)
            self.pods[gpus] += pods
            for depth, level in enumerate(levels, start=1):
                if len(stands) >= depth and stands[depth - 1]:
                    domain = self.apart.setdefault((level, stands[:depth]), Counter())
                    domain[gpus] += pods

    def figures(self, cluster: ClusterId, model: str, levels: tuple[str, ...]) -> PoolFigures:
        gangs = [Gangs("", gpus, self.pods[gpus]) for gpus in SIZES]
        for level in levels:
            domains = [counts for (of, _), counts in self.apart.items() if of == level]
            if domains:
                gangs += [Gangs(level, g, max(counts[g] for counts in domains)) for g in SIZES]
        scattered = self.free_milli - self.on_whole_milli
        return PoolFigures(
            cluster,
            model,
            self.total_milli,
            self.free_milli,
            self.stranded_milli,
            self.whole_nodes,
            scattered * ONE_MILLI // self.free_milli if self.free_milli else 0,
            tuple(gangs),
        )


def _largest_milli(device: DeviceView, flavor: FlavorView, left: int) -> int:
    """The most that a pod of the flavor may ask for of a device with these bits left."""
    if flavor.kind is not FlavorKind.SHARE:
        return ONE_MILLI if left == FULL else 0
    return replicas.largest_milli(bits=FULL & ~left, replicas=device.replicas)


def _axis(device: DeviceView) -> int:
    """All of the device, as bits."""
    if device.mode is DeviceMode.WHOLE:
        return FULL
    board = mig.board(model=device.model)
    return (1 << (board.memory if board else MEMORY_SLICES)) - 1


def _milli(device: DeviceView, bits: int) -> int:
    """Exact: a device has 4 or 8 memory slices."""
    return bits.bit_count() * ONE_MILLI // _axis(device).bit_count()


def _suits(device: DeviceView, flavor: FlavorView) -> bool:
    if device.mode is not DeviceMode.WHOLE:
        return flavor.kind is FlavorKind.MIG
    if flavor.kind is FlavorKind.SHARE:
        return device.shares is flavor.isolation
    return flavor.kind is FlavorKind.WHOLE


def _cuts(room: Room, device: DeviceView, flavor: FlavorView, left: int) -> int:
    """Where a slice could lie."""
    if device.mode is DeviceMode.MIG_STATIC:
        spans = [s.span for s in device.slices if s.profile == flavor.profile]
    elif flavor.profile.endswith(mig.MEDIA) and device.id in room.media:
        spans = []
    else:
        spans = list(mig.legal_spans(model=device.model, profile=flavor.profile))
    useful = 0
    for span in spans:
        if not mig.mask(span) & ~left:
            useful |= mig.mask(span)
    return useful


def _anything(device: DeviceView) -> dict[FlavorView, list[Shape]]:
    """One of each that such a device could give."""
    if device.mode is DeviceMode.WHOLE:
        kinds = [(FlavorKind.WHOLE, "", ONE_MILLI)]
        if device.shares is not None:
            kinds.append((FlavorKind.SHARE, "", 1))
    elif device.mode is DeviceMode.MIG_STATIC:
        kinds = [(FlavorKind.MIG, part.profile, ONE_MILLI) for part in device.slices]
    else:
        board = mig.board(model=device.model)
        profiles = board.profiles if board else ()
        kinds = [(FlavorKind.MIG, profile.name, ONE_MILLI) for profile in profiles]
    return {
        FlavorView(FlavorId(profile), "", kind, device.model, profile): [
            replace(LEAST, gpu_milli=milli)
        ]
        for kind, profile, milli in kinds
    }
