"""Asking clusters for nodes: what work lacks becomes rows, and each row what stands for it in the
cluster, for which the autoscaler there makes nodes: placeholder pods, or a request.

Each step goes by the rows and by what the cluster shows, so whoever comes after a crash goes on
where it stopped: what is of no ask that is asking is deleted, what is missing is made.
No network is waited for inside a transaction.
"""

import logging
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Q

from clusters.models import Cluster, NodePool
from clusters.port import ClusterError, ClusterPort, Fault
from controlplane.kernel.clock import now
from controlplane.kernel.crash import crash
from scheduler.core.bounds.limits import OF_ROOM
from scheduler.core.lifecycle import State
from scheduler.core.reasons import ReasonCode
from scheduler.core.simulating.needs import Need, needs
from scheduler.core.snapshot import Snapshot
from scheduler.loop import retention
from scheduler.loop.scaling.ways import LIMIT, Outcome, Placeholders, Requests, Way
from scheduler.models import AskState, NodeAsk, Workload
from scheduler.selectors import policy
from scheduler.selectors.load import load

logger = logging.getLogger(__name__)

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
_ANSWERED = (AskState.GIVEN, AskState.LATE, AskState.FAILED)
_LIVE = Q(ended_at__isnull=True)
_NOT_HEARD = frozenset({Fault.UNREACHABLE, Fault.THROTTLED, Fault.UNAUTHORIZED})
"""What would be the answer to whatever is asked next."""


def plan(*, at: datetime) -> int:
    """Write down what is lacked in clusters that are to be asked; how many asks. Nothing is
    loaded where nobody waits for a node. Of a pool no more nodes are asked for than all lack
    together, and none for a while after one came that was of no use, or none came. Of a declared
    one a workload asks for all that it lacks, or for none."""
    retention.prune(NodeAsk, days=KEPT_DAYS)
    waiting = Workload.objects.filter(state=State.PENDING, reason__code=_WAITS.value)
    in_use = NodePool.objects.filter(cluster__asks_for_nodes=True, gone_at=None)
    pools = {pool.id: pool for pool in in_use}
    if not (pools and waiting.exists()):
        return 0
    snapshot = _of(load(at=at).snapshot, {str(pool.cluster_id) for pool in pools.values()})
    wanted = needs(snapshot=snapshot, policy=policy.current())
    lacked: Counter[UUID] = Counter()
    for need in wanted:
        lacked[UUID(need.pool)] += len(need.nodes)
    lacked.subtract(_unseen(snapshot))
    passed, useless = _passed(wanted, at)
    rows = []
    for need in wanted:
        workload, pool = UUID(need.workload), pools.get(UUID(need.pool))
        if pool is None:  # it has come since
            continue
        nodes = need.nodes[: max(0, lacked[pool.id])]
        if not nodes or (pool.is_declared and len(nodes) < len(need.nodes)):
            continue
        if pool.id not in useless and (workload, pool.id) not in passed:
            rows.append(_ask(replace(need, nodes=nodes), pool, at))
            lacked[pool.id] -= len(nodes)
    NodeAsk.objects.bulk_create(rows, ignore_conflicts=True)
    return len(rows)


def _unseen(snapshot: Snapshot) -> Counter[UUID]:
    """Of each pool, how many nodes are asked for beside those that are seen being made."""
    unseen: Counter[UUID] = Counter()
    for live in NodeAsk.objects.filter(_LIVE):
        unseen[live.pool_id] += len(live.nodes) - len(live.came)
    for cluster in snapshot.clusters:
        for pool in cluster.coming:
            unseen[UUID(pool.id)] -= pool.making_count
    return +unseen


def _passed(wanted: Sequence[Need], at: datetime) -> tuple[set[tuple[UUID, UUID]], set[UUID]]:
    """Who of them is not to ask which pool now, and the pools that nobody is to ask: their last
    answer did not serve who asked."""
    ended = Q(state__in=_ANSWERED, ended_at__gt=at - AGAIN)
    withdrawn = Q(state=AskState.WITHDRAWN, ended_at__gt=at - WITHDRAWN_AGAIN)
    asks = {(UUID(need.workload), UUID(need.pool)) for need in wanted}
    rows = NodeAsk.objects.filter(_LIVE | ended | withdrawn, pool__in={pool for _, pool in asks})
    passed = {
        (row.workload_id, row.pool_id): row.state
        for row in rows.order_by("ended_at")
        if (row.workload_id, row.pool_id) in asks
    }
    return set(passed), {pool for (_, pool), state in passed.items() if state in _ANSWERED}


def due() -> list[UUID]:
    """The clusters in which an ask is to go on, or a placeholder of no row may be."""
    asked = Cluster.objects.filter(asks_for_nodes=True, node_pools__isnull=False)
    lately = Q(ended_at__gt=now() - LOOKED_AFTER)
    asks = NodeAsk.objects.filter(_LIVE | lately).values_list("pool__cluster_id", flat=True)
    return sorted({*asks, *asked.values_list("id", flat=True)})


def carry_on(*, port: ClusterPort, cluster: Cluster, at: Callable[[], datetime]) -> bool:
    """Each ask there goes on as far as it can; whether the cluster could be reached, and let Berth
    look."""
    try:
        return _carry_on(port, cluster, at())
    except ClusterError as error:
        logger.warning("asking %s for nodes: %s", cluster.name, error)
        return False


def _carry_on(port: ClusterPort, cluster: Cluster, at: datetime) -> bool:
    rows = list(
        NodeAsk.objects.filter(_LIVE, pool__cluster=cluster)
        .select_related("workload", "pool__cluster", "pool__like")
        .order_by("asked_at", "id")
    )
    ways: list[tuple[Callable[[ClusterPort], Way], list[NodeAsk]]]
    ways = [(Placeholders, [row for row in rows if not row.terms])]
    if _may_have_requests(cluster, at):
        ways.append((Requests, [row for row in rows if row.terms]))
    seen = True
    for way, mine in ways:
        try:
            _step(way(port), mine, at)
        except ClusterError as error:
            if error.fault in _NOT_HEARD:
                raise
            logger.warning("asking %s for nodes: %s", cluster.name, error)
            for row in mine:
                _tell(row, str(error))
            seen = False
    return seen


def _may_have_requests(cluster: Cluster, at: datetime) -> bool:
    """Whether some are wanted there, or were lately; a pool's name may be Karpenter's since."""
    asks = NodeAsk.objects.filter(pool__cluster=cluster).exclude(terms={})
    lately = Q(ended_at__gt=at - LOOKED_AFTER)
    declared = NodePool.objects.filter(cluster=cluster).exclude(request_class="")
    return declared.exists() or asks.filter(_LIVE | lately).exists()


def _step(way: Way, rows: Sequence[NodeAsk], at: datetime) -> None:
    for row in rows:
        if row.state == AskState.ASKING:
            _answer(row, way)
            if outcome := _outcome(row, way, at):
                _close(row, outcome)
    asking = [row for row in rows if row.state == AskState.ASKING]
    way.clear(asking)
    crash("N1")
    for row in rows:
        if row.state == AskState.CLOSING and way.is_clear(row):
            _end(row, at)
    for row in asking:
        told = ""
        try:
            way.make(row)
        except ClusterError as error:
            if error.fault in _NOT_HEARD:
                raise
            logger.warning("asking %s for nodes: %s", row.pool.cluster.name, error)
            told = str(error)
        _tell(row, told)


def _tell(row: NodeAsk, error: str) -> None:
    """Of one that goes on, why the cluster does not take it."""
    if error[:200] != row.error:
        asking = NodeAsk.objects.filter(pk=row.pk, state=AskState.ASKING)
        asking.update(error=error[:200])


def _of(snapshot: Snapshot, asked: Collection[str]) -> Snapshot:
    """Where nodes can come in these clusters alone."""
    clusters = (
        cluster if cluster.id in asked else replace(cluster, coming=())
        for cluster in snapshot.clusters
    )
    return replace(snapshot, clusters=tuple(clusters))


def _ask(need: Need, pool: NodePool, at: datetime) -> NodeAsk:
    nodes = [asdict(node) for node in need.nodes]
    return NodeAsk(
        workload_id=UUID(need.workload), pool=pool, nodes=nodes, terms=pool.terms, asked_at=at
    )


def _answer(row: NodeAsk, way: Way) -> None:
    """Count the nodes that came, and note that it was accepted."""
    came = list(dict.fromkeys((*row.came, *way.answers(row))))[: len(row.nodes)]
    queued = row.queued or way.is_queued(row)
    if (came, queued) != (row.came, row.queued):
        row.came, row.queued = came, queued
        asking = NodeAsk.objects.filter(pk=row.pk, state=AskState.ASKING)
        asking.update(came=came, queued=queued)


def _outcome(row: NodeAsk, way: Way, at: datetime) -> Outcome | None:
    """How it ends, None while it goes on."""
    if outcome := way.outcome(row):
        return outcome
    work = row.workload
    reason = (work.reason or {}).get("code")
    if work.state not in way.lasts or (work.state == State.PENDING and reason not in _WANTED):
        return Outcome(AskState.WITHDRAWN)
    pool = row.pool
    changed = pool.gone_at is not None or pool.terms != row.terms
    if changed or not pool.cluster.asks_for_nodes:
        return Outcome(AskState.WITHDRAWN)
    late = at >= row.asked_at + LIMIT and not row.queued
    return Outcome(AskState.LATE) if late else None


def _close(row: NodeAsk, outcome: Outcome) -> None:
    NodeAsk.objects.filter(pk=row.pk, state=AskState.ASKING).update(
        state=AskState.CLOSING, outcome=outcome.state, error=outcome.why[:200]
    )
    row.refresh_from_db(fields=["state", "outcome", "error"])


def _end(row: NodeAsk, at: datetime) -> None:
    NodeAsk.objects.filter(pk=row.pk, state=AskState.CLOSING).update(
        state=row.outcome, ended_at=at
    )
