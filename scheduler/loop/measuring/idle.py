"""What is seen of use → which attempts are idle; telling those whose time comes; freeing them.

Ideally a row says of each attempt whether it is used. It departs from that where nobody knows: an
attempt of which one device was not measured has no row, and where use was not seen for STALE_S all
begin anew.
"""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction

from clusters.models import Cluster
from clusters.use import PodUse
from controlplane.kernel import bulk
from controlplane.kernel.ids import uuid7s
from scheduler.core.failures import FailureClass
from scheduler.core.lifecycle import State
from scheduler.core.units import WorkloadId
from scheduler.loop.lease import Lease, fence
from scheduler.models import Attempt, Idleness, WorkloadEvent
from scheduler.selectors import idleness
from scheduler.selectors.fleet import rows
from scheduler.selectors.load import Loaded
from scheduler.services import stops
from scheduler.services.transition import Step, lock, transition

ACTOR = "system:scheduler"
EVENT, USED = "idle", "used-again"

# Pods that run, with how many devices or parts of one each has to be seen on.
_DEVICES = """
SELECT a.id, a.workload_id, t.namespace,
       coalesce((SELECT c.name FROM scheduler_caughtpod c
                 WHERE c.placement_id = p.id AND c.uid = p.pod_uid), p.pod_name),
       (SELECT count(*) FROM scheduler_placementspan s WHERE s.placement_id = p.id)
FROM scheduler_placement p JOIN scheduler_attempt a ON a.id = p.attempt_id
JOIN scheduler_workload w ON w.id = a.workload_id
JOIN tenants_project t ON t.id = w.project_id JOIN clusters_flavor f ON f.id = p.flavor_id
WHERE a.cluster_id = %s AND a.ended_at IS NULL AND w.state = 'RUNNING'
  AND p.released_at IS NULL AND f.kind <> 'cpu'
"""
_IS_STALE = (
    "SELECT NOT coalesce("  # noqa: S608  # constants
    + idleness.IS_FRESH
    + ", false) FROM clusters_cluster c WHERE c.id = %s FOR NO KEY UPDATE"
)


def note(*, cluster: Cluster, uses: Sequence[PodUse], at: datetime) -> None:
    """Write down what is idle in the cluster, whose use was seen `at` just now."""
    seen = {(use.namespace, use.pod): use.percents for use in uses}
    with transaction.atomic():
        [[stale]] = rows(_IS_STALE, [cluster.id])
        idle: dict[UUID, UUID] = {}
        used = set[UUID]()
        for attempt, workload, namespace, pod, count in rows(_DEVICES, [cluster.id]):
            idle[attempt] = workload
            percents = seen.get((namespace, pod), ())
            measured = percents and len(percents) >= count
            if not measured or max(percents) >= settings.BERTH_IDLE_PERCENT:
                used.add(attempt)
        for attempt in used:
            del idle[attempt]
        before = Idleness.objects.filter(attempt__cluster=cluster)
        gone = before if stale else before.exclude(attempt__in=idle)
        told = gone.filter(  # nobody looked at the use of what is on its way back, or has ended
            warned_at__isnull=False, attempt__ended_at=None, attempt__workload__state=State.RUNNING
        ).values_list("attempt__workload_id", flat=True)
        why = "its devices are used again, or not measured any more"
        _tell(USED, dict.fromkeys(told, why), at)
        gone.delete()
        Idleness.objects.bulk_create(
            [Idleness(attempt_id=attempt, since=at) for attempt in idle], ignore_conflicts=True
        )
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE clusters_cluster SET use_seen_at = clock_timestamp(), use_error = ''"
                " WHERE id = %s",
                [cluster.id],
            )


def warn(*, at: datetime) -> bool:
    """Tell those whose time has come, on their timelines; whether anybody may be freed now."""
    found = idleness.everywhere()
    due = [idle for idle in found if idle.warned_at is None and _is_past(idle.warns_at, at)]
    if due:
        with transaction.atomic():
            fresh = Idleness.objects.filter(attempt__in=[i.attempt for i in due], warned_at=None)
            locked = fresh.select_for_update(of=("self",)).order_by("id")
            first = set(locked.values_list("attempt_id", flat=True))
            fresh.update(warned_at=at)
            _tell(EVENT, {i.workload: _warning(i, at) for i in due if i.attempt in first}, at)
    return any(idle.warned_at and _is_past(idle.frees_at, at) for idle in found)


def _is_past(moment: datetime | None, at: datetime) -> bool:
    return moment is not None and moment <= at


def _warning(idle: idleness.Idle, at: datetime) -> str:
    since = f"all its devices are unused since {idle.since:%Y-%m-%d %H:%M} UTC"
    if idle.frees_at is None:
        return f"{since}; it is not freed, as it may not be preempted"
    left_s = max(idle.limit.warning_s, int((idle.frees_at - at).total_seconds()))
    return f"{since}; it is freed in {left_s} s unless it uses them"


def free(
    *,
    lease: Lease,
    loaded: Loaded,
    frees: Sequence[WorkloadId],
    at: datetime,
    speed: float = 1.0,
) -> frozenset[UUID]:
    """Ask for the end of what a plan frees, after its notice, if it is idle still; what is on its
    way then. Raises lease.Fenced."""
    if not frees:
        return frozenset()
    holding = {held.id: held for held in loaded.snapshot.holding if held.id in frees}
    with transaction.atomic():
        fence(lease)
        live = Attempt.objects.filter(workload_id__in=map(UUID, frees), ended_at__isnull=True)
        lock(list(live.values_list("id", flat=True)))
        rows = live.filter(idleness__warned_at__isnull=False).select_related("idleness")
        idle = {row.workload_id: row for row in rows}
        why = {id: _why(row.idleness, at) for id, row in idle.items()}
        moved = transition(
            [
                Step(
                    id,
                    UUID(holding[WorkloadId(str(id))].project),
                    loaded.states[WorkloadId(str(id))],
                    State.PREEMPTING,
                    why[id],
                )
                for id in sorted(idle)
            ],
            actor=ACTOR,
            actor_name="scheduler",
            at=at,
        )
        for id in moved:
            live.filter(workload_id=id, failure="").update(
                failure=FailureClass.IDLE, trouble=why[id]
            )
        stops.evict(workload_ids=sorted(moved), at=at, speed=speed)
    return moved


def _why(of: Idleness, at: datetime) -> str:
    return f"freed: idle, its devices were unused for {int((at - of.since).total_seconds())} s"


def _tell(kind: str, messages: dict[UUID, str], at: datetime) -> None:
    """On the workloads' timelines."""
    workloads = sorted(messages)
    bulk.insert(
        WorkloadEvent,
        id=uuid7s(len(workloads)),
        workload_id=workloads,
        at=at,
        kind=kind,
        message=[messages[id] for id in workloads],
    )
