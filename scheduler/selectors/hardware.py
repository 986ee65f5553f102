"""Clusters, nodes, devices and who holds which span, as pages show them.

Another tenant's work is a held span without a name: what the actor may not see never leaves here.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Count, Prefetch, Q, Sum

from clusters.models import Cluster, ClusterState, Device, DeviceMode, DeviceSlice, Node
from controlplane.kernel.errors import NotFound
from scheduler.core.lifecycle import State
from scheduler.core.units import ONE_MILLI
from scheduler.models import PlacementSpan
from tenants import access
from tenants.access import Actor
from tenants.models import Project

MIG_AXIS = 8
SILENT = frozenset({ClusterState.NEW, ClusterState.DEGRADED, ClusterState.LOST})


@dataclass(frozen=True, slots=True)
class Facts:
    """A cluster in figures. `silent` is True when it was not heard of lately (degraded, lost)."""

    id: UUID
    name: str
    region: str
    state: str
    version: str
    simulated: bool
    seen_at: datetime | None
    last_error: str
    node_count: int
    ready_count: int
    device_count: int
    cpu_milli: int
    memory_mib: int

    @property
    def silent(self) -> bool:
        return self.state in SILENT


@dataclass(frozen=True, slots=True)
class SpanHeld:
    """[start, end) of a device. What is not the actor's to see is RUNNING, of nobody and
    nothing."""

    start: int
    end: int
    state: str
    workload_id: UUID | None
    workload: str
    project: str
    tenant: str
    flavor: str


@dataclass(frozen=True, slots=True)
class Slice:
    profile: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """`exact` is False for a count token: the kubelet picks the physical device."""

    id: UUID
    ordinal: int
    model: str
    mode: str
    axis: int
    healthy: bool
    exact: bool
    slices: tuple[Slice, ...]
    held: tuple[SpanHeld, ...]


@dataclass(frozen=True, slots=True)
class NodeFacts:
    name: str
    state: str
    cpu_milli: int
    memory_mib: int
    devices: tuple[DeviceFacts, ...]


def clusters(*, name: str | None = None) -> tuple[Facts, ...]:
    """All clusters, or the one of that name. Three queries. Raises NotFound for an unknown
    name."""
    rows = list(Cluster.objects.filter(**({"name": name} if name else {})).order_by("name"))
    if name and not rows:
        raise NotFound("There is no such cluster.")
    ids = [row.id for row in rows]
    nodes = {
        row["cluster_id"]: row
        for row in Node.objects.filter(cluster_id__in=ids, gone_at__isnull=True)
        .values("cluster_id")
        .annotate(
            nodes=Count("id"),
            ready=Count("id", filter=Q(ready=True, schedulable=True)),
            cpu=Sum("cpu_milli"),
            memory=Sum("memory_mib"),
        )
    }
    devices = dict(
        Device.objects.filter(
            node__cluster_id__in=ids, node__gone_at__isnull=True, gone_at__isnull=True
        )
        .values_list("node__cluster_id")
        .annotate(Count("id"))
    )
    none = {"nodes": 0, "ready": 0, "cpu": 0, "memory": 0}
    return tuple(
        Facts(
            id=row.id,
            name=row.name,
            region=row.region,
            state=row.state,
            version=row.version,
            simulated=row.simulated,
            seen_at=row.seen_at,
            last_error=row.last_error,
            node_count=nodes.get(row.id, none)["nodes"],
            ready_count=nodes.get(row.id, none)["ready"],
            device_count=devices.get(row.id, 0),
            cpu_milli=nodes.get(row.id, none)["cpu"],
            memory_mib=nodes.get(row.id, none)["memory"],
        )
        for row in rows
    )


def nodes(*, actor: Actor, cluster_id: UUID, node: str | None = None) -> tuple[NodeFacts, ...]:
    """The cluster's nodes by name with their devices, or the one of that name. Five queries.

    Raises NotFound for an unknown node.
    """
    rows = Node.objects.filter(cluster_id=cluster_id, gone_at__isnull=True)
    if node is not None:
        rows = rows.filter(name=node)
    found = list(
        rows.order_by("name").only("id", "name", "ready", "schedulable", "cpu_milli", "memory_mib")
    )
    if node is not None and not found:
        raise NotFound("There is no such node.")
    devices = list(
        Device.objects.filter(node_id__in=[n.id for n in found], gone_at__isnull=True)
        .prefetch_related(
            Prefetch("slices", queryset=DeviceSlice.objects.filter(gone_at__isnull=True))
        )
        .order_by("ordinal")
    )
    held = _held(actor=actor, devices=[device.id for device in devices])
    by_node: dict[UUID, list[DeviceFacts]] = {}
    for device in devices:
        by_node.setdefault(device.node_id, []).append(_device(device, held.get(device.id, [])))
    return tuple(
        NodeFacts(
            name=n.name,
            state="" if n.ready and n.schedulable else "cordoned" if n.ready else "unreachable",
            cpu_milli=n.cpu_milli,
            memory_mib=n.memory_mib,
            devices=tuple(by_node.get(n.id, ())),
        )
        for n in found
    )


def owners(*, actor: Actor, by_tenant: bool) -> list[str]:
    """The names that spans of the actor's projects may carry, by name. One query."""
    field = "tenant__name" if by_tenant else "name"
    names = access.for_actor(Project.objects.all(), actor=actor).values_list(field, flat=True)
    return sorted(set(names))


def _device(device: Device, held: Iterable[SpanHeld]) -> DeviceFacts:
    slices = (Slice(row.profile, row.span.lower, row.span.upper) for row in device.slices.all())
    return DeviceFacts(
        id=device.id,
        ordinal=device.ordinal,
        model=device.model,
        mode=device.mode,
        axis=ONE_MILLI if device.mode == DeviceMode.WHOLE else MIG_AXIS,
        healthy=device.usable,
        exact=bool(device.uuid),
        slices=tuple(sorted(slices, key=lambda one: one.start)),
        held=tuple(sorted(held, key=lambda one: one.start)),
    )


def _held(*, actor: Actor, devices: list[UUID]) -> dict[UUID, list[SpanHeld]]:
    """Device → its live spans, those of unseen projects without a name. Two queries."""
    seen = {
        project: (name, tenant)
        for project, name, tenant in access.for_actor(
            Project.objects.all(), actor=actor
        ).values_list("id", "name", "tenant__name")
    }
    rows = PlacementSpan.objects.filter(
        device_id__in=devices, released_at__isnull=True
    ).values_list(
        "device_id",
        "span",
        "placement__workload__state",
        "placement__workload_id",
        "placement__workload__name",
        "placement__workload__project_id",
        "placement__flavor__name",
    )
    found: dict[UUID, list[SpanHeld]] = {}
    for device, span, state, workload, name, project, flavor in rows:
        if project in seen:
            one = SpanHeld(span.lower, span.upper, state, workload, name, *seen[project], flavor)
        else:
            one = SpanHeld(span.lower, span.upper, State.RUNNING, None, "", "", "", "")
        found.setdefault(device, []).append(one)
    return found
