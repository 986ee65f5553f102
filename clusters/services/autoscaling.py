"""Node pools that make nodes by themselves: reports → rows, what may still come of them, how long
that takes, and what an operator says of their nodes."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from itertools import islice
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q, QuerySet

from clusters.autoscaling import (
    Amounts,
    Autoscaling,
    NodeClaimReport,
    NodePoolReport,
    nodes_left,
)
from clusters.models import Cluster, Device, Node, NodeClaim, NodePool
from clusters.port import MOST_DEVICES, MOST_NODES
from clusters.services import clusters, requested_nodes
from controlplane.audit import services as audit
from controlplane.kernel import text
from controlplane.kernel.errors import Conflict, Invalid, NotFound

STARTS = 20
"""Of so many nodes, the last ones, it is learnt how long one takes."""
LATE = timedelta(hours=1)
"""After which nobody counts on a node that was ordered and is not there."""
KEPT = timedelta(days=90)
"""How long a node that is gone is remembered, for what it took to come."""
AHEAD = timedelta(minutes=10)
"""So far a cluster's clock may be ahead of Berth's."""
LARGEST = 2**31 - 1
_FIGURES = ("like_id", "making_count", "room_count", "start_count", "start_p50_s", "start_p90_s")


def sync(*, cluster: Cluster, found: Autoscaling, at: datetime) -> bool:
    """Make the rows as the reports say, which are all there is, and note what of them is left out;
    True when anything else changed."""
    with transaction.atomic():
        # One writer at a time for what is known of a cluster's hardware.
        Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk)
        pools = {pool.name: pool for pool in NodePool.objects.filter(cluster=cluster)}
        found = _beside_declared(found, pools)
        clusters.left_out(cluster=cluster, kind="node_pools", told=found.left_out)
        changed = _sync_pools(cluster, found.pools, pools, at)
        there = {name: pool for name, pool in pools.items() if pool.gone_at is None}
        changed |= requested_nodes.sync(cluster=cluster, pools=there.values(), found=found)
        made = requested_nodes.claims(
            cluster=cluster, pools=there.values(), requests=found.requests or (), at=at
        )
        made = islice(made, MOST_NODES)  # whatever the cluster makes of our requests
        changed |= _sync_claims(cluster, (*found.claims, *made), there, at)
        like = _newest_nodes(cluster, there) if there else {}
        like = {name: node for name, node in like.items() if _agrees(there[name], node)}
        for name, pool in there.items():
            changed |= _figure(pool, like.get(name), at)
        if changed:
            Cluster.objects.filter(pk=cluster.pk).update(inventory_rev=F("inventory_rev") + 1)
    return changed


@dataclass(frozen=True, slots=True)
class Described:
    """What a node has, in an operator's words; amounts are allocatable."""

    model: str
    gpus: int
    cpu_milli: int
    memory_mib: int

    def check(self, *, within: str = "") -> None:
        """Raises Invalid for what no node has; `within` is where in the input it stands."""
        if not self.model or len(self.model) > 80 or text.fault(self.model):
            message = "1 to 80 characters are wanted: the model as nodes name it."
            raise Invalid(message, pointer=f"{within}/model")
        for name, most in (
            ("gpus", MOST_DEVICES),
            ("cpu_milli", LARGEST),
            ("memory_mib", LARGEST),
        ):
            value = getattr(self, name)
            if not 1 <= value <= most:
                message = f"1 to {most} are wanted, not {value}."
                raise Invalid(message, pointer=f"{within}/{name}")


def describe_node(
    *, id: UUID, node: Described, actor: str, actor_name: str, at: datetime
) -> NodePool:
    """What a node of the pool has; it counts until the pool has had one.

    Raises NotFound, Invalid, and Conflict where the pool's template says another model.
    """
    node.check()
    with transaction.atomic():
        pool = locked(id=id)
        if pool.model and pool.model != node.model:
            message = f"The pool's template says that its GPUs are {pool.model}."
            raise Conflict(message, pointer="/model")
        if say_node(pool, node, actor=actor, actor_name=actor_name, at=at):
            refigure(pool, at=at)
    return pool


def locked(*, id: UUID) -> NodePool:
    """A pool that is there, for the rest of the transaction: as whoever reads its cluster, this
    locks that. Raises NotFound."""
    of = NodePool.objects.filter(id=id, gone_at=None)
    list(Cluster.objects.select_for_update(no_key=True).filter(id__in=of.values("cluster")))
    pool = of.first()
    if pool is None:
        raise NotFound("There is no such node pool.")
    return pool


def say_node(
    pool: NodePool, node: Described, *, actor: str, actor_name: str, at: datetime
) -> bool:
    """Store what a node of a locked pool has; whether that is another than before."""
    after = {f"node_{name}": value for name, value in asdict(node).items()}
    before = {name: getattr(pool, name) for name in after}
    if before == after:
        return False
    for name, value in after.items():
        setattr(pool, name, value)
    pool.save(update_fields=after)
    entry = audit.Entry(
        "node-pool.describe-node", "node-pool", pool.id, before=before, after=after
    )
    audit.record(actor=actor, actor_name=actor_name, entries=[entry], at=at)
    return True


def refigure(pool: NodePool, *, at: datetime) -> None:
    """A locked pool was changed: what can come of it is worked out, and read, anew."""
    _figure(pool, pool.like, at)
    Cluster.objects.filter(pk=pool.cluster_id).update(inventory_rev=F("inventory_rev") + 1)


def _beside_declared(found: Autoscaling, rows: Mapping[str, NodePool]) -> Autoscaling:
    """What is left of it where a declared pool's name is that of one of Karpenter's."""
    declared = {name for name, row in rows.items() if row.is_declared and row.gone_at is None}
    hidden = (
        f"{pool.name}: an operator declared a pool of that name, which hides Karpenter's"
        for pool in found.pools
        if pool.name in declared
    )
    return replace(
        found,
        pools=tuple(pool for pool in found.pools if pool.name not in declared),
        claims=tuple(claim for claim in found.claims if claim.pool not in declared),
        left_out=(*found.left_out, *hidden),
    )


def _sync_pools(
    cluster: Cluster, reports: Sequence[NodePoolReport], rows: dict[str, NodePool], at: datetime
) -> bool:
    changed = False
    for report in reports:
        wanted = {
            "ready": report.ready,
            "model": report.model,
            "accelerator": report.accelerator,
            "limits": report.limits.told(),
            "used": report.used.told(),
            "selector": {},
            "request_class": "",
            "parameters": {},
            "gone_at": None,
        }
        row = rows.get(report.name)
        if row is None:
            rows[report.name] = NodePool.objects.create(
                cluster=cluster, name=report.name, **wanted
            )
            changed = True
        elif any(getattr(row, name) != value for name, value in wanted.items()):
            for name, value in wanted.items():
                setattr(row, name, value)
            row.save(update_fields=wanted)
            changed = True
    names = {report.name for report in reports}
    for row in rows.values():
        if row.name not in names and row.gone_at is None and not row.is_declared:
            row.gone_at = at
            row.save(update_fields=["gone_at"])
            changed = True
    return changed


def _sync_claims(
    cluster: Cluster,
    reports: Iterable[NodeClaimReport],
    pools: dict[str, NodePool],
    at: datetime,
) -> bool:
    live = NodeClaim.objects.filter(pool__cluster=cluster)
    mine = {
        report.uid: report for report in reports if report.pool in pools and _is_past(report, at)
    }
    rows = {row.uid: row for row in live.filter(Q(gone_at=None) | Q(uid__in=mine))}
    ready = _ready_nodes(cluster, {report.node for report in mine.values()})
    changed = False
    for uid, report in mine.items():
        row = rows.get(uid)
        known = row is not None and row.ready_at is not None
        wanted = {
            "launched": report.launched,
            "registered": report.registered,
            "node": report.node,
            # Not before the inventory has the node too: until then it is still to come.
            "ready_at": (
                row.ready_at
                if row is not None and known
                else report.initialized_at
                if report.node in ready
                else None
            ),
            "gone_at": None,
        }
        if row is None:
            NodeClaim.objects.create(
                pool=pools[report.pool],
                name=report.name,
                uid=uid,
                created_at=report.created_at,
                **wanted,
            )
            changed = True
        elif any(getattr(row, name) != value for name, value in wanted.items()):
            for name, value in wanted.items():
                setattr(row, name, value)
            row.save(update_fields=wanted)
            changed = True
    changed |= bool(live.filter(gone_at=None).exclude(uid__in=mine).update(gone_at=at))
    live.filter(gone_at__lt=at - KEPT).delete()
    return changed


def _is_past(report: NodeClaimReport, at: datetime) -> bool:
    """Whether all that it tells can have been; else nothing is learnt of it."""
    return max(report.created_at, report.initialized_at or report.created_at) <= at + AHEAD


def _ready_nodes(cluster: Cluster, names: Collection[str]) -> set[str]:
    """Those of them on which work may be placed, as far as the inventory goes."""
    if not names:
        return set()
    rows = Node.objects.filter(cluster=cluster, name__in=names, ready=True, gone_at=None)
    with_gpus = rows.filter(devices__gone_at=None, devices__usable=True)
    return set(with_gpus.values_list("name", flat=True))


def _newest_nodes(cluster: Cluster, pools: Mapping[str, NodePool]) -> dict[str, Node]:
    """Of each pool the newest node that has, or had, GPUs; one that is there goes first."""
    equipped = Device.objects.filter(node__cluster=cluster).values("node_id")
    keys = {next(iter(pool.node_labels)) for pool in pools.values()}
    rows = Node.objects.filter(cluster=cluster, id__in=equipped, labels__has_any_keys=sorted(keys))
    newest: dict[str, Node] = {}
    for node in rows.order_by(F("gone_at").asc(nulls_last=True), "id"):
        for name, pool in pools.items():
            if pool.node_labels.items() <= node.labels.items():
                newest[name] = node
    return newest


def _agrees(pool: NodePool, node: Node) -> bool:
    """Whether the next node would have such GPUs too, as far as the pool's template tells: one
    that names several may give any of them."""
    models = set(node.devices.filter(gone_at=None).values_list("model", flat=True))
    return models == {pool.model} if pool.model else "," not in pool.accelerator


def _figure(pool: NodePool, like: Node | None, at: datetime) -> bool:
    """What can come of the pool, and when; whether that is another than before."""
    before = [getattr(pool, name) for name in _FIGURES]
    pool.like = like
    making = pool.claims.filter(gone_at=None, ready_at=None)
    if not pool.is_declared:  # a request may queue for days, and says itself when it fails
        making = making.filter(created_at__gt=at - LATE)
    pool.making_count = making.count()
    pool.room_count = _room(pool, unlaunched=making.filter(launched=False).count())
    took = _took(pool.claims.all())
    pool.start_count = len(took)
    pool.start_p50_s, pool.start_p90_s = (_quantile(took, tenths) for tenths in (5, 9))
    if before == [getattr(pool, name) for name in _FIGURES]:
        return False
    pool.save(update_fields=[name.removesuffix("_id") for name in _FIGURES])
    return True


def _room(pool: NodePool, *, unlaunched: int) -> int | None:
    """Nodes that can come beside those that are being made; those that no cloud has agreed to
    yet are not in what the pool uses."""
    if not pool.ready:
        return 0
    node = shape(pool)
    left = nodes_left(limits=Amounts(**pool.limits), used=Amounts(**pool.used), node=node)
    return None if left is None else max(0, left - unlaunched)


def shape(pool: NodePool) -> Amounts:
    """What a node of it is expected to have."""
    if pool.like is None:
        return Amounts(pool.node_cpu_milli, pool.node_memory_mib, pool.node_gpus)
    gpus = pool.like.devices.filter(gone_at=None).count()
    return Amounts(pool.like.cpu_milli, pool.like.memory_mib, gpus)


def _took(claims: QuerySet[NodeClaim]) -> list[int]:
    """Of the last ones that came, in seconds, the quickest first."""
    came = claims.filter(ready_at__isnull=False).order_by("-ready_at")
    moments = came.values_list("created_at", "ready_at")[:STARTS]
    return sorted(
        max(0, round((ready - made).total_seconds())) for made, ready in moments if ready
    )


def _quantile(ascending: Sequence[int], tenths: int) -> int | None:
    """Nearest rank; None of nothing."""
    return ascending[-(-len(ascending) * tenths // 10) - 1] if ascending else None
