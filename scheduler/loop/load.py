"""Rows → Snapshot, in one REPEATABLE READ READ ONLY transaction. Reads only; decides nothing."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from django.db import connection, transaction

from scheduler.core.lifecycle import State
from scheduler.core.snapshot import HeldView, HoldingView, PendingView, PodSetView, Snapshot
from scheduler.core.units import (
    ClusterId,
    DeviceId,
    FlavorId,
    NodeId,
    PlacementId,
    PodSetId,
    ProjectId,
    Span,
    WorkloadId,
)
from scheduler.selectors import fleet


@dataclass(frozen=True, slots=True)
class Waiting:
    """What apply needs of a pending workload next to the core's view of it."""

    version: int
    attempts: int
    reason_code: str
    reason_at: datetime | None


@dataclass(frozen=True, slots=True)
class Loaded:
    """A snapshot and, by workload, what only the shell needs. Ids are the rows' ids as text."""

    snapshot: Snapshot
    waiting: dict[WorkloadId, Waiting]
    states: dict[WorkloadId, State]


@contextmanager
def frozen() -> Iterator[None]:
    """One consistent, read-only view of the database; never nested in another transaction."""
    with transaction.atomic(durable=True):
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield


def load(*, at: datetime) -> Loaded:
    """Everything a plan needs, as of one moment of the database."""
    with frozen():
        return load_here(at=at)


def load_here(*, at: datetime) -> Loaded:
    """As `load`, inside a transaction that the caller has made consistent."""
    pod_sets = _pod_sets()
    pending, waiting = _pending(pod_sets)
    holding, states = _holding(pod_sets)
    snapshot = Snapshot(
        at=int(at.timestamp()),
        flavors=fleet.flavors(),
        clusters=fleet.clusters(),
        queues=fleet.queues(),
        cohorts=fleet.cohorts(),
        pending=pending,
        holding=holding,
    )
    return Loaded(snapshot, waiting, states)


_POD_SETS = """
SELECT s.workload_id::text, s.id::text, s.count, s.min_count, s.cpu_milli, s.memory_mib,
       s.gpu_count, s.gpu_milli,
       array(SELECT f.flavor_id::text FROM scheduler_podsetflavor f
             WHERE f.pod_set_id = s.id ORDER BY f.position)
FROM scheduler_podset s JOIN scheduler_workload w ON w.id = s.workload_id
WHERE w.state NOT IN ('SUCCEEDED', 'FAILED', 'CANCELLED')
ORDER BY s.workload_id, s.position
"""
_PENDING = """
SELECT w.id::text, w.project_id::text, w.priority, w.preemptible,
       extract(epoch FROM w.submitted_at)::bigint, w.run_time_limit_s,
       array(SELECT c.cluster_id::text FROM scheduler_workload_clusters c
             WHERE c.workload_id = w.id ORDER BY 1),
       coalesce(extract(epoch FROM w.not_before)::bigint, 0),
       w.version, (SELECT coalesce(max(a.number), 0) FROM scheduler_attempt a
                   WHERE a.workload_id = w.id),
       coalesce(w.reason->>'code', ''), w.reason_at
FROM scheduler_workload w WHERE w.state = 'PENDING' ORDER BY w.id
"""


type PodSets = dict[str, tuple[PodSetView, ...]]
"""The pod sets of each workload that has not ended, in their order."""


def _pod_sets() -> PodSets:
    found: dict[str, list[PodSetView]] = {}
    for workload, id, *numbers, accepted in fleet.rows(_POD_SETS):
        count, min_count, cpu_milli, memory_mib, gpu_count, gpu_milli = numbers
        view = PodSetView(
            PodSetId(id),
            count,
            min_count,
            cpu_milli,
            memory_mib,
            gpu_count,
            gpu_milli,
            tuple(FlavorId(flavor) for flavor in accepted),
        )
        found.setdefault(workload, []).append(view)
    return {workload: tuple(views) for workload, views in found.items()}


def _pending(
    pod_sets: PodSets,
) -> tuple[tuple[PendingView, ...], dict[WorkloadId, Waiting]]:
    views = []
    waiting = {}
    for row in fleet.rows(_PENDING):
        id, project, priority, preemptible, submitted_at, limit_s, places, not_before = row[:8]
        views.append(
            PendingView(
                WorkloadId(id),
                ProjectId(project),
                priority,
                preemptible,
                submitted_at,
                pod_sets.get(id, ()),
                limit_s,
                tuple(ClusterId(cluster) for cluster in places),
                not_before,
            )
        )
        waiting[WorkloadId(id)] = Waiting(*row[8:])
    return tuple(views), waiting


# By what is not released rather than by state: capacity is held until the pod is seen gone.
_HELD = """
SELECT p.workload_id::text, p.id::text, p.pod_set_id::text, p.node_id::text, p.flavor_id::text,
       p.amount_milli, p.cpu_milli, p.memory_mib
FROM scheduler_placement p WHERE p.released_at IS NULL
"""
_HELD_SPANS = """
SELECT s.placement_id::text, s.device_id::text, lower(s.span), upper(s.span)
FROM scheduler_placementspan s WHERE s.released_at IS NULL
"""
_HOLDING = """
SELECT w.id::text, w.project_id::text, a.cluster_id::text, w.priority, w.preemptible,
       extract(epoch FROM coalesce(w.admitted_at, a.created_at))::bigint,
       extract(epoch FROM w.started_at)::bigint, w.run_time_limit_s, w.state,
       EXISTS (SELECT 1 FROM scheduler_operation o
               WHERE o.attempt_id = a.id AND o.kind = 'stop'),
       array(SELECT c.cluster_id::text FROM scheduler_workload_clusters c
             WHERE c.workload_id = w.id ORDER BY 1)
FROM scheduler_workload w JOIN scheduler_attempt a ON a.workload_id = w.id
WHERE a.ended_at IS NULL
"""


def _held(condition: str = "", parameters: Sequence[object] = ()) -> dict[str, list[HeldView]]:
    """Live placements by workload, in a fixed number of queries."""
    spans: dict[str, list[tuple[DeviceId, Span]]] = {}
    where = (
        f" AND s.placement_id IN (SELECT p.id FROM scheduler_placement p"  # noqa: S608  # constants
        f" WHERE p.released_at IS NULL{condition})"
        if condition
        else ""
    )
    for placement, device, start, end in fleet.rows(_HELD_SPANS + where, parameters):
        spans.setdefault(placement, []).append((DeviceId(device), Span(start, end)))
    found: dict[str, list[HeldView]] = {}
    for workload, id, pod_set, node, flavor, amount, cpu, memory in fleet.rows(
        _HELD + condition, parameters
    ):
        found.setdefault(workload, []).append(
            HeldView(
                PlacementId(id),
                PodSetId(pod_set),
                NodeId(node),
                FlavorId(flavor),
                amount,
                cpu,
                memory,
                tuple(spans.get(id, ())),
            )
        )
    return found


def held_on(*, nodes: Iterable[NodeId]) -> list[HeldView]:
    """What holds room on these nodes now, for the applier's second look."""
    found = _held(" AND p.node_id = ANY(%s::uuid[])", [list(nodes)])
    return [view for views in found.values() for view in views]


def _holding(pod_sets: PodSets) -> tuple[tuple[HoldingView, ...], dict[WorkloadId, State]]:
    held = _held()
    views = []
    states = {}
    for row in fleet.rows(_HOLDING):
        id, project, cluster, priority, preemptible, admitted = row[:6]
        started, limit_s, state, stop, accepted = row[6:]
        states[WorkloadId(id)] = State(state)
        returns = not stop or state == State.PREEMPTING
        views.append(
            HoldingView(
                WorkloadId(id),
                ProjectId(project),
                ClusterId(cluster),
                priority,
                preemptible,
                admitted,
                tuple(held.get(id, ())),
                started,
                limit_s,
                releasing=stop,
                pod_sets=pod_sets.get(id, ()) if returns else (),
                clusters=tuple(ClusterId(each) for each in accepted),
            )
        )
    return tuple(views), states
