"""Fleets in which foreign pods hold a part of some devices."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from scheduler.core.snapshot import ClusterView, DeviceMode, DeviceView, NodeView
from scheduler.core.units import ONE_MILLI, WHOLE_DEVICE, Span


def with_foreign(pick: Random, of: Sequence[ClusterView]) -> tuple[ClusterView, ...]:
    """The last device of one node in five."""

    def node(each: NodeView) -> NodeView:
        if not each.devices or pick.random() < 0.8:
            return each
        device = each.devices[-1]
        return replace(each, foreign=((device.id, _part(pick, device)),))

    return tuple(replace(c, nodes=tuple(map(node, c.nodes))) for c in of)


def _part(pick: Random, of: DeviceView) -> Span:
    if of.mode is DeviceMode.MIG_STATIC:
        return pick.choice(of.slices).span
    if of.mode is DeviceMode.MIG_DYNAMIC:
        return pick.choice([Span(0, 1), Span(4, 8), Span(0, 8)])
    share = Span(0, ONE_MILLI // of.replicas)
    return WHOLE_DEVICE if of.shares is None else pick.choice([WHOLE_DEVICE, share])
