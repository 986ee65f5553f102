"""Nodes that can come, as the core sees them."""

from collections.abc import Mapping, Sequence, Set
from uuid import UUID

from clusters import selectors, stock
from clusters.models import Device, NodePool
from clusters.origin import origin
from scheduler.core.fleet.node_pools import MOST_NODES
from scheduler.core.snapshot import (
    ComingView,
    DeviceMode,
    DeviceView,
    Isolation,
    NodeView,
)
from scheduler.core.units import ONE_MILLI, DeviceId, NodeId


def views() -> dict[str, tuple[ComingView, ...]]:
    """By cluster; pools of which nobody knows what a node has are left out. One query without
    pools; else two, three where a pool has had nodes."""
    pools = list(NodePool.objects.filter(gone_at=None).select_related("like").order_by("id"))
    devices = _devices([pool.like_id for pool in pools if pool.like_id])
    apart = selectors.capacities() if pools else frozenset()
    found: dict[str, tuple[ComingView, ...]] = {}
    for pool in pools:
        node = _node(pool, devices, apart)
        room = MOST_NODES if pool.room_count is None else pool.room_count
        if node is None or not pool.making_count + room:
            continue
        view = ComingView(
            id=str(pool.id),
            name=pool.name,
            node=node,
            count=pool.making_count + room,
            making_count=pool.making_count,
            start_s=pool.start_p50_s,
        )
        cluster = str(pool.cluster_id)
        found[cluster] = (*found.get(cluster, ()), view)
    return found


def _node(
    pool: NodePool, devices: Mapping[UUID, Sequence[Device]], apart: Set[tuple[str, str]]
) -> NodeView | None:
    """One as the pool's are expected to be; its id is the pool's. `apart` are the models and types
    that have stocks of their own."""
    like = pool.like
    if like is not None:
        shares = Isolation(like.share_isolation) if like.share_isolation else None
        replicas = like.share_replicas if shares else ONE_MILLI
        views = tuple(_device(one, shares, replicas) for one in devices.get(like.pk, ()))
        return NodeView(NodeId(str(pool.id)), pool.name, like.cpu_milli, like.memory_mib, views)
    gpus, cpu_milli, memory_mib = pool.node_gpus, pool.node_cpu_milli, pool.node_memory_mib
    if gpus is None or cpu_milli is None or memory_mib is None:
        return None
    capacity = origin(pool.node_labels).capacity  # of labels that they are sure to have
    apart_too = (pool.node_model, capacity) in apart
    of = stock.name(model=pool.node_model, capacity=capacity if apart_too else "")
    whole = (DeviceView(DeviceId(f"{pool.id}/{n}"), n, of) for n in range(gpus))
    return NodeView(NodeId(str(pool.id)), pool.name, cpu_milli, memory_mib, tuple(whole))


def _device(one: Device, shares: Isolation | None, replicas: int) -> DeviceView:
    """A new one comes whole: how the old was cut into slices was done to that node."""
    mode = DeviceMode(one.mode)
    return DeviceView(
        DeviceId(str(one.pk)),
        one.ordinal,
        one.stock,
        DeviceMode.WHOLE if mode is DeviceMode.MIG_STATIC else mode,
        (),
        shares,
        replicas=replicas,
    )


def _devices(nodes: Sequence[UUID]) -> dict[UUID, list[Device]]:
    """Those that each of the nodes has, or had."""
    found: dict[UUID, list[Device]] = {}
    if nodes:
        rows = Device.objects.filter(node__in=nodes, gone_at=None)
        for device in rows.order_by("ordinal"):
            found.setdefault(device.node_id, []).append(device)
    return found
