"""Which spans on one node: for a pod of a flavor, the devices and spans that leave most to others.

The lowest ordinal goes first, then the lowest start, unless a rule below says otherwise. Cores and
memory are not looked at here; `Room.misfit` decides.
"""

from collections.abc import Iterator

from scheduler.core.node import mig, replicas
from scheduler.core.node.fit import FULL, Room
from scheduler.core.node.slices import Slices
from scheduler.core.snapshot import (
    DeviceMode,
    DeviceView,
    FlavorKind,
    FlavorView,
    PodSetView,
)
from scheduler.core.units import ONE_MILLI, WHOLE_DEVICE, DeviceId, DeviceSpan, Span

Spans = tuple[DeviceSpan, ...]


def pick(*, room: Room, pod_set: PodSetView, flavor: FlavorView, slices: Slices) -> Spans | None:
    """Spans for one pod of the flavor on this node; None when they are not free, () for CPU."""
    if flavor.kind is FlavorKind.CPU:
        return ()
    if flavor.kind is FlavorKind.WHOLE:
        return _whole(room, pod_set.gpu_count, flavor)
    if flavor.kind is FlavorKind.SHARE:
        return _part(room, pod_set.gpu_milli, flavor)
    found = _cut(room, pod_set.gpu_count, flavor)
    return _cut_new(room, pod_set.gpu_count, flavor, slices) if found is None else found


def spans_on(
    *, room: Room, devices: tuple[DeviceId, ...], milli: int, flavor: FlavorView
) -> Spans:
    """Spans on devices that were chosen: the whole of empty ones, or of a single one what a share
    of `milli` takes."""
    if flavor.kind is not FlavorKind.SHARE:
        return tuple((device, WHOLE_DEVICE) for device in devices)
    return tuple(spans for d in devices for spans in _share(room, room.devices[d], milli))


def _usable(room: Room, mode: DeviceMode, flavor: FlavorView) -> Iterator[DeviceView]:
    for device in room.devices.values():
        suits = device.mode is mode and device.model == flavor.model
        if suits and device.usable and device.id not in room.broken:
            yield device


def _whole(room: Room, count: int, flavor: FlavorView) -> Spans | None:
    """Empty devices, those that can't be shared first."""
    found = [d for d in _usable(room, DeviceMode.WHOLE, flavor) if not room.taken[d.id]]
    if len(found) < count:
        return None
    found.sort(key=_shareable)
    return tuple((device.id, WHOLE_DEVICE) for device in found[:count])


def _shareable(device: DeviceView) -> bool:
    return device.shares is not None


def _part(room: Room, milli: int, flavor: FlavorView) -> Spans | None:
    """Part of the fullest device that has as much free."""
    best, least = None, ONE_MILLI + 1
    for device in _usable(room, DeviceMode.WHOLE, flavor):
        if device.shares is flavor.isolation:
            bits = room.taken[device.id]
            free = replicas.largest_milli(bits=bits, replicas=device.replicas)
            if milli <= free < least:
                best, least = device, free
    return None if best is None else _share(room, best, milli)


def _share(room: Room, device: DeviceView, milli: int) -> Spans:
    """On a device that has as much free."""
    bits, cut = room.taken[device.id], device.replicas
    width = replicas.taken_milli(asked_milli=milli, replicas=cut)
    if not bits:
        return ((device.id, Span(0, width)),)
    taken = bits | replicas.unshared(replicas=cut)
    return tuple((device.id, span) for span in _fill(taken, width))


def _fill(taken: int, milli: int) -> list[Span]:
    """Free spans of `milli` in sum: the tightest hole that holds it, else holes from below."""
    holes = []
    free = FULL & ~taken
    while free:
        start = (free & -free).bit_length() - 1
        beyond = ~(free >> start)
        width = (beyond & -beyond).bit_length() - 1
        holes.append(Span(start, start + width))
        free &= ~mig.mask(holes[-1])
    whole = [hole for hole in holes if hole.width >= milli]
    if whole:
        hole = min(whole, key=lambda h: (h.width, h.start))
        return [Span(hole.start, hole.start + milli)]
    spans = []
    for hole in holes:
        width = min(hole.width, milli)
        if width:
            spans.append(Span(hole.start, hole.start + width))
            milli -= width
    return spans


def _cut(room: Room, count: int, flavor: FlavorView) -> Spans | None:
    """Free slices of the profile, from the fullest devices first."""
    found = [
        (-room.taken[device.id].bit_count(), device.ordinal, device.id, piece.span)
        for device in _usable(room, DeviceMode.MIG_STATIC, flavor)
        for piece in device.slices
        if piece.profile == flavor.profile and not mig.mask(piece.span) & room.taken[device.id]
    ]
    if len(found) < count:
        return None
    return tuple((device_id, span) for _, _, device_id, span in sorted(found)[:count])


def _cut_new(room: Room, count: int, flavor: FlavorView, slices: Slices) -> Spans | None:
    """New slices at legal starts, each where it costs least."""
    media = flavor.profile.endswith(mig.MEDIA)
    taken = {
        device.id: room.taken[device.id]
        for device in _usable(room, DeviceMode.MIG_DYNAMIC, flavor)
        if not (media and device.id in room.media)
    }
    spans = []
    for _ in range(count):
        ranked = []
        for nth, (device_id, bits) in enumerate(taken.items()):
            spot = slices.cheapest(flavor=flavor, taken=bits)
            if spot is not None:
                ranked.append((spot.loss, spot.left, nth, device_id, spot.span))
        if not ranked:
            return None
        *_, device_id, span = min(ranked)
        spans.append((device_id, span))
        taken[device_id] |= mig.mask(span)
        if media:
            del taken[device_id]
    return tuple(spans)
