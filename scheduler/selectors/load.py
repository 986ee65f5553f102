"""Rows → Snapshot, in one REPEATABLE READ READ ONLY transaction. Reads only; decides nothing."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.db import connection, transaction

from scheduler.core.lifecycle import State
from scheduler.core.snapshot import HeldView, HoldingView, PendingView, Snapshot, UnmetView
from scheduler.core.units import (
    ClusterId,
    DeviceId,
    FlavorId,
    NodeId,
    PlacementId,
    PodSetId,
    ProjectId,
    Span,
    UserId,
    WorkloadId,
)
from scheduler.selectors import asked, budgets, fleet
from scheduler.selectors.asked import Asked
from scheduler.selectors.idleness import IS_FRESH
from scheduler.selectors.landings import landings
from tenants.selectors import past


@dataclass(frozen=True, slots=True)
class Waiting:
    """What apply needs of a pending workload next to the core's view of it."""

    version: int
    attempts: int
    reason_code: str
    reason_at: datetime | None
    array: UUID | None


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
    versions = {row[0]: row for row in fleet.rows(_VERSIONS)}
    holders = fleet.rows(_HOLDING)
    asks = asked.of({row[0]: row[-1] for row in (*versions.values(), *holders)})
    pending, waiting = _pending(versions, asks)
    holding, states = _holding(holders, asks)
    snapshot = Snapshot(
        at=int(at.timestamp()),
        flavors=fleet.flavors(),
        clusters=fleet.clusters(),
        queues=fleet.queues(past=past.decayed(at=at)),
        reservations=fleet.reservations(at=at),
        cohorts=fleet.cohorts(),
        pending=pending,
        holding=holding,
        levels=fleet.levels(),
        landings=landings(),
        budgets=budgets.views(at=at),
    )
    return Loaded(snapshot, waiting, states)


# Where a row's version lies, and who made it: another after each update, whatever that changed.
_VERSIONS = """
SELECT w.id::text, w.xmin, w.ctid,
       t.user_max_running IS NOT NULL OR t.user_max_gpus_milli IS NOT NULL, w.asks_version
FROM scheduler_workload w JOIN tenants_project t ON t.id = w.project_id
WHERE w.state = 'PENDING' AND w.ended_at IS NULL ORDER BY w.id
"""
_PENDING = """
SELECT w.id::text, w.project_id::text, w.priority, w.preemptible,
       extract(epoch FROM w.submitted_at)::bigint, w.run_time_limit_s,
       coalesce(extract(epoch FROM w.not_before)::bigint, 0),
       CASE WHEN t.user_max_running IS NULL AND t.user_max_gpus_milli IS NULL THEN ''
            ELSE w.submitted_by_id::text END,
       w.version, CASE WHEN w.version = 1 THEN 0  -- it never moved, so nothing tried it
                  ELSE (SELECT coalesce(max(a.number), 0) FROM scheduler_attempt a
                        WHERE a.workload_id = w.id) END,
       coalesce(w.reason->>'code', ''), w.reason_at, w.array_id
FROM scheduler_workload w JOIN tenants_project t ON t.id = w.project_id
WHERE w.id = ANY(%s::uuid[])
"""


# By who waits: a workload or an array.
_UNMET = """
SELECT coalesce(workload_id, array_id)::text, count(*),
       coalesce(min(coalesce(on_workload_id, on_array_id)::text)
                FILTER (WHERE unmet_at IS NOT NULL),
                min(coalesce(on_workload_id, on_array_id)::text)),
       count(unmet_at)
FROM scheduler_dependency WHERE settled_at IS NULL GROUP BY 1
"""


class _Known(NamedTuple):
    """Of one that waits: which version of its row was read, what of that the view follows from."""

    version: fleet.Row
    row: fleet.Row
    view: PendingView
    waiting: Waiting


# Many wait for long: a process reads a row again when it has changed. A view follows from its row,
# from what it waits for and from what it asks for, so it stays as long as they do.
_known: dict[str, _Known] = {}


def _pending(
    versions: Mapping[str, fleet.Row], asks: Mapping[str, Asked]
) -> tuple[tuple[PendingView, ...], dict[WorkloadId, Waiting]]:
    global _known
    # Through local names: in a web server other threads read another moment's at the same time.
    before = _known
    known = _read(before, versions, asks)
    unmet = {of: UnmetView(*told) for of, *told in fleet.rows(_UNMET)}
    for id, one in known.items():
        array = one.waiting.array
        waits_for = _both(unmet.get(id), unmet.get(str(array)) if array else None)
        if one.view.waits_for != waits_for:
            known[id] = one._replace(view=replace(one.view, waits_for=waits_for))
    _known = known
    views = tuple(one.view for one in known.values())
    return views, {one.view.id: one.waiting for one in known.values()}


def _read(
    before: Mapping[str, _Known], versions: Mapping[str, fleet.Row], asks: Mapping[str, Asked]
) -> dict[str, _Known]:
    """All of `versions`, in their order; what `before` knows of the same version is not read."""
    same = {
        id: one
        for id, version in versions.items()
        if (one := before.get(id)) is not None and one.version == version
    }
    if len(same) == len(versions):
        return same
    found = {}
    for row in fleet.rows(_PENDING, [[id for id in versions if id not in same]]):
        id, of, kept = row[0], row[:8], before.get(row[0])
        same_view = kept and kept.row == of and kept.view.pod_sets is asks[id].pod_sets
        view = kept.view if kept and same_view else _view(of, asks[id])
        found[id] = _Known(versions[id], of, view, Waiting(*row[8:]))
    return {id: same.get(id) or found[id] for id in versions}


def _both(own: UnmetView | None, array: UnmetView | None) -> UnmetView | None:
    """What an element waits for by itself, and with all of its array."""
    if own is None or array is None:
        return own or array
    first = array.first if array.in_vain_count > own.in_vain_count else own.first
    count, in_vain = own.count + array.count, own.in_vain_count + array.in_vain_count
    return UnmetView(count, first, in_vain)


def _view(row: fleet.Row, ask: Asked) -> PendingView:
    id, project, priority, preemptible, submitted_at, limit_s, not_before, user = row
    return PendingView(
        WorkloadId(id),
        ProjectId(project),
        priority,
        preemptible,
        submitted_at,
        ask.pod_sets,
        limit_s,
        ask.clusters,
        not_before,
        UserId(user),
        ask.topology,
        ask.array,
    )


# By what is not released rather than by state: capacity is held until the pod is seen gone.
_HELD = """
SELECT p.workload_id::text, p.id::text, p.pod_set_id::text, p.node_id::text, p.flavor_id::text,
       p.amount_milli, p.cpu_milli, p.memory_mib, p.rank, p.dismissed_at IS NOT NULL
FROM scheduler_placement p WHERE p.released_at IS NULL
"""
_HELD_SPANS = """
SELECT s.placement_id::text, s.device_id::text, lower(s.span), upper(s.span)
FROM scheduler_placementspan s WHERE s.released_at IS NULL
"""
_HOLDING = (
    """
SELECT w.id::text, w.project_id::text, a.cluster_id::text, w.priority, w.preemptible,
       extract(epoch FROM coalesce(w.admitted_at, a.created_at))::bigint,
       extract(epoch FROM w.started_at)::bigint, w.run_time_limit_s, w.state,
       EXISTS (SELECT 1 FROM scheduler_operation o
               WHERE o.attempt_id = a.id AND o.kind = 'stop'),
       CASE WHEN t.user_max_running IS NULL AND t.user_max_gpus_milli IS NULL THEN ''
            ELSE w.submitted_by_id::text END,
       extract(epoch FROM w.checkpointed_at)::bigint, extract(epoch FROM w.moved_at)::bigint,
       extract(epoch FROM i.since)::bigint, extract(epoch FROM i.warned_at)::bigint,
       w.move_to_better, w.asks_version
FROM scheduler_workload w JOIN scheduler_attempt a ON a.workload_id = w.id
JOIN tenants_project t ON t.id = w.project_id JOIN clusters_cluster c ON c.id = a.cluster_id
LEFT JOIN scheduler_idleness i ON i.attempt_id = a.id AND w.state = 'RUNNING' AND """  # noqa: S608  # constants
    + IS_FRESH
    + """
WHERE a.ended_at IS NULL ORDER BY w.id
"""
)


def _held(condition: str = "", parameters: Sequence[object] = ()) -> dict[str, list[fleet.Row]]:
    """Live placements by workload, each with its spans, in a fixed number of queries."""
    spans: dict[str, list[fleet.Row]] = {}
    where = (
        f" AND s.placement_id IN (SELECT p.id FROM scheduler_placement p"  # noqa: S608  # constants
        f" WHERE p.released_at IS NULL{condition})"
        if condition
        else ""
    )
    for placement, *span in fleet.rows(_HELD_SPANS + where, parameters):
        spans.setdefault(placement, []).append(tuple(span))
    found: dict[str, list[fleet.Row]] = {}
    for workload, *row in fleet.rows(_HELD + condition, parameters):
        found.setdefault(workload, []).append((*row, spans.get(row[0], [])))
    return found


def _held_view(row: fleet.Row) -> HeldView:
    id, pod_set, node, flavor, amount, cpu, memory, rank, leaving, spans = row
    held = tuple((DeviceId(device), Span(start, end)) for device, start, end in spans)
    return HeldView(
        PlacementId(id),
        PodSetId(pod_set),
        NodeId(node),
        FlavorId(flavor),
        amount,
        cpu,
        memory,
        held,
        rank,
        leaving,
    )


def held_on(*, nodes: Iterable[NodeId]) -> list[HeldView]:
    """What holds room on these nodes now, for the applier's second look."""
    found = _held(" AND p.node_id = ANY(%s::uuid[])", [list(nodes)])
    return [_held_view(row) for rows in found.values() for row in rows]


# As `_known`, of what holds: its row, its placements' and what it asks for.
_holders: dict[str, tuple[fleet.Row, list[fleet.Row], Asked, HoldingView]] = {}


def _holding(
    rows: Sequence[fleet.Row], asks: Mapping[str, Asked]
) -> tuple[tuple[HoldingView, ...], dict[WorkloadId, State]]:
    global _holders
    held, holders = _held(), {}
    states = {}
    for row in rows:
        id, state = row[0], State(row[8])
        placed, ask, kept = held.get(id, []), asks[id], _holders.get(id)
        same = kept is not None and kept[:3] == (row, placed, ask)
        view = kept[3] if kept and same else _holder(row, placed, ask)
        holders[id] = row, placed, ask, view
        states[WorkloadId(id)] = state
    _holders = holders
    return tuple(view for *_, view in holders.values()), states


def _holder(row: fleet.Row, placed: Iterable[fleet.Row], ask: Asked) -> HoldingView:
    id, project, cluster, priority, preemptible, admitted = row[:6]
    started, limit_s, state, stop, user, checkpointed, moved = row[6:13]
    idle, warned, to_better, _ = row[13:]
    returns = not stop or state == State.PREEMPTING
    return HoldingView(
        WorkloadId(id),
        ProjectId(project),
        ClusterId(cluster),
        priority,
        preemptible,
        admitted,
        tuple(map(_held_view, placed)),
        started,
        limit_s,
        releasing=stop,
        pod_sets=ask.pod_sets if returns else (),
        clusters=ask.clusters,
        user=UserId(user),
        checkpointed_at=checkpointed,
        topology=ask.topology,
        array=ask.array,
        moved_at=moved,
        move_to_better=to_better,
        idle_since=idle,
        idle_warned_at=warned,
    )
