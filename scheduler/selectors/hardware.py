"""Clusters, nodes, devices and who holds which span, as pages show them.

Another tenant's work is a held span without a name: what the actor may not see never leaves here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import connection
from django.db.models import Count, Q, QuerySet, Sum

from clusters.models import (
    Cluster,
    ClusterState,
    Device,
    DeviceMode,
    DeviceSlice,
    ForeignSpan,
    Isolation,
    Node,
)
from clusters.origin import Origin
from clusters.port import UNKNOWN
from clusters.selectors import queue_state
from controlplane.kernel.errors import NotFound
from controlplane.kernel.queues import QueueState
from scheduler.core.lifecycle import State
from scheduler.core.node import mig
from scheduler.core.units import ONE_MILLI
from scheduler.models import PlacementSpan
from tenants import access
from tenants.access import Actor
from tenants.models import Project

LONGEST_MIG_AXIS = max(board.memory for board in mig.BOARDS)
"""For a cut device of a model that `mig` does not know."""
SILENT = frozenset({ClusterState.NEW, ClusterState.DEGRADED, ClusterState.LOST})


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """A cluster in figures. `silent` is True when it was not heard of lately (degraded, lost);
    `standing` is its state, or, of one that is active, its queue's while that is not open."""

    id: UUID
    name: str
    region: str
    state: str
    queue_state: str
    version: str
    simulated: bool
    seen_at: datetime | None
    last_error: str
    use_error: str
    left_out: Mapping[str, Mapping[str, object]]
    repair_drift: bool
    node_count: int
    ready_count: int
    device_count: int
    cpu_milli: int
    memory_mib: int

    @property
    def standing(self) -> str:
        closed = self.state == ClusterState.ACTIVE and self.queue_state != QueueState.OPEN
        return self.queue_state if closed else self.state

    @property
    def silent(self) -> bool:
        return self.state in SILENT


@dataclass(frozen=True, slots=True)
class SpanHeld:
    """[start, end) of a device. What is not the actor's to see is RUNNING, of nobody and
    nothing; what pods that are not Berth's hold is `foreign`, too."""

    start: int
    end: int
    state: str
    workload_id: UUID | None
    workload: str
    project: str
    tenant: str
    flavor: str
    foreign: bool = False


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
    """`isolation` is what keeps those apart who share one of its devices. `untold`: no label says
    what they are, how much memory they have, or which slices they are cut into. `origin` is as
    its labels tell it."""

    name: str
    state: str
    cpu_milli: int
    memory_mib: int
    devices: tuple[DeviceFacts, ...]
    origin: Origin
    isolation: Isolation = Isolation.HARDWARE
    untold: str = ""


def _state(node: Node) -> str:
    """What keeps work off it; "" for nothing."""
    if not node.ready:
        return "unreachable"
    if node.leaving:
        return "leaving"
    return "" if node.schedulable else "cordoned"


def axis(*, model: str, mode: str) -> int:
    """How long the axis is on which spans of such a device lie: thousandths of a whole device,
    memory slices of one that is cut."""
    if mode == DeviceMode.WHOLE:
        return ONE_MILLI
    board = mig.board(model=model)
    return board.memory if board else LONGEST_MIG_AXIS


def clusters(*, name: str | None = None) -> tuple[ClusterFacts, ...]:
    """All clusters, or the one of that name. Three queries. Raises NotFound for an unknown
    name."""
    which = Cluster.objects.annotate(queue_state=queue_state()).order_by("name")
    rows = list(which.filter(name=name) if name else which)
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
        ClusterFacts(
            id=row.id,
            name=row.name,
            region=row.region,
            state=row.state,
            queue_state=row.queue_state,
            version=row.version,
            simulated=row.simulated,
            seen_at=row.seen_at,
            last_error=row.last_error,
            use_error=row.use_error,
            left_out=row.left_out,
            repair_drift=row.repair_drift,
            node_count=nodes.get(row.id, none)["nodes"],
            ready_count=nodes.get(row.id, none)["ready"],
            device_count=devices.get(row.id, 0),
            cpu_milli=nodes.get(row.id, none)["cpu"],
            memory_mib=nodes.get(row.id, none)["memory"],
        )
        for row in rows
    )


def nodes(*, actor: Actor, cluster_id: UUID, node: str | None = None) -> tuple[NodeFacts, ...]:
    """The cluster's nodes by name with their devices, or the one of that name. Six queries.

    Raises NotFound for an unknown node.
    """
    # Subqueries and plain columns: a large cluster has thousands of devices.
    there = Node.objects.filter(cluster_id=cluster_id, gone_at__isnull=True)
    if node is not None:
        there = there.filter(name=node)
    found = list(there.order_by("name"))
    if node is not None and not found:
        raise NotFound("There is no such node.")
    slices = _slices(there)
    held = _held(actor=actor, there=there)
    by_node: dict[UUID, list[DeviceFacts]] = {}
    untold: dict[UUID, str] = {}
    single = {node.id for node in found if node.mig_single}
    columns = ("id", "node_id", "ordinal", "model", "mode", "usable", "uuid", "memory_mib")
    rows = Device.objects.filter(gone_at__isnull=True, node__in=there).order_by("ordinal")
    for id, on, ordinal, model, mode, usable, uuid, memory_mib in rows.values_list(*columns):
        if model.endswith(UNKNOWN):
            untold[on] = "model"
        elif not memory_mib and mode == DeviceMode.WHOLE:  # a slice's is in its profile's name
            untold[on] = "memory"
        elif on in single and id not in slices:
            untold[on] = "slices"
        device = DeviceFacts(
            id=id,
            ordinal=ordinal,
            model=model,
            mode=mode,
            axis=axis(model=model, mode=mode),
            healthy=usable,
            exact=bool(uuid),
            slices=tuple(slices.get(id, ())),
            held=tuple(sorted(held.get(id, ()), key=lambda one: one.start)),
        )
        by_node.setdefault(on, []).append(device)
    return tuple(
        NodeFacts(
            name=n.name,
            state=_state(n),
            cpu_milli=n.cpu_milli,
            memory_mib=n.memory_mib,
            devices=tuple(by_node.get(n.id, ())),
            origin=n.origin,
            isolation=Isolation(n.share_isolation or Isolation.HARDWARE),
            untold=untold.get(n.id, ""),
        )
        for n in found
    )


_HELD_NOW = """
SELECT coalesce(md5(string_agg(p.id::text || w.state, ',' ORDER BY p.id)), ''), c.inventory_rev
FROM clusters_cluster c
LEFT JOIN clusters_node n ON n.cluster_id = c.id
LEFT JOIN scheduler_placement p ON p.node_id = n.id AND p.released_at IS NULL
LEFT JOIN scheduler_workload w ON w.id = p.workload_id
WHERE c.id = %s GROUP BY c.id
"""


def revision(*, cluster_id: UUID) -> tuple[str, int]:
    """Changes with the cluster's hardware and with what it holds. One query, cheap at any size."""
    with connection.cursor() as cursor:
        cursor.execute(_HELD_NOW, [cluster_id])
        digest, inventory_rev = cursor.fetchone()
    return digest, inventory_rev


def owners(*, actor: Actor, by_tenant: bool) -> list[str]:
    """The names that spans of the actor's projects may carry, by name. One query."""
    field = "tenant__name" if by_tenant else "name"
    names = access.for_actor(Project.objects.all(), actor=actor).values_list(field, flat=True)
    return sorted(set(names))


def _slices(there: QuerySet[Node]) -> dict[UUID, list[Slice]]:
    """Device → its slices by start."""
    rows = DeviceSlice.objects.filter(gone_at__isnull=True, device__node__in=there)
    found: dict[UUID, list[Slice]] = {}
    for device, profile, span in rows.values_list("device_id", "profile", "span"):
        found.setdefault(device, []).append(Slice(profile, span.lower, span.upper))
    return {device: sorted(listed, key=lambda one: one.start) for device, listed in found.items()}


def _held(*, actor: Actor, there: QuerySet[Node]) -> dict[UUID, list[SpanHeld]]:
    """Device → its live spans, those of unseen projects without a name. Three queries."""
    seen = {
        project: (name, tenant)
        for project, name, tenant in access.for_actor(
            Project.objects.all(), actor=actor
        ).values_list("id", "name", "tenant__name")
    }
    rows = PlacementSpan.objects.filter(
        released_at__isnull=True, device__node__in=there
    ).values_list(
        "device_id",
        "span",
        "placement__workload__state",
        "placement__workload_id",
        "placement__workload__name",
        "placement__workload__project_id",
        "placement__flavor__name",
        "placement__attempt__unseen_since",
    )
    found: dict[UUID, list[SpanHeld]] = {}
    for device, span, state, workload, name, project, flavor, unseen in rows:
        if unseen:  # its workload is elsewhere by now, and this may run on
            state = State.RUNNING
        if project in seen:
            one = SpanHeld(span.lower, span.upper, state, workload, name, *seen[project], flavor)
        else:
            one = SpanHeld(span.lower, span.upper, State.RUNNING, None, "", "", "", "")
        found.setdefault(device, []).append(one)
    for device, span in ForeignSpan.objects.filter(device__node__in=there).values_list(
        "device_id", "span"
    ):
        one = SpanHeld(span.lower, span.upper, State.RUNNING, None, "", "", "", "", foreign=True)
        found.setdefault(device, []).append(one)
    return found
