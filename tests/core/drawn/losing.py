"""Fleets in which some nodes have lost the last of their count tokens, or of their slices."""

from dataclasses import replace
from random import Random

from scheduler.core.snapshot import DeviceMode, DeviceView, NodeView, Snapshot


def counted(of: NodeView) -> NodeView:
    return replace(of, counted=True)


def losing(pick: Random, of: Snapshot) -> Snapshot:
    """Half of the nodes are counted; of those half have lost something, whoever holds it."""

    def node(each: NodeView) -> NodeView:
        if not each.devices or pick.random() < 0.5:
            return each
        each = counted(each)
        if pick.random() < 0.5:
            return each
        *others, last = each.devices
        if last.mode is DeviceMode.MIG_STATIC:
            return replace(each, devices=(*others, _without_some(pick, last)))
        foreign = tuple(part for part in each.foreign if part[0] != last.id)
        return replace(each, devices=tuple(others), foreign=foreign)

    clusters = (replace(c, nodes=tuple(map(node, c.nodes))) for c in of.clusters)
    return replace(of, clusters=tuple(clusters))


def _without_some(pick: Random, of: DeviceView) -> DeviceView:
    left = pick.sample(of.slices, len(of.slices) // 2)
    return replace(of, slices=tuple(piece for piece in of.slices if piece in left))
