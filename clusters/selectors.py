"""Reading hardware. It belongs to no tenant: everybody signed in may know what exists, not who
uses it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Count, Exists, OuterRef, Prefetch, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce

from clusters import stock
from clusters.models import (
    Cluster,
    ClusterCredential,
    ClusterProbe,
    Device,
    DeviceSlice,
    Exposure,
    ExposureVerdict,
    Flavor,
    FlavorKind,
    HardwareQueue,
    Node,
    NodePool,
)
from controlplane.kernel import clock
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
    """That of the cluster, then those of its pools by stock; some are no rows yet. Two queries."""
    found = {row.model: row for row in cluster.queues.select_related("cluster")}
    there = Device.objects.filter(_PRESENT, node__cluster=cluster, node__gone_at__isnull=True)
    stocks = {"", *found, *there.values_list(stock.column(), flat=True).distinct()}
    return tuple(
        found.get(name) or HardwareQueue(cluster=cluster, model=name) for name in sorted(stocks)
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
    """How Berth signs in to a cluster, None before a credential is stored, the newest probe that
    has ended, None before one has, and its exposure, None before that was ever probed."""

    credential: ClusterCredential | None = None
    probe: ClusterProbe | None = None
    exposure: Exposure | None = None


def connections() -> dict[UUID, Connection]:
    """Of each cluster that has a credential or was probed. Three queries."""
    ended = ClusterProbe.objects.filter(ended_at__isnull=False)
    newest = ended.order_by("cluster", "-id").distinct("cluster")
    by_cluster = {probe.cluster_id: probe for probe in newest}
    stored = {row.cluster_id: row for row in ClusterCredential.objects.defer("sealed")}
    at = clock.now()
    exposures = {row.cluster_id: row.believed(at=at) for row in Exposure.objects.all()}
    return {
        id: Connection(stored.get(id), by_cluster.get(id), exposures.get(id))
        for id in {*stored, *by_cluster}
    }


def connection(*, cluster_id: UUID) -> Connection:
    """Of one. Three queries; one more where somebody asks for the box of its credential."""
    ended = ClusterProbe.objects.filter(cluster=cluster_id, ended_at__isnull=False)
    stored = ClusterCredential.objects.filter(cluster=cluster_id).defer("sealed")
    found = Exposure.objects.filter(cluster=cluster_id).first()
    believed = found.believed(at=clock.now()) if found else None
    return Connection(stored.first(), ended.order_by("-id").first(), believed)


def exposure(*, cluster: Cluster) -> Exposure:
    """Not known, and not stored, before it was ever probed."""
    found = Exposure.objects.filter(cluster=cluster).first()
    return (found or Exposure(cluster=cluster)).believed(at=clock.now())


def unsafe() -> dict[str, bool]:
    """By cluster, whether a pod without devices saw some; left out where it is not known."""
    at = clock.now()
    rows = [row.believed(at=at) for row in Exposure.objects.select_related("cluster")]
    known = [row for row in rows if row.verdict != ExposureVerdict.UNKNOWN]
    return {row.cluster.name: row.is_unsafe for row in known}


@dataclass(frozen=True, slots=True)
class Model:
    """One that is there in a cluster, or its stock of one capacity type; without a flavor it is
    shown and not used."""

    name: str
    devices: int
    has_flavor: bool


def models(*, cluster: Cluster) -> tuple[Model, ...]:
    """By name. One query."""
    there = Device.objects.filter(_PRESENT, node__cluster=cluster, node__gone_at__isnull=True)
    flavors = Flavor.objects.filter(
        kind__in=_KINDS, model=OuterRef("model"), capacity=OuterRef("capacity")
    )
    rows = there.values("model", "capacity").annotate(
        devices=Count("id"), has_flavor=Exists(flavors)
    )
    columns = rows.order_by("model", "capacity").values_list(
        stock.column(), "devices", "has_flavor"
    )
    return tuple(Model(*row) for row in columns)


@dataclass(frozen=True, slots=True)
class NodeShape:
    """What a node has; `learnt` from one that its pool has had, else an operator said it."""

    model: str
    gpus: int
    cpu_milli: int
    memory_mib: int
    learnt: bool


@dataclass(frozen=True, slots=True)
class ComingNodes:
    """A pool of which nodes can come; without a `node` nobody knows what those would have."""

    pool: NodePool
    node: NodeShape | None


def node_pool(*, cluster: Cluster, id: UUID) -> NodePool:
    """One of that cluster that is there. Raises NotFound."""
    pool = NodePool.objects.filter(cluster=cluster, id=id, gone_at=None).first()
    if pool is None:
        raise NotFound("There is no such node pool.")
    return pool


def coming_nodes(*, cluster_id: UUID) -> tuple[ComingNodes, ...]:
    """By name. One query; two where a pool has had nodes."""
    rows = NodePool.objects.filter(cluster=cluster_id, gone_at=None).select_related("like")
    pools = list(rows.order_by("name"))
    like = [pool.like_id for pool in pools if pool.like_id]
    models: dict[UUID, list[str]] = {}
    if like:
        of_nodes = Device.objects.filter(_PRESENT, node__in=like).order_by("node", "ordinal")
        for node, model in of_nodes.values_list("node_id", "model"):
            models.setdefault(node, []).append(model)
    return tuple(ComingNodes(pool, _node_shape(pool, models)) for pool in pools)


def coming_of(*, pool: NodePool) -> ComingNodes:
    """As `coming_nodes`, of one pool that is there."""
    return next(one for one in coming_nodes(cluster_id=pool.cluster_id) if one.pool.pk == pool.pk)


def _node_shape(pool: NodePool, models: Mapping[UUID, Sequence[str]]) -> NodeShape | None:
    like = pool.like
    if like is not None:
        found = models.get(like.pk, [])
        names = ", ".join(sorted(set(found)))
        return NodeShape(names, len(found), like.cpu_milli, like.memory_mib, learnt=True)
    gpus, cpu_milli, memory_mib = pool.node_gpus, pool.node_cpu_milli, pool.node_memory_mib
    if gpus is None or cpu_milli is None or memory_mib is None:
        return None
    return NodeShape(pool.node_model, gpus, cpu_milli, memory_mib, learnt=False)


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


def capacities() -> frozenset[tuple[str, str]]:
    """Each model and capacity type of which there are flavors of their own. One query."""
    rows = Flavor.objects.exclude(capacity="").order_by()
    return frozenset(rows.values_list("model", "capacity").distinct())


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
