"""What must hold of the shares of a plan, checked apart from the code that made it."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from scheduler.core.plan import Place
from scheduler.core.snapshot import DeviceView, FlavorKind, HeldView, Snapshot
from scheduler.core.units import ONE_MILLI, DeviceId


def is_as_charged(place: Place, devices: Mapping[DeviceId, DeviceView]) -> bool:
    """Whether a share has the room, on one device, of the fewest replicas that hold its amount."""
    on = {device for device, _ in place.spans}
    if len(on) != 1:
        return False
    cut = devices[min(on)].replicas if min(on) in devices else ONE_MILLI
    asked = (place.amount_milli * cut + ONE_MILLI - 1) // ONE_MILLI
    return sum(span.width for _, span in place.spans) == asked * (ONE_MILLI // cut)


def shares(
    snapshot: Snapshot,
    devices: Mapping[DeviceId, DeviceView],
    placed: Iterable[Place],
    held: Iterable[HeldView],
) -> Iterator[str]:
    """All on a device with a new share hold no more of its replicas than there are."""
    of_shares = {f.id for f in snapshot.flavors if f.kind is FlavorKind.SHARE}
    new = {d for place in placed if place.flavor in of_shares for d, _ in place.spans}
    taken: Counter[DeviceId] = Counter()
    holders: list[Place | HeldView] = [*placed, *held]
    for holder in holders:
        widths: Counter[DeviceId] = Counter()
        for id, span in holder.spans:
            widths[id] += span.width
        for id in widths.keys() & new & devices.keys():
            width = ONE_MILLI // devices[id].replicas
            taken[id] += (widths[id] + width - 1) // width
    for id, count in taken.items():
        if count > devices[id].replicas:
            yield f"{count} replicas of device {id} are held, which has {devices[id].replicas}"
