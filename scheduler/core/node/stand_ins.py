"""Who holds a count token that its node has lost holds, in truth, one of those that are there: the
kubelet chooses which. So one that is free stands in for it, and nobody else is put there.

Where a driver tells each device by itself a lost one is that very one, and nothing stands in.
"""

from collections.abc import Iterable, Mapping

from scheduler.core.node import replicas
from scheduler.core.snapshot import DeviceMode, DeviceView, FlavorKind, FlavorView, SliceView
from scheduler.core.units import DeviceId, DeviceSpan, Span


def lost_parts(
    *, spans: Iterable[DeviceSpan], flavor: FlavorView, devices: Mapping[DeviceId, DeviceView]
) -> int:
    """How many of the slices, devices or replicas of shared ones in which these are held are not
    among the devices."""
    if flavor.kind is FlavorKind.MIG:
        return sum(not _has_slice(devices.get(id), flavor, span) for id, span in spans)
    lost = [span.width for device, span in spans if device not in devices]
    if not lost:
        return 0
    cut = next((each.replicas for each in devices.values() if each.shares is not None), 1)
    if flavor.kind is FlavorKind.WHOLE:
        return len(lost) * cut
    return -(-sum(lost) // replicas.width_milli(replicas=cut))


def _has_slice(device: DeviceView | None, flavor: FlavorView, span: Span) -> bool:
    if device is None or device.mode is not DeviceMode.MIG_STATIC:
        return device is not None
    return SliceView(flavor.profile, span) in device.slices
