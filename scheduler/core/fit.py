"""Does this pod fit on this node? The one test that planner and applier share.

The planner keeps a `Room` for each node of its draft; the applier makes rooms of fresh rows and
lets each gang in again.
Quota is not asked here, nor whether the cluster takes new work.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from operator import attrgetter
from typing import Protocol

from scheduler.core import mig, replicas
from scheduler.core.snapshot import (
    DeviceMode,
    DeviceView,
    FlavorKind,
    FlavorView,
    NodeView,
    SliceView,
)
from scheduler.core.units import ONE_MILLI, WHOLE_DEVICE, DeviceId, FlavorId, NodeId, Span

_PLACE = attrgetter("ordinal", "id")

FULL = (1 << ONE_MILLI) - 1
"""All thousandths of a device, as bits."""


class Misfit(StrEnum):
    """Why a pod does not fit on a node."""

    WRONG_NODE = "wrong-node"  # the place names another node
    NODE_UNUSABLE = "node-unusable"
    CPU = "cpu"
    MEMORY = "memory"
    AMOUNT = "amount"  # the spans hold other than the charged amount takes
    UNKNOWN_DEVICE = "unknown-device"
    DEVICE_UNUSABLE = "device-unusable"
    MODEL = "model"
    MODE = "mode"  # a slice of a whole device, a whole device of one in MIG mode, and so on
    ISOLATION = "isolation"  # the device is not shared, or not with what the flavor promises
    ILLEGAL_SPAN = "illegal-span"
    SPAN_TAKEN = "span-taken"


class Holds(Protocol):
    """What takes room on a node: a `Place` planned now or a `HeldView` placed before."""

    @property
    def node(self) -> NodeId: ...
    @property
    def flavor(self) -> FlavorId: ...
    @property
    def amount_milli(self) -> int: ...
    @property
    def cpu_milli(self) -> int: ...
    @property
    def memory_mib(self) -> int: ...
    @property
    def spans(self) -> tuple[tuple[DeviceId, Span], ...]: ...


class Room:
    """What is free on one node. Mutable. `devices` are in order of their ordinals.

    `taken` has the bits in use of each device; `media` those with their media engines in use.
    cpu_milli and memory_mib are what is free, negative when more is held than the node has. A
    device on which two holders overlap, or a share is not of whole replicas, is contradictory and
    takes nothing new: it is in `broken`.
    `rank` is the node's place in an index, -1 without one.
    """

    __slots__ = ("broken", "cpu_milli", "devices", "media", "memory_mib", "node", "rank", "taken")

    def __init__(self, *, node: NodeView) -> None:
        self.rank, self.node = -1, node
        self.devices: dict[DeviceId, DeviceView] = _in_order(node)
        self.empty(node=node)

    def empty(self, *, node: NodeView) -> None:
        """Nothing of ours is in it, and this is the node."""
        if node.devices is not self.node.devices:
            self.devices = _in_order(node)
        self.node = node
        self.cpu_milli = node.cpu_milli
        self.memory_mib = node.memory_mib
        self.taken: dict[DeviceId, int] = dict.fromkeys(self.devices, 0)
        self.media: set[DeviceId] = set()
        self.broken: set[DeviceId] = set()
        for device, span in node.foreign:
            if device in self.taken:
                self.taken[device] |= mig.mask(span)

    @property
    def is_overdrawn(self) -> bool:
        """Whether more is held than there is."""
        return bool(self.broken) or self.cpu_milli < 0 or self.memory_mib < 0

    def copy(self, *, node: NodeView | None = None) -> "Room":
        """A room of its own for a trial; in no index. As much is in it, though the node may be
        another view of the same one."""
        twin = Room.__new__(Room)
        twin.rank, twin.node, twin.devices = -1, node or self.node, self.devices
        if twin.node.devices is not self.node.devices:
            twin.devices = _in_order(twin.node)
        twin.cpu_milli, twin.memory_mib = self.cpu_milli, self.memory_mib
        twin.taken = dict(self.taken)
        twin.media, twin.broken = set(self.media), set(self.broken)
        return twin

    def take(self, *, holder: Holds, flavor: FlavorView | None) -> None:
        """Let it in without asking. Spans on devices that the node has lost are passed over."""
        self.cpu_milli -= holder.cpu_milli
        self.memory_mib -= holder.memory_mib
        for device, span in holder.spans:
            bits = mig.mask(span)
            before = self.taken.get(device)
            if before is None:
                continue
            if before & bits:
                self.broken.add(device)
            self.taken[device] = before | bits
            if flavor is not None and flavor.profile.endswith(mig.MEDIA):
                self.media.add(device)
        if flavor is not None and flavor.kind is FlavorKind.SHARE:
            self._note_odd(holder)

    def give(self, *, holder: Holds, flavor: FlavorView | None) -> None:
        """Undo `take` of the same holder, exactly unless its device is broken (and stays so)."""
        self.cpu_milli += holder.cpu_milli
        self.memory_mib += holder.memory_mib
        for device, span in holder.spans:
            before = self.taken.get(device)
            if before is None:
                continue
            self.taken[device] = before & ~mig.mask(span)
            if flavor is not None and flavor.profile.endswith(mig.MEDIA):
                self.media.discard(device)

    def _note_odd(self, holder: Holds) -> None:
        """A share that was placed when its node had other replicas may hold part of one."""
        for id, _ in holder.spans[:1]:
            device = self.devices.get(id)
            if device is not None and is_odd(holder=holder, device=device):
                self.broken.add(id)

    def misfit(self, *, place: Holds, flavor: FlavorView) -> Misfit | None:
        """Why `place` does not fit beside what is in; None when it does."""
        if place.node != self.node.id:
            return Misfit.WRONG_NODE
        if not self.node.usable:
            return Misfit.NODE_UNUSABLE
        if place.cpu_milli > self.cpu_milli:
            return Misfit.CPU
        if place.memory_mib > self.memory_mib:
            return Misfit.MEMORY
        if not self._is_charged(place, flavor):
            return Misfit.AMOUNT
        return self._misfit_of_spans(place, flavor)

    def is_free(self, *, place: Holds, flavor: FlavorView | None) -> bool:
        """Whether nothing is in it where `place` was before it was given back: on a device that is
        broken, or that the node has lost, nothing was put since."""
        if place.cpu_milli > self.cpu_milli or place.memory_mib > self.memory_mib:
            return False
        for id, span in place.spans:
            device = self.devices.get(id)
            if device is None or id in self.broken:
                continue
            if self.taken[id] & mig.mask(span):
                return False
            if flavor is not None and id in self.media and _wants_media(device, flavor):
                return False
        return True

    def _is_charged(self, place: Holds, flavor: FlavorView) -> bool:
        """Whether its spans hold what the charged amount takes; a share has one device."""
        if flavor.kind is FlavorKind.CPU:
            return not place.spans and place.amount_milli == place.cpu_milli
        if flavor.kind is not FlavorKind.SHARE:
            return place.amount_milli == (len(place.spans) * ONE_MILLI or -1)
        device = self.devices.get(place.spans[0][0]) if place.spans else None
        cut = ONE_MILLI if device is None else device.replicas
        taken = replicas.taken_milli(asked_milli=place.amount_milli, replicas=cut)
        return taken == (_width(place) or -1)

    def _misfit_of_spans(self, place: Holds, flavor: FlavorView) -> Misfit | None:
        own: dict[DeviceId, int] = {}
        for device_id, span in place.spans:
            device = self.devices.get(device_id)
            if device is None:
                return Misfit.UNKNOWN_DEVICE
            if not device.usable or device_id in self.broken:
                return Misfit.DEVICE_UNUSABLE
            if device.model != flavor.model:
                return Misfit.MODEL
            wrong = _wrong_span(device, span, flavor)
            if wrong is not None:
                return wrong
            bits = mig.mask(span)
            if (self.taken[device_id] | own.get(device_id, 0)) & bits:
                return Misfit.SPAN_TAKEN
            if _wants_media(device, flavor) and (device_id in self.media or device_id in own):
                return Misfit.SPAN_TAKEN
            own[device_id] = own.get(device_id, 0) | bits
        if flavor.kind is FlavorKind.SHARE and len(own) > 1:
            return Misfit.ILLEGAL_SPAN
        return None


def _in_order(node: NodeView) -> dict[DeviceId, DeviceView]:
    return {d.id: d for d in sorted(node.devices, key=_PLACE)}


def let_in(
    *,
    places: Sequence[Holds],
    rooms: Mapping[NodeId, Room],
    flavors: Mapping[FlavorId, FlavorView],
) -> bool:
    """Put a gang into `rooms`, each place beside those before it; False leaves them as they were.

    A place on a node without a room, or of an unknown flavor, does not fit.
    """
    taken: list[Holds] = []
    for place in places:
        room, flavor = rooms.get(place.node), flavors.get(place.flavor)
        if room is None or flavor is None or room.misfit(place=place, flavor=flavor):
            for undone in taken:
                rooms[undone.node].give(holder=undone, flavor=flavors[undone.flavor])
            return False
        room.take(holder=place, flavor=flavor)
        taken.append(place)
    return True


def is_odd(*, holder: Holds, device: DeviceView) -> bool:
    """Whether a share on the device is not of whole replicas."""
    return _width(holder) % replicas.width_milli(replicas=device.replicas) > 0


def _width(holder: Holds) -> int:
    return sum(span.width for _, span in holder.spans)


def _wants_media(device: DeviceView, flavor: FlavorView) -> bool:
    """Whether the flavor wants the media engines of a device that is cut on demand."""
    return device.mode is DeviceMode.MIG_DYNAMIC and flavor.profile.endswith(mig.MEDIA)


def _wrong_span(device: DeviceView, span: Span, flavor: FlavorView) -> Misfit | None:
    if flavor.kind is FlavorKind.MIG:
        if device.mode is DeviceMode.MIG_STATIC:
            legal = SliceView(flavor.profile, span) in device.slices
        elif device.mode is DeviceMode.MIG_DYNAMIC:
            legal = span in mig.legal_spans(model=device.model, profile=flavor.profile)
        else:
            return Misfit.MODE
        return None if legal else Misfit.ILLEGAL_SPAN
    if device.mode is not DeviceMode.WHOLE:
        return Misfit.MODE
    if flavor.kind is FlavorKind.WHOLE:
        return None if span == WHOLE_DEVICE else Misfit.ILLEGAL_SPAN
    if device.shares is not flavor.isolation:
        return Misfit.ISOLATION
    outside = mig.mask(span) & replicas.unshared(replicas=device.replicas)
    return Misfit.ILLEGAL_SPAN if outside else None
