"""Asking clusters for nodes: what work lacks becomes rows, and each row placeholder pods, for
which its cluster's autoscaler makes nodes.

Each step goes by the rows and by what the cluster shows, so whoever comes after a crash goes on
where it stopped: a placeholder of no ask that is asking is deleted, one that is missing is made.
No network is waited for inside a transaction.
"""

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Q

from clusters.autoscaling import PlaceholderReport, PlaceholderRequest
from clusters.models import Cluster, Node, NodeClaim, NodePool
from clusters.port import NVIDIA_GPU, ClusterError, ClusterPort, Fault
from controlplane.kernel.clock import now
from controlplane.kernel.crash import crash
from scheduler.core.lifecycle import State
from scheduler.core.limits import OF_ROOM
from scheduler.core.needs import Need, needs
from scheduler.core.reasons import ReasonCode
from scheduler.core.snapshot import Snapshot
from scheduler.loop import retention
from scheduler.models import AskState, NodeAsk, Workload
from scheduler.selectors import policy
from scheduler.selectors.load import load

logger = logging.getLogger(__name__)

LIMIT = timedelta(minutes=30)
"""After which nobody waits for the answer; Karpenter gives a node half of that to register."""
AGAIN = timedelta(minutes=10)
"""How long the same is not asked for again, whether it came or not: were a node that comes of no
use after all, one would come after another."""
WITHDRAWN_AGAIN = timedelta(minutes=2)
"""The same for what was withdrawn: who comes and goes shall not order and cancel in turn."""
LOOKED_AFTER = timedelta(days=1)
"""How long a cluster that is asked no more is searched for placeholders of no row."""
KEPT_DAYS = 28
_WAITS = ReasonCode.WAITING_FOR_NODE
_WANTED = {code.value for code in OF_ROOM} | {
    _WAITS.value,
    ReasonCode.BEHIND.value,
    ReasonCode.ROOM_KEPT.value,
    ReasonCode.KEPT_FOR_OTHERS.value,
}
"""Reasons with which work that has asked for nodes still wants them."""
_LIVE = Q(ended_at__isnull=True)
_NOT_HEARD = frozenset({Fault.UNREACHABLE, Fault.THROTTLED, Fault.UNAUTHORIZED})
"""What would be the answer to whatever is asked next."""


def plan(*, at: datetime) -> int:
    """Write down what is lacked in clusters that are to be asked; how many asks. Nothing is
    loaded where nobody waits for a node. Of a pool no more nodes are asked for than all lack
    together, and none for a while after one came that was of no use, or none came."""
    retention.prune(NodeAsk, days=KEPT_DAYS)
    waiting = Workload.objects.filter(state=State.PENDING, reason__code=_WAITS.value)
    pools = NodePool.objects.filter(cluster__asks_for_nodes=True, gone_at=None)
    asked = {str(id) for id in pools.values_list("cluster_id", flat=True)}
    if not (asked and waiting.exists()):
        return 0
    wanted = needs(snapshot=_of(load(at=at).snapshot, asked), policy=policy.current())
    lacked: Counter[UUID] = Counter()
    for need in wanted:
        lacked[UUID(need.pool)] += len(need.nodes)
    for live in NodeAsk.objects.filter(_LIVE, pool__in=lacked):
        lacked[live.pool_id] -= len(live.nodes) - len(live.came)
    passed, useless = _passed(wanted, at)
    rows = []
    for need in wanted:
        workload, pool = UUID(need.workload), UUID(need.pool)
        nodes = need.nodes[: max(0, lacked[pool])]
        if nodes and pool not in useless and (workload, pool) not in passed:
            rows.append(_ask(replace(need, nodes=nodes), at))
            lacked[pool] -= len(nodes)
    NodeAsk.objects.bulk_create(rows, ignore_conflicts=True)
    return len(rows)


def _passed(wanted: Sequence[Need], at: datetime) -> tuple[set[tuple[UUID, UUID]], set[UUID]]:
    """Who of them is not to ask which pool now, and the pools that nobody is to ask: their last
    answer did not serve who asked."""
    ended = Q(state__in=(AskState.GIVEN, AskState.LATE), ended_at__gt=at - AGAIN)
    withdrawn = Q(state=AskState.WITHDRAWN, ended_at__gt=at - WITHDRAWN_AGAIN)
    asks = {(UUID(need.workload), UUID(need.pool)) for need in wanted}
    rows = NodeAsk.objects.filter(_LIVE | ended | withdrawn, pool__in={pool for _, pool in asks})
    passed = {
        (row.workload_id, row.pool_id): row.state
        for row in rows.order_by("ended_at")
        if (row.workload_id, row.pool_id) in asks
    }
    answered = (AskState.GIVEN, AskState.LATE)
    return set(passed), {pool for (_, pool), state in passed.items() if state in answered}


def due() -> list[UUID]:
    """The clusters in which an ask is to go on, or a placeholder of no row may be."""
    asked = Cluster.objects.filter(asks_for_nodes=True, node_pools__isnull=False)
    lately = Q(ended_at__gt=now() - LOOKED_AFTER)
    asks = NodeAsk.objects.filter(_LIVE | lately).values_list("pool__cluster_id", flat=True)
    return sorted({*asks, *asked.values_list("id", flat=True)})


def carry_on(*, port: ClusterPort, cluster: Cluster, at: Callable[[], datetime]) -> bool:
    """Each ask there goes on as far as it can; whether the cluster could be reached."""
    try:
        _carry_on(port, cluster, at())
    except ClusterError as error:
        logger.warning("asking %s for nodes: %s", cluster.name, error)
        return False
    return True


def _carry_on(port: ClusterPort, cluster: Cluster, at: datetime) -> None:
    rows = list(
        NodeAsk.objects.filter(_LIVE, pool__cluster=cluster)
        .select_related("workload", "pool__cluster", "pool__like")
        .order_by("asked_at", "id")
    )
    there: dict[str, list[PlaceholderReport]] = {}
    for found in port.list_placeholders():
        there.setdefault(found.ask, []).append(found)
    for row in rows:
        if row.state == AskState.ASKING:
            _answer(row, there.get(str(row.id), ()))
            if outcome := _outcome(row, at):
                _close(row, outcome)
    wanted = {name for row in rows for name in _wanted(row)}
    for pods in there.values():
        for found in pods:
            if found.name not in wanted or found.node:  # there it would be in the way
                port.delete_placeholder(found=found)
    crash("N1")
    for row in rows:
        if row.state == AskState.CLOSING and str(row.id) not in there:
            _end(row, at)
    for row in rows:
        if row.state == AskState.ASKING:
            told = ""
            try:
                _make(port, row, {one.name for one in there.get(str(row.id), ())})
            except ClusterError as error:
                if error.fault in _NOT_HEARD:
                    raise
                logger.warning("asking %s for nodes: %s", cluster.name, error)
                told = str(error)[:200]
            if told != row.error:
                NodeAsk.objects.filter(pk=row.pk).update(error=told)


def _of(snapshot: Snapshot, asked: Collection[str]) -> Snapshot:
    """Where nodes can come in these clusters alone."""
    clusters = (
        cluster if cluster.id in asked else replace(cluster, coming=())
        for cluster in snapshot.clusters
    )
    return replace(snapshot, clusters=tuple(clusters))


def _ask(need: Need, at: datetime) -> NodeAsk:
    nodes = [asdict(node) for node in need.nodes]
    return NodeAsk(
        workload_id=UUID(need.workload), pool_id=UUID(need.pool), nodes=nodes, asked_at=at
    )


def _answer(row: NodeAsk, pods: Sequence[PlaceholderReport]) -> None:
    """Count the nodes that its placeholders were bound to and that Berth did not know, then those
    of the pool that were ordered and registered since it was asked, each for one ask."""
    of_pool = NodeAsk.objects.filter(pool=row.pool, asked_at__gte=row.asked_at - LIMIT)
    others = of_pool.exclude(pk=row.pk).values_list("came", flat=True)
    taken = {name for came in others for name in came}
    ordered = NodeClaim.objects.filter(
        pool=row.pool, registered=True, gone_at=None, created_at__gte=_second(row.asked_at)
    )
    made = ordered.order_by("created_at", "id").values_list("node", flat=True)
    bound = [pod.node for pod in pods if pod.node]
    known = Node.objects.filter(cluster=row.pool.cluster_id, name__in=bound, gone_at=None)
    old = set(known.values_list("name", flat=True))
    names = dict.fromkeys((*row.came, *(name for name in bound if name not in old), *made))
    came = [name for name in names if name and name not in taken][: len(row.nodes)]
    if came != row.came:
        row.came = came
        NodeAsk.objects.filter(pk=row.pk, state=AskState.ASKING).update(came=came)


def _second(at: datetime) -> datetime:
    """The cluster tells no finer when something was made."""
    return at.replace(microsecond=0)


def _wanted(row: NodeAsk) -> list[str]:
    """The names of the placeholders that it has: one for each node that has not come."""
    if row.state != AskState.ASKING:
        return []
    return [f"node-{row.id}-{nth}" for nth in range(len(row.came), len(row.nodes))]


def _outcome(row: NodeAsk, at: datetime) -> AskState | None:
    """How it ends, None while it goes on."""
    if len(row.came) >= len(row.nodes):
        return AskState.GIVEN
    work = row.workload
    reason = (work.reason or {}).get("code")
    if work.state != State.PENDING or reason not in _WANTED:
        return AskState.WITHDRAWN
    if not row.pool.cluster.asks_for_nodes or row.pool.gone_at is not None:
        return AskState.WITHDRAWN
    return AskState.LATE if at >= row.asked_at + LIMIT else None


def _make(port: ClusterPort, row: NodeAsk, there: Iterable[str]) -> None:
    resource = row.pool.like.gpu_resource if row.pool.like else NVIDIA_GPU
    for name, node in zip(_wanted(row), row.nodes[len(row.came) :], strict=True):
        if name not in there:
            port.create_placeholder(
                request=PlaceholderRequest(
                    name=name,
                    ask=str(row.id),
                    pool=row.pool.name,
                    resources={resource: node["devices_count"]} if node["devices_count"] else {},
                    cpu_milli=node["cpu_milli"],
                    memory_mib=node["memory_mib"],
                )
            )
            crash("N2")


def _close(row: NodeAsk, outcome: AskState) -> None:
    NodeAsk.objects.filter(pk=row.pk, state=AskState.ASKING).update(
        state=AskState.CLOSING, outcome=outcome
    )
    row.refresh_from_db(fields=["state", "outcome"])


def _end(row: NodeAsk, at: datetime) -> None:
    NodeAsk.objects.filter(pk=row.pk, state=AskState.CLOSING).update(
        state=row.outcome, ended_at=at
    )
