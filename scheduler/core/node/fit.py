"""Does this pod fit on this node? The one test that planner and applier share.

The planner keeps a `Room` for each node of its draft; the applier makes rooms of fresh rows and
lets each gang in again.
Quota is not asked here, nor whether the cluster takes new work.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from operator import attrgetter
from typing import Protocol

from scheduler.core.node import mig, replicas
from scheduler.core.node.foreign import UNITS, chosen
from scheduler.core.node.stand_ins import lost_parts
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
    `lost` counts what is held of devices and slices that a node which is `counted` has lost, by
    profile or UNITS. For each of them one that is there and free stands in: it is in `taken` too,
    and not in `held`. `short` is for how many there is none: so many more are held than there are.
    `rank` is the node's place in an index, -1 without one.
    """

    __slots__ = (
        *("broken", "cpu_milli", "devices", "held", "lost", "media", "memory_mib", "node"),
        *("rank", "short", "taken"),
    )

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
        self.held: dict[DeviceId, int] = dict.fromkeys(self.devices, 0)
        self.taken = self.held  # the same one, while nothing stands in
        self.lost: dict[str, int] = {}
        self.short = 0
        self.media: set[DeviceId] = set()
        self.broken: set[DeviceId] = set()
        for device, span in node.foreign:
            if device in self.held:
                self.held[device] |= mig.mask(span)

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
        twin.held, twin.lost, twin.short = dict(self.held), dict(self.lost), self.short
        twin.taken = dict(self.taken) if self.lost else twin.held
        twin.media, twin.broken = set(self.media), set(self.broken)
        return twin

    def take(self, *, holder: Holds, flavor: FlavorView | None) -> None:
        """Let it in without asking. Spans on devices that the node has lost are passed over, but
        where it is counted: there others stand in."""
        self.cpu_milli -= holder.cpu_milli
        self.memory_mib -= holder.memory_mib
        may_be_lost = bool(self.lost or (flavor and flavor.profile))
        for device, span in holder.spans:
            bits = mig.mask(span)
            before = self.held.get(device)
            if before is None:
                may_be_lost = True
                continue
            if before & bits:
                self.broken.add(device)
            self.held[device] = before | bits
            if flavor is not None and flavor.profile.endswith(mig.MEDIA):
                self.media.add(device)
        if flavor is not None and flavor.kind is FlavorKind.SHARE:
            self._note_odd(holder)
        if may_be_lost and self.node.counted:
            self._count_lost(holder, flavor, 1)

    def give(self, *, holder: Holds, flavor: FlavorView | None) -> None:
        """Undo `take` of the same holder, exactly unless its device is broken (and stays so)."""
        self.cpu_milli += holder.cpu_milli
        self.memory_mib += holder.memory_mib
        may_be_lost = bool(self.lost or (flavor and flavor.profile))
        for device, span in holder.spans:
            before = self.held.get(device)
            if before is None:
                may_be_lost = True
                continue
            self.held[device] = before & ~mig.mask(span)
            if flavor is not None and flavor.profile.endswith(mig.MEDIA):
                self.media.discard(device)
        if may_be_lost and self.node.counted:
            self._count_lost(holder, flavor, -1)

    def tighten(self, *, other: "Room") -> None:
        """Leave only what is free here and in `other`, a room of the same node."""
        self.cpu_milli = min(self.cpu_milli, other.cpu_milli)
        self.memory_mib = min(self.memory_mib, other.memory_mib)
        self.media |= other.media
        for device, bits in other.held.items():
            self.held[device] |= bits
        for profile, parts in other.lost.items():
            self.lost[profile] = max(self.lost.get(profile, 0), parts)
        self._stand_in()

    def _count_lost(self, holder: Holds, flavor: FlavorView | None, sign: int) -> None:
        """It holds what it holds of lost parts, or no longer."""
        parts = self._lost_parts(holder, flavor)
        if flavor is not None and parts:
            of = flavor.profile or UNITS
            self.lost[of] = self.lost.get(of, 0) + sign * parts
            if not self.lost[of]:
                del self.lost[of]
        if parts or self.lost:
            self._stand_in()

    def _lost_parts(self, holder: Holds, flavor: FlavorView | None) -> int:
        """Of an unknown flavor it is not known of what."""
        if flavor is None or not self.node.counted:
            return 0
        return lost_parts(spans=holder.spans, flavor=flavor, devices=self.devices)

    def _stand_in(self) -> None:
        """A choice that follows from what is held alone, whoever came or went first; what is free
        beside it may be taken without another."""
        self.taken, self.short = self.held, 0
        if not self.lost:
            return
        sound = [each for id, each in self.devices.items() if id not in self.broken]
        found = chosen(devices=sound, held=self.lost, taken=self.held)
        self.short = sum(self.lost.values()) - len(found)
        self.taken = dict(self.held)
        for device, span in found:
            self.taken[device] |= mig.mask(span)

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
        broken, or that the node has lost, nothing was put since. Nor may it take what stands in
        for what is lost, unless something else does then."""
        if place.cpu_milli > self.cpu_milli or place.memory_mib > self.memory_mib:
            return False
        for id, span in place.spans:
            device = self.devices.get(id)
            if device is None or id in self.broken:
                continue
            if self.held[id] & mig.mask(span):
                return False
            if flavor is not None and id in self.media and _wants_media(device, flavor):
                return False
        if not (self.lost or self._lost_parts(place, flavor)):
            return True
        trial = self.copy()
        trial.take(holder=place, flavor=flavor)
        return trial.short <= self.short

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
