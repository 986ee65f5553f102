"""The fleet as the core sees it: flavors, clusters with their hardware, queues with their
quotas."""

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from math import ceil, floor
from typing import Any
from uuid import UUID

from django.conf import settings

from clusters import stock
from controlplane.kernel import statements
from scheduler.core.snapshot import (
    CapsView,
    ClusterView,
    CohortView,
    DeviceMode,
    DeviceView,
    FlavorKind,
    FlavorView,
    Isolation,
    NodeView,
    PastView,
    Placing,
    QueueView,
    QuotaView,
    ReservationView,
    SliceView,
)
from scheduler.core.units import (
    ONE_MILLI,
    ClusterId,
    CohortId,
    DeviceId,
    FlavorId,
    NodeId,
    ProjectId,
    Span,
)
from scheduler.selectors import coming
from tenants.models import NEVER, Reservation
from tenants.selectors import idle_limits, run_times
from tenants.selectors import queues as tenant_queues
from tenants.selectors.idle_limits import IdleLimit
from tenants.selectors.past import Past

type Row = tuple[Any, ...]  # Any: a database row of mixed columns

SUBMITTER = """CASE WHEN t.user_max_running IS NULL AND t.user_max_gpus_milli IS NULL THEN ''
            ELSE w.submitted_by_id::text END"""
"""Of a workload w in a project t: whose it is, where the project has caps of users."""


def rows(
    sql: str,
    parameters: Sequence[Any] | Mapping[str, Any] = (),  # Any: what psycopg adapts
) -> list[Row]:
    """Plain tuples: a snapshot has tens of thousands of rows, too many for model instances."""
    with statements.cursor() as cursor:
        cursor.execute(sql, parameters)
        found: list[Row] = cursor.fetchall()
    return found


def flavors() -> tuple[FlavorView, ...]:
    return tuple(
        FlavorView(
            FlavorId(id), name, FlavorKind(kind), of, profile, Isolation(isolation),
            Placing(placing), memory_mib,
        )
        for id, name, kind, of, profile, isolation, placing, memory_mib in rows(
            f"SELECT id::text, name, kind, {stock.sql('f')}, profile,"  # noqa: S608  # a constant
            " isolation, f.placing, memory_mib FROM clusters_flavor f"
        )
    )  # fmt: skip


_QUEUES = (
    "WITH RECURSIVE "  # noqa: S608  # constants
    + run_times.IN_FORCE
    + ", "
    + idle_limits.IN_FORCE
    + ", "
    + tenant_queues.CLOSED
    + """
SELECT p.id::text, p.tenant_id::text, p.weight, q.flavor_id::text, q.nominal_milli,
       q.borrowing_limit_milli, q.lending_limit_milli,
       ceil(extract(epoch FROM q.enforce_at))::bigint,
       CASE WHEN p.queue_state = 'open' THEN '{}' ELSE ARRAY['project ' || p.name] END
       || CASE WHEN p.quota_frozen_at IS NULL THEN '{}'
               ELSE ARRAY['the quota of project ' || p.name || ', which nobody confirmed'] END
       || array(SELECT 'tenant ' || t.name FROM unnest(c.above) WITH ORDINALITY AS up (id, nth)
                JOIN tenants_tenant t ON t.id = up.id ORDER BY up.nth),
       p.max_running, p.user_max_running, p.user_max_gpus_milli,
       g.seconds, i.timeout_s, i.warning_s, p.least_isolation
FROM tenants_project p LEFT JOIN tenants_quota q ON q.project_id = p.id
LEFT JOIN granted g ON g.id = p.id LEFT JOIN idle_limit i ON i.id = p.id
LEFT JOIN closed c ON c.id = p.tenant_id
ORDER BY p.id
"""
)


def queues(*, past: Past | None = None) -> tuple[QueueView, ...]:
    """Every project. Without a `past`, as if nobody had used anything yet."""
    pasts: dict[str, list[PastView]] = {}
    for (project, flavor), milli_s in (past or {}).items():
        pasts.setdefault(project, []).append(PastView(FlavorId(flavor), milli_s))
    found: dict[str, QueueView] = {}
    quotas: dict[str, list[QuotaView]] = {}
    for project, tenant, weight, flavor, *told in rows(_QUEUES):
        *amounts, held_by, running, by_user, gpus, run_s, idle_s, warning_s, isolation = told
        if project not in found:
            caps = CapsView(running, by_user, gpus)
            limit = idle_limits.of_fleet() if idle_s is None else IdleLimit(idle_s, warning_s)
            found[project] = QueueView(
                ProjectId(project),
                CohortId(tenant),
                weight,
                past=tuple(pasts.get(project, ())),
                held_by=tuple(held_by),
                caps=None if caps == CapsView() else caps,
                min_run_time_s=run_times.fleet_s() if run_s is None else run_s,
                idle_timeout_s=limit.timeout_s or None,
                idle_warning_s=limit.warning_s,
                least_isolation=Isolation(isolation),
            )
            quotas[project] = []
        if flavor is not None:
            quotas[project].append(QuotaView(FlavorId(flavor), *amounts))
    return tuple(replace(queue, quotas=tuple(quotas[id])) for id, queue in found.items())


_COHORTS = """
SELECT t.id::text, t.parent_id::text, t.weight, q.flavor_id::text, q.nominal_milli,
       q.borrowing_limit_milli, q.lending_limit_milli,
       ceil(extract(epoch FROM q.enforce_at))::bigint
FROM tenants_tenant t LEFT JOIN tenants_tenantquota q ON q.tenant_id = t.id
"""


AHEAD = timedelta(days=28)
"""How far ahead windows of weekly reservations count; those of others do however far they are."""


def reservations(*, at: datetime) -> tuple[ReservationView, ...]:
    """Those windows that keep something at `at` or later."""
    horizon_s = settings.BERTH_RESERVATION_HORIZON_S
    found = Reservation.objects.filter(Reservation.lasts_beyond(at), cancelled_at=None)
    return tuple(
        ReservationView(
            ProjectId(str(row.project_id)) if row.project_id else None,
            FlavorId(str(row.flavor_id)),
            row.amount_milli,
            floor(start.timestamp()),
            ceil(end.timestamp()),
            floor(start.timestamp()) - horizon_s,
            CohortId(str(row.tenant_id)) if row.tenant_id else None,
        )
        for row in found
        for start, end in row.windows(after=at, before=at + AHEAD if row.zone else NEVER)
    )


def cohorts() -> tuple[CohortView, ...]:
    """Every tenant, with or without projects."""
    found: dict[str, CohortView] = {}
    for id, parent, weight, flavor, *amounts in rows(_COHORTS):
        quotas = found[id].quotas if id in found else ()
        if flavor is not None:
            quotas = (*quotas, QuotaView(FlavorId(flavor), *amounts))
        found[id] = CohortView(CohortId(id), CohortId(parent) if parent else None, weight, quotas)
    return tuple(found.values())


ALL = ""
"""The model of a queue that is the whole cluster's."""

# Hardware changes seldom and is the larger part of a snapshot, so a worker keeps the last few,
# keyed by each cluster's inventory revision and by what of it is held.
_inventories: OrderedDict[tuple[Row, ...], tuple[ClusterView, ...]] = OrderedDict()
# Of the inventory read last: a node that has not changed stays the same object.
_nodes: dict[str, NodeView] = {}


def levels() -> tuple[str, ...]:
    """The levels of the topology by name, the outermost first."""
    return tuple(settings.BERTH_TOPOLOGY_LEVELS)


def clusters() -> tuple[ClusterView, ...]:
    """Every cluster with its nodes and devices."""
    key = tuple((*row, tuple(held)) for *row, held in rows(_CLUSTERS))
    found = _inventories.get(key)  # other threads may take it out meanwhile
    if found is None:
        found = _inventories[key] = _read_inventory(key)
        while len(_inventories) > 2:
            _inventories.popitem(last=False)
    return found


IN_VAIN = 3
"""Tries of a stop. What a cluster that is heard refuses that often may be refused for ever, and
closes it to nobody: it is told on its page, and what is held there stays so."""

# A cluster that was lost takes nothing before what was started elsewhere is told to stop there.
_CLUSTERS = f"""
SELECT c.id::text, c.name, c.state = 'active' AND NOT EXISTS (
           SELECT FROM scheduler_attempt a JOIN scheduler_operation o ON o.attempt_id = a.id
           WHERE a.cluster_id = c.id AND a.unseen_since IS NOT NULL AND o.done_at IS NULL
             AND o.failures < {IN_VAIN}),
       c.inventory_rev,
       array(SELECT q.model FROM clusters_hardwarequeue q
             WHERE q.cluster_id = c.id AND q.queue_state <> 'open' ORDER BY q.model)
FROM clusters_cluster c ORDER BY c.id
"""  # noqa: S608  # a constant
_AMONG = "(%(nodes)s::uuid[] IS NULL OR n.id = ANY(%(nodes)s::uuid[]))"
_NODES = f"""
SELECT id::text, cluster_id::text, name, greatest(cpu_milli - foreign_cpu_milli, 0),
       greatest(memory_mib - foreign_memory_mib, 0),
       ready AND schedulable AND NOT EXISTS (
           SELECT FROM scheduler_recut r
           WHERE r.node_id = n.id AND r.ended_at IS NULL AND r.state <> 'planned'),
       share_isolation,
       share_replicas,
       device_driver = '',
       array(SELECT coalesce(labels ->> label, '')
             FROM unnest(%(levels)s::text[]) WITH ORDINALITY AS level(label, nth) ORDER BY nth)
FROM clusters_node n WHERE gone_at IS NULL AND {_AMONG} ORDER BY id
"""  # noqa: S608  # a constant
_DEVICES = f"""
SELECT d.id::text, d.node_id::text, n.cluster_id::text, d.ordinal, {stock.sql("d")},
       d.mode, d.usable
FROM clusters_device d JOIN clusters_node n ON n.id = d.node_id
WHERE d.gone_at IS NULL AND n.gone_at IS NULL AND {_AMONG} ORDER BY d.node_id, d.ordinal
"""  # noqa: S608  # a constant
_SLICES = f"""
SELECT s.device_id::text, s.profile, lower(s.span), upper(s.span)
FROM clusters_deviceslice s JOIN clusters_device d ON d.id = s.device_id
JOIN clusters_node n ON n.id = d.node_id
WHERE s.gone_at IS NULL AND {_AMONG}
"""  # noqa: S608  # a constant
_FOREIGN = f"""
SELECT d.node_id::text, d.id::text, lower(f.span), upper(f.span)
FROM clusters_foreignspan f JOIN clusters_device d ON d.id = f.device_id
JOIN clusters_node n ON n.id = d.node_id
WHERE d.gone_at IS NULL AND {_AMONG} ORDER BY d.ordinal, f.span
"""  # noqa: S608  # a constant


def nodes(ids: Sequence[UUID]) -> tuple[NodeView, ...]:
    """Those of them that are there, as if no queue were held."""
    return tuple(view for _, view in _read_nodes({}, ids))


def _read_inventory(key: tuple[Row, ...]) -> tuple[ClusterView, ...]:
    global _nodes
    by_cluster: dict[str, list[NodeView]] = {}
    known: dict[str, NodeView] = {}
    # From the key: a queue may be held, or opened, between two statements.
    for cluster, view in _read_nodes({cluster: held for cluster, *_, held in key}):
        before = _nodes.get(view.id)
        known[view.id] = before if before == view else view
        by_cluster.setdefault(cluster, []).append(known[view.id])
    _nodes = known
    can_come = coming.views()
    return tuple(
        ClusterView(
            ClusterId(id),
            name,
            tuple(by_cluster.get(id, ())),
            usable=active and ALL not in held,
            held=active and ALL in held,
            held_models=tuple(model for model in held if model != ALL),
            coming=can_come.get(id, ()),
        )
        for id, name, active, _, held in key
    )


def _read_nodes(
    held_models: Mapping[str, Sequence[str]], ids: Sequence[UUID] | None = None
) -> Iterator[tuple[str, NodeView]]:
    """Each with its cluster's id, where no device of `held_models` is usable; of `ids` alone
    where they are given."""
    among = {"nodes": None if ids is None else list(ids)}
    slices: dict[str, list[SliceView]] = {}
    for device, profile, start, end in rows(_SLICES, among):
        slices.setdefault(device, []).append(SliceView(profile, Span(start, end)))
    foreign: dict[str, list[tuple[DeviceId, Span]]] = {}
    for node, device, start, end in rows(_FOREIGN, among):
        foreign.setdefault(node, []).append((DeviceId(device), Span(start, end)))
    levels = list(settings.BERTH_TOPOLOGY_LEVELS.values())
    found = rows(_NODES, {**among, "levels": levels})
    shares = {row[0]: (Isolation(row[6]), row[7]) for row in found if row[6]}
    devices: dict[str, list[DeviceView]] = {}
    for id, node, cluster, ordinal, of, mode, usable in rows(_DEVICES, among):
        isolation, replicas = shares.get(node, (None, ONE_MILLI))
        devices.setdefault(node, []).append(
            DeviceView(
                DeviceId(id),
                ordinal,
                of,
                DeviceMode(mode),
                tuple(slices.get(id, ())),
                isolation,
                usable and of not in held_models.get(cluster, ()),
                replicas,
            )
        )
    for id, cluster, name, cpu_milli, memory_mib, usable, *_, counted, topology in found:
        yield (
            cluster,
            NodeView(
                NodeId(id), name, cpu_milli, memory_mib, tuple(devices.get(id, ())), usable,
                tuple(topology), tuple(foreign.get(id, ())), counted,
            ),
        )  # fmt: skip
