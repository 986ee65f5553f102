"""What must hold of a plan on nodes whose devices are count tokens, checked apart from the code
that made it."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from scheduler.core.plan import Place
from scheduler.core.snapshot import (
    DeviceMode,
    FlavorKind,
    FlavorView,
    HeldView,
    NodeView,
    Snapshot,
)
from scheduler.core.units import ONE_MILLI, FlavorId

ALIKE = ""
"""Of what is no slice."""


def counted(
    snapshot: Snapshot, placed: Iterable[Place], held: Iterable[HeldView]
) -> Iterator[str]:
    """Where something new starts no more are held of its kind than there are, on tokens that the
    node has lost too. Of slices that are cut on demand there is no such number."""
    placed = list(placed)
    flavors = {flavor.id: flavor for flavor in snapshot.flavors}
    nodes = {n.id: n for c in snapshot.clusters for n in c.nodes if n.counted}
    new = {
        (place.node, flavors[place.flavor].profile)
        for place in placed
        if place.node in nodes and place.flavor in flavors and place.spans
    }
    taken = {name: _foreign(nodes[name]) for name, _ in new}
    holders: list[Place | HeldView] = [*placed, *held]
    for holder in holders:
        if holder.node in taken and holder.flavor in flavors:
            taken[holder.node] += _parts(holder, nodes[holder.node], flavors)
    for name, profile in sorted(new):
        there, count = _there(nodes[name])[profile], taken[name][profile]
        on_demand = any(d.mode is DeviceMode.MIG_DYNAMIC for d in nodes[name].devices)
        if count > there and not (profile and on_demand):
            what = profile or "devices or replicas"
            yield f"{count} {what} of node {name} are held, which has {there}"


def _there(node: NodeView) -> Counter[str]:
    found = Counter(piece.profile for device in node.devices for piece in device.slices)
    for device in node.devices:
        if device.mode is DeviceMode.WHOLE:
            found[ALIKE] += device.replicas if device.shares is not None else 1
    return found


def _foreign(node: NodeView) -> Counter[str]:
    of = {device.id: device for device in node.devices}
    found: Counter[str] = Counter()
    for id, span in node.foreign:
        device = of.get(id)
        if device is None:
            continue
        if device.mode is DeviceMode.WHOLE:
            found[ALIKE] += _replicas(span.width, node)
        else:
            found.update(piece.profile for piece in device.slices if piece.span == span)
    return found


def _parts(
    holder: Place | HeldView, node: NodeView, flavors: Mapping[FlavorId, FlavorView]
) -> Counter[str]:
    flavor = flavors[holder.flavor]
    if flavor.kind is FlavorKind.MIG:
        return Counter({flavor.profile: len(holder.spans)})
    if flavor.kind is FlavorKind.WHOLE:
        return Counter({ALIKE: len(holder.spans) * _replicas(ONE_MILLI, node)})
    return Counter({ALIKE: _replicas(sum(span.width for _, span in holder.spans), node)})


def _replicas(milli: int, node: NodeView) -> int:
    """All of its devices are cut alike, if they are."""
    cut = max((d.replicas for d in node.devices if d.shares is not None), default=1)
    width = ONE_MILLI // cut
    return min((milli + width - 1) // width, cut * ((milli + ONE_MILLI - 1) // ONE_MILLI))
