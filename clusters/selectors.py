"""Reading hardware. It belongs to no tenant: everybody signed in may know what exists, not who
uses it."""

from dataclasses import dataclass
from uuid import UUID

from django.db.models import Count, Exists, OuterRef, Prefetch, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce

from clusters.models import (
    Cluster,
    ClusterCredential,
    ClusterProbe,
    Device,
    DeviceSlice,
    Flavor,
    FlavorKind,
    HardwareQueue,
    Node,
)
from controlplane.kernel.errors import NotFound
from controlplane.kernel.queues import QueueState

_PRESENT = Q(gone_at__isnull=True)
_KINDS = (FlavorKind.WHOLE, FlavorKind.MIG, FlavorKind.SHARE, FlavorKind.CPU)


def queue_state() -> Coalesce:
    """Of a cluster, in a query of clusters; those of its pools are rows of their own."""
    own = HardwareQueue.objects.filter(cluster=OuterRef("pk"), model="")
    return Coalesce(Subquery(own.values("queue_state")), Value(QueueState.OPEN.value))


def closed_queues(*, cluster_id: UUID) -> tuple[HardwareQueue, ...]:
    """Those of the cluster and its pools that are not open, the cluster's first. One query."""
    rows = HardwareQueue.objects.filter(cluster=cluster_id).exclude(queue_state=QueueState.OPEN)
    return tuple(rows.select_related("cluster").order_by("model"))


def queues(*, cluster: Cluster) -> tuple[HardwareQueue, ...]:
    """That of the cluster, then those of its pools by model; some are no rows yet. Two queries."""
    found = {row.model: row for row in cluster.queues.select_related("cluster")}
    there = Device.objects.filter(_PRESENT, node__cluster=cluster, node__gone_at__isnull=True)
    models = {"", *found, *there.values_list("model", flat=True).distinct()}
    return tuple(
        found.get(model) or HardwareQueue(cluster=cluster, model=model) for model in sorted(models)
    )


def clusters() -> QuerySet[Cluster]:
    """Every cluster with its credential and `queue_state`, and `node_count` and `device_count` of
    what is there; order them by id."""
    nodes = Q(nodes__gone_at__isnull=True)
    return Cluster.objects.select_related("credential").annotate(
        queue_state=queue_state(),
        node_count=Count("nodes", filter=nodes, distinct=True),
        device_count=Count(
            "nodes__devices", filter=nodes & Q(nodes__devices__gone_at__isnull=True), distinct=True
        ),
    )


def cluster(*, id: UUID | None = None, name: str | None = None) -> Cluster:
    """The one of that id, or name, and no more than its row. Raises NotFound."""
    return _one(Cluster.objects.all(), id, name)


def counted_cluster(*, id: UUID | None = None, name: str | None = None) -> Cluster:
    """The same as `clusters` gives it, which counts all that it has. Raises NotFound."""
    return _one(clusters(), id, name)


def _one(rows: QuerySet[Cluster], id: UUID | None, name: str | None) -> Cluster:
    found = rows.filter(Q(id=id) if name is None else Q(name=name)).first()
    if found is None:
        raise NotFound("There is no such cluster.")
    return found


def probes(*, cluster: Cluster) -> QuerySet[ClusterProbe]:
    """Those of the cluster; the newest has the largest id."""
    return ClusterProbe.objects.filter(cluster=cluster)


def probe(*, cluster: Cluster, id: UUID) -> ClusterProbe:
    """Raises NotFound."""
    found = probes(cluster=cluster).filter(id=id).first()
    if found is None:
        raise NotFound("There is no such probe of the cluster.")
    return found


@dataclass(frozen=True, slots=True)
class Connection:
    """How Berth signs in to a cluster, None before a credential is stored, and the newest probe
    that has ended, None before one has."""

    credential: ClusterCredential | None = None
    probe: ClusterProbe | None = None


def connections() -> dict[UUID, Connection]:
    """Of each cluster that has a credential or was probed. Two queries."""
    ended = ClusterProbe.objects.filter(ended_at__isnull=False)
    newest = ended.order_by("cluster", "-id").distinct("cluster")
    by_cluster = {probe.cluster_id: probe for probe in newest}
    stored = {row.cluster_id: row for row in ClusterCredential.objects.defer("sealed")}
    return {id: Connection(stored.get(id), by_cluster.get(id)) for id in {*stored, *by_cluster}}


def connection(*, cluster_id: UUID) -> Connection:
    """Of one. Two queries; one more where somebody asks for the box of its credential."""
    ended = ClusterProbe.objects.filter(cluster=cluster_id, ended_at__isnull=False)
    stored = ClusterCredential.objects.filter(cluster=cluster_id).defer("sealed")
    return Connection(stored.first(), ended.order_by("-id").first())


@dataclass(frozen=True, slots=True)
class Model:
    """One that is there in a cluster; without a flavor it is shown and not used."""

    name: str
    devices: int
    has_flavor: bool


def models(*, cluster: Cluster) -> tuple[Model, ...]:
    """By name. One query."""
    there = Device.objects.filter(_PRESENT, node__cluster=cluster, node__gone_at__isnull=True)
    flavors = Flavor.objects.filter(kind__in=_KINDS, model=OuterRef("model"))
    rows = there.values("model").annotate(devices=Count("id"), has_flavor=Exists(flavors))
    columns = rows.order_by("model").values_list("model", "devices", "has_flavor")
    return tuple(Model(*row) for row in columns)


def nodes(*, cluster: str | None = None, name: str | None = None) -> QuerySet[Node]:
    """Present nodes with their cluster and `device_count`; order them by id."""
    rows = Node.objects.filter(_PRESENT).select_related("cluster")
    if cluster is not None:
        rows = rows.filter(cluster__name=cluster)
    if name is not None:
        rows = rows.filter(name=name)
    return rows.annotate(device_count=Count("devices", filter=Q(devices__gone_at__isnull=True)))


def devices(
    *, cluster: str | None = None, node_id: UUID | None = None, model: str | None = None
) -> QuerySet[Device]:
    """Present devices with node, cluster and, as `present_slices`, their MIG slices; order by
    id."""
    rows = Device.objects.filter(_PRESENT, node__gone_at__isnull=True)
    if cluster is not None:
        rows = rows.filter(node__cluster__name=cluster)
    if node_id is not None:
        rows = rows.filter(node_id=node_id)
    if model is not None:
        rows = rows.filter(model=model)
    slices = DeviceSlice.objects.filter(_PRESENT).order_by("span")
    return rows.select_related("node__cluster").prefetch_related(
        Prefetch("slices", slices, to_attr="present_slices")
    )


def flavors(*, kind: str | None = None) -> QuerySet[Flavor]:
    """Every flavor; order them by id."""
    rows = Flavor.objects.all()
    return rows if kind is None else rows.filter(kind=kind)


def flavors_by_kind() -> list[Flavor]:
    """Every flavor that work may ask for: whole GPUs, slices, shares, then CPU; the larger first,
    then by name."""
    return sorted(
        Flavor.objects.exclude(kind=FlavorKind.MODEL),
        key=lambda flavor: (
            _KINDS.index(FlavorKind(flavor.kind)),
            -flavor.memory_mib,
            flavor.name,
        ),
    )
