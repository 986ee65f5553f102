"""The nodes of pools that an operator declared: no cluster tells of those before they are there,
so they are counted by their labels, and those that are being made by the requests for them."""

from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from uuid import UUID

from django.db.models import QuerySet

from clusters.autoscaling import Autoscaling, NodeClaimReport, NodeRequestReport
from clusters.models import Cluster, Node, NodePool


def sync(*, cluster: Cluster, pools: Collection[NodePool], found: Autoscaling) -> bool:
    """Make the rows of declared ones as the cluster is, and count others' requests there; True
    when anything changed."""
    changed = False
    for pool in _declared(pools):
        ready, used = found.requests is not None, {"nodes": _nodes(cluster, pool).count()}
        if (pool.ready, pool.used) != (ready, used):
            pool.ready, pool.used = ready, used
            pool.save(update_fields=["ready", "used"])
            changed = True
    queued = sum(
        not one.ask and one.accepted and not (one.provisioned or one.ended)
        for one in found.requests or ()
    )
    others = Cluster.objects.filter(pk=cluster.pk).exclude(foreign_requests_count=queued)
    return bool(others.update(foreign_requests_count=queued)) or changed


def claims(
    *,
    cluster: Cluster,
    pools: Collection[NodePool],
    requests: Iterable[NodeRequestReport],
    at: datetime,
) -> Iterator[NodeClaimReport]:
    """What is being made for our requests, node by node, as if the cluster told each.

    Which node answers which request nobody says. So each node that Berth saw for the first time
    after the nodes were asked for counts for one that is provisioned, in the order of both; for
    the same from then on. One that is only accepted may queue for days, and has none.
    """
    ours = sorted(
        (one.created_at, one.name, one) for one in requests if one.created_at and not one.ended
    )
    for pool in _declared(pools):
        rows = {row.uid: row.node for row in pool.claims.all()}
        taken = set(rows.values())
        nodes = _nodes(cluster, pool).order_by("id").values_list("id", "name")
        new = [(id, name) for id, name in nodes if name not in taken]
        for made_at, _, request in ours:
            if request.pool != str(pool.pk):
                continue
            for nth in range(request.nodes):
                uid = f"{request.uid}/{nth}"
                node = rows.get(uid, "")
                if not node and request.provisioned:
                    # Ids are in the order of their making, by Berth's own clock.
                    node = next((name for id, name in new if id > UUID(request.ask)), "")
                    new = [one for one in new if one[1] != node]
                yield NodeClaimReport(
                    name=f"{request.name}-{nth}",
                    uid=uid,
                    pool=pool.name,
                    created_at=made_at,
                    launched=bool(node),
                    registered=bool(node),
                    node=node,
                    initialized_at=at if node else None,
                )


def _declared(pools: Iterable[NodePool]) -> Iterator[NodePool]:
    return (pool for pool in pools if pool.is_declared)


def _nodes(cluster: Cluster, pool: NodePool) -> QuerySet[Node]:
    return Node.objects.filter(cluster=cluster, gone_at=None, labels__contains=pool.node_labels)
