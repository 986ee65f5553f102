"""Nodes that a cluster was asked for, and when they are expected."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Q

from scheduler.core.lifecycle import State
from scheduler.core.reasons import ReasonCode
from scheduler.core.units import WorkloadId
from scheduler.models import AskState, NodeAsk, Workload

ON_THEIR_WAY = timedelta(hours=1)
"""How long after they registered nodes are still expected to become ready."""

FAILED_LATELY = timedelta(hours=1)
"""How long it is told that an autoscaler gave up."""
SHOWN = 100


@dataclass(frozen=True, slots=True)
class NodesAsked:
    """Of so many nodes so many `came`. Half of the pool's nodes came so soon that these were there
    by `expected_at`, None where nobody knows how long one takes; they are late when it takes
    longer than nine in ten did. `is_queued` is whether the autoscaler has accepted a request for
    all of them. `error` is why the cluster does not take the order, if not ""; or, from
    `failed_at` on, why it gave it up."""

    pool: str
    cluster: str
    nodes: int
    came: int
    asked_at: datetime
    expected_at: datetime | None
    is_late: bool
    error: str
    is_queued: bool = False
    failed_at: datetime | None = None


def of_waiting(*, workload: Workload, at: datetime) -> tuple[NodesAsked, ...]:
    """The live ones of work that waits for nodes, and those that failed lately; () without a query
    of what does not wait."""
    if (workload.reason or {}).get("code") != ReasonCode.WAITING_FOR_NODE:
        return ()
    rows = NodeAsk.objects.filter(_told(at), workload=workload)
    return tuple(_asked(row, at) for row in rows.select_related("pool__cluster").order_by("id"))


def of_cluster(*, cluster_id: UUID, at: datetime) -> dict[UUID, list[NodesAsked]]:
    """The same of all work, by pool, at most so many as a page shows. One query."""
    rows = NodeAsk.objects.filter(_told(at), pool__cluster=cluster_id)
    found: dict[UUID, list[NodesAsked]] = {}
    for row in rows.select_related("pool__cluster").order_by("-id")[:SHOWN]:
        found.setdefault(row.pool_id, []).append(_asked(row, at))
    return found


def _told(at: datetime) -> Q:
    return Q(ended_at=None) | Q(state=AskState.FAILED, ended_at__gt=at - FAILED_LATELY)


def _asked(row: NodeAsk, at: datetime) -> NodesAsked:
    late_at = _after(row, row.pool.start_p90_s)
    return NodesAsked(
        pool=row.pool.name,
        cluster=row.pool.cluster.name,
        nodes=len(row.nodes),
        came=len(row.came),
        asked_at=row.asked_at,
        expected_at=_after(row, row.pool.start_p50_s),
        is_late=late_at is not None and late_at < at,
        error=row.error,
        is_queued=row.queued,
        failed_at=row.ended_at,
    )


def _after(row: NodeAsk, takes_s: int | None) -> datetime | None:
    return None if takes_s is None else row.asked_at + timedelta(seconds=takes_s)


def expected(*, at: datetime) -> dict[WorkloadId, tuple[int, int]]:
    """Of each that waits for nodes that were asked for: in how many seconds all of them are there
    in half, and in nine tenths, of the cases, by what their pools took before; not of those
    that take longer than that already."""
    asks = NodeAsk.objects.filter(
        Q(ended_at=None) | Q(state=AskState.GIVEN, ended_at__gt=at - ON_THEIR_WAY),
        workload__state=State.PENDING,
        workload__reason__code=ReasonCode.WAITING_FOR_NODE.value,
        pool__start_p50_s__isnull=False,
    )
    found: dict[WorkloadId, tuple[int, int]] = {}
    for id, asked_at, *takes in asks.values_list(
        "workload_id", "asked_at", "pool__start_p50_s", "pool__start_p90_s"
    ):
        since_s = int((at - asked_at).total_seconds())
        if since_s > max(each or 0 for each in takes):
            continue  # overdue: what its pool took before says nothing of it any more
        p50_s, p90_s = (max(0, (each or 0) - since_s) for each in takes)
        before = found.get(WorkloadId(str(id)), (0, 0))
        found[WorkloadId(str(id))] = max(before[0], p50_s), max(before[1], p90_s)
    return found
