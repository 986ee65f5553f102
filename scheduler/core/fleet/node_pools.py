"""The nodes of a node pool that are not there, as nodes."""

from dataclasses import replace
from functools import lru_cache

from scheduler.core.snapshot import ComingView, NodeView
from scheduler.core.units import DeviceId, NodeId

MOST_NODES = 256
"""Of one pool that a plan thinks of at once; who lacks more waits for none. Twenty pools of so
many cost a plan 90 ms, of 64 each 20 ms."""


@lru_cache(maxsize=256)
def nodes_of(pool: ComingView) -> tuple[NodeView, ...]:
    """Those that can come, and first those that are being made. Of the same pool they are the
    same objects."""
    return tuple(_nth(pool, n) for n in range(min(pool.count, MOST_NODES)))


def _nth(pool: ComingView, n: int) -> NodeView:
    """One like the pool's, with nothing on it; nobody knows where it stands."""
    devices = (
        replace(device, id=DeviceId(f"{pool.id}+{n}/{device.ordinal}"), usable=True)
        for device in pool.node.devices
    )
    return replace(
        pool.node,
        id=NodeId(f"{pool.id}+{n}"),
        name=f"{pool.name}+{n:03}",
        devices=tuple(devices),
        usable=True,
        topology=(),
        foreign=(),
    )
