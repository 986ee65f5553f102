"""Which nodes can be cut anew: one rule, for who plans a recut and for who proposes one."""

from collections.abc import Collection, Iterator
from itertools import groupby
from uuid import UUID

from django.db.models import Exists, OuterRef

from clusters import stock
from clusters.models import Device, DeviceMode, Node
from scheduler.core.node import mig
from scheduler.core.units import NodeId


def refusal(*, node: Node, devices: Collection[Device]) -> str:
    """Why the node can't be cut anew, whatever runs there and however it would be cut; "" where it
    can. `devices` are those that it has."""
    models = sorted({device.model for device in devices})
    if node.gone_at is not None or not devices:
        return f"{node.name} has no GPUs."
    if any(device.mode == DeviceMode.MIG_DYNAMIC for device in devices):
        return f"{node.name} makes its slices on demand: nothing is to be cut."
    if node.device_driver:
        return (
            f"{node.device_driver} publishes the GPUs of {node.name} as they are: ask it for"
            " slices."
        )
    if node.mig_single or node.labels.get("nvidia.com/mig.strategy", "mixed") != "mixed":
        return f"The MIG strategy of {node.name} has to be mixed."
    if len(models) > 1 or mig.board(model=models[0]) is None:
        return f"{node.name} has GPUs without MIG, or of several models: {', '.join(models)}."
    return ""


def ids(*, cluster_id: UUID | None = None) -> frozenset[NodeId]:
    """Of the nodes with devices in slices that can be cut anew, of that cluster or of all. One
    query."""
    return frozenset(NodeId(str(node.id)) for node, _ in _cuttable(cluster_id))


def clusters() -> dict[str, set[str]]:
    """Stock → the clusters, by name, in which usable devices of it are cut into slices, on nodes
    that can be cut anew. One query."""
    found: dict[str, set[str]] = {}
    for node, devices in _cuttable():
        for device in devices:
            if device.mode == DeviceMode.MIG_STATIC and device.usable:
                of = stock.name(model=device.model, capacity=device.capacity)
                found.setdefault(of, set()).add(node.cluster.name)
    return found


def _cuttable(cluster_id: UUID | None = None) -> Iterator[tuple[Node, list[Device]]]:
    static = Device.objects.filter(
        node=OuterRef("node"), mode=DeviceMode.MIG_STATIC, gone_at__isnull=True
    )
    there = Device.objects.filter(Exists(static), gone_at__isnull=True, node__gone_at__isnull=True)
    if cluster_id is not None:
        there = there.filter(node__cluster=cluster_id)
    rows = there.select_related("node__cluster").order_by("node_id", "ordinal")
    for node, devices in groupby(rows, key=lambda device: device.node):
        listed = list(devices)
        if not refusal(node=node, devices=listed):
            yield node, listed
