"""The fleet as the core sees it: flavors, clusters with their hardware, queues with their
quotas."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from django.db import connection

from scheduler.core.snapshot import (
    ClusterView,
    CohortView,
    DeviceMode,
    DeviceView,
    FlavorKind,
    FlavorView,
    Isolation,
    NodeView,
    QueueView,
    QuotaView,
    SliceView,
)
from scheduler.core.units import (
    ClusterId,
    CohortId,
    DeviceId,
    FlavorId,
    NodeId,
    ProjectId,
    Span,
)

type Row = tuple[Any, ...]  # Any: a database row of mixed columns


def rows(sql: str, parameters: Sequence[Any] = ()) -> list[Row]:  # Any: what psycopg adapts
    """Plain tuples: a snapshot has tens of thousands of rows, too many for model instances."""
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        found: list[Row] = cursor.fetchall()
    return found


def flavors() -> tuple[FlavorView, ...]:
    return tuple(
        FlavorView(
            FlavorId(id), name, FlavorKind(kind), model, profile, Isolation(isolation)
        )
        for id, name, kind, model, profile, isolation in rows(
            "SELECT id::text, name, kind, model, profile, isolation FROM clusters_flavor"
        )
    )  # fmt: skip


_QUEUES = """
SELECT p.id::text, p.tenant_id::text, p.weight, q.flavor_id::text, q.nominal_milli,
       q.borrowing_limit_milli, q.lending_limit_milli
FROM tenants_project p LEFT JOIN tenants_quota q ON q.project_id = p.id
ORDER BY p.id
"""


def queues() -> tuple[QueueView, ...]:
    found: dict[str, QueueView] = {}
    quotas: dict[str, list[QuotaView]] = {}
    for project, tenant, weight, flavor, nominal, borrowing, lending in rows(_QUEUES):
        if project not in found:
            found[project] = QueueView(ProjectId(project), CohortId(tenant), weight)
            quotas[project] = []
        if flavor is not None:
            quotas[project].append(QuotaView(FlavorId(flavor), nominal, borrowing, lending))
    return tuple(
        QueueView(queue.project, queue.cohort, queue.weight, tuple(quotas[id]))
        for id, queue in found.items()
    )


def cohorts() -> tuple[CohortView, ...]:
    """Every tenant, with or without projects."""
    return tuple(
        CohortView(CohortId(id), CohortId(parent) if parent else None, weight)
        for id, parent, weight in rows(
            "SELECT id::text, parent_id::text, weight FROM tenants_tenant"
        )
    )


# Hardware changes seldom and is the larger part of a snapshot, so a worker keeps the last few,
# keyed by each cluster's inventory revision.
_inventories: OrderedDict[tuple[Row, ...], tuple[ClusterView, ...]] = OrderedDict()


def clusters() -> tuple[ClusterView, ...]:
    """Every cluster with its nodes and devices."""
    key = tuple(
        rows("SELECT id::text, name, state, inventory_rev FROM clusters_cluster ORDER BY id")
    )
    if key not in _inventories:
        _inventories[key] = _read_inventory(key)
        while len(_inventories) > 2:
            _inventories.popitem(last=False)
    return _inventories[key]


_NODES = """
SELECT id::text, cluster_id::text, name, greatest(cpu_milli - foreign_cpu_milli, 0),
       greatest(memory_mib - foreign_memory_mib, 0), ready AND schedulable, share_isolation
FROM clusters_node WHERE gone_at IS NULL
"""
_DEVICES = """
SELECT d.id::text, d.node_id::text, d.ordinal, d.model, d.mode, d.usable
FROM clusters_device d JOIN clusters_node n ON n.id = d.node_id
WHERE d.gone_at IS NULL AND n.gone_at IS NULL ORDER BY d.node_id, d.ordinal
"""
_SLICES = """
SELECT device_id::text, profile, lower(span), upper(span) FROM clusters_deviceslice
WHERE gone_at IS NULL
"""


def _read_inventory(key: tuple[Row, ...]) -> tuple[ClusterView, ...]:
    slices: dict[str, list[SliceView]] = {}
    for device, profile, start, end in rows(_SLICES):
        slices.setdefault(device, []).append(SliceView(profile, Span(start, end)))
    nodes = rows(_NODES)
    shares = {row[0]: Isolation(row[6]) if row[6] else None for row in nodes}
    devices: dict[str, list[DeviceView]] = {}
    for id, node, ordinal, model, mode, usable in rows(_DEVICES):
        devices.setdefault(node, []).append(
            DeviceView(
                DeviceId(id),
                ordinal,
                model,
                DeviceMode(mode),
                tuple(slices.get(id, ())),
                shares[node],
                usable,
            )
        )
    by_cluster: dict[str, list[NodeView]] = {}
    for id, cluster, name, cpu_milli, memory_mib, usable, _ in nodes:
        by_cluster.setdefault(cluster, []).append(
            NodeView(
                NodeId(id), name, cpu_milli, memory_mib, tuple(devices.get(id, ())), usable
            )
        )  # fmt: skip
    return tuple(
        ClusterView(ClusterId(id), name, tuple(by_cluster.get(id, ())), usable=state == "active")
        for id, name, state, _ in key
    )
