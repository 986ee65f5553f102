"""Who waits, as the core sees it. Many wait for long: a process keeps what it has read, and reads
what has changed since.

A change makes a new version of a row, by a transaction with a number of its own. What no snapshot
before could see was made by that snapshot's oldest unfinished transaction or a later one, so all
that changed is among what such ones made. Nothing tells who left but that there are fewer.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple
from uuid import UUID

from scheduler.core.snapshot import PendingView
from scheduler.core.submitted import TurnView
from scheduler.core.units import ProjectId, UserId, WorkloadId
from scheduler.core.waits import GateView, GatheringView, StraysView, UnmetView
from scheduler.selectors import asked, fleet
from scheduler.selectors.asked import Asked
from scheduler.selectors.caught import FREE
from scheduler.selectors.gates import OF_WAITING


class Waiting(NamedTuple):
    """One that waits: the core's view of it, the columns that the view follows from, and what else
    apply needs of it. `reason_at` is in seconds of the epoch."""

    view: PendingView
    columns: fleet.Row
    version: int
    attempts: int
    reason_code: str
    reason_at: float | None
    array: UUID | None


@dataclass(frozen=True, slots=True)
class Read:
    """What a process read last: who waits, by id and in its order, who of them for what, for
    whom, for which pods and for the end of which.

    `since` is the oldest transaction that was not seen to have ended; None where the reader had
    written itself, which it may take back. `under` is what else all of it holds under: the server
    since its last checkpoint, the database in it, the projects that have caps on submitters. A
    server that has crashed, or another in its stead, gives numbers of lost transactions again; it
    begins with a checkpoint.
    """

    since: str | None
    under: list[object]
    waiting: dict[WorkloadId, Waiting]
    unmet: dict[str, UnmetView]
    gates: dict[str, GateView]
    gathering: dict[str, GatheringView]
    strays: dict[str, StraysView]


NOTHING = Read(None, [], {}, {}, {}, {}, {})
_last = NOTHING

# `age` counts back from one number to all, so it compares them though they begin anew at times.
_HEAD = """
SELECT CASE WHEN pg_current_xact_id_if_assigned() IS NULL
            THEN pg_snapshot_xmin(pg_current_snapshot())::xid::text END,
       count(*), array_agg(w.id::text) FILTER (WHERE age(w.xmin) <= age(%s::xid)),
       (SELECT redo_lsn::text FROM pg_control_checkpoint()),
       (SELECT oid FROM pg_database WHERE datname = current_database()),
       array(SELECT id::text FROM tenants_project
             WHERE user_max_running IS NOT NULL OR user_max_gpus_milli IS NOT NULL ORDER BY id)
FROM scheduler_workload w WHERE w.ended_at IS NULL AND w.state = 'PENDING'
"""
_ROWS = f"""
SELECT w.id::text, w.project_id::text, w.priority, w.preemptible,
       extract(epoch FROM w.submitted_at)::bigint, w.run_time_limit_s,
       coalesce(extract(epoch FROM w.not_before)::bigint, 0),
       {fleet.SUBMITTER}, w.asks_version,
       extract(epoch FROM w.turn_at)::bigint, w.turn_of::text,
       w.version, greatest(w.attempts_seen,
           CASE WHEN w.version = 1 THEN 0  -- it never moved, so nothing tried it
                ELSE (SELECT max(a.number) FROM scheduler_attempt a
                      WHERE a.workload_id = w.id) END),
       coalesce(w.reason->>'code', ''), extract(epoch FROM w.reason_at)::float8, w.array_id
FROM scheduler_workload w JOIN tenants_project t ON t.id = w.project_id
WHERE w.ended_at IS NULL AND w.state = 'PENDING'
"""  # noqa: S608  # a constant
_THESE = " AND w.id = ANY(%s::uuid[])"
_IDS = "SELECT id::text FROM scheduler_workload WHERE ended_at IS NULL AND state = 'PENDING'"
# By who waits: a workload or an array.
_UNMET = """
SELECT coalesce(workload_id, array_id)::text, count(*),
       coalesce(min(coalesce(on_workload_id, on_array_id)::text)
                FILTER (WHERE unmet_at IS NOT NULL),
                min(coalesce(on_workload_id, on_array_id)::text)),
       count(unmet_at)
FROM scheduler_dependency WHERE settled_at IS NULL GROUP BY 1
"""
# The same of who waits for somebody's word: the gate that ends first, and how many there are.
_GATES = f"""
SELECT DISTINCT ON (1) coalesce(g.workload_id, g.array_id)::text, g.name::text, u.username::text,
       extract(epoch FROM g.created_at)::bigint, extract(epoch FROM g.deadline_at)::bigint,
       count(*) OVER (PARTITION BY coalesce(g.workload_id, g.array_id))
FROM scheduler_gate g JOIN tenants_user u ON u.id = g.owner_id
WHERE g.state = 'waiting' AND {OF_WAITING} ORDER BY 1, g.deadline_at, g.name
"""  # noqa: S608  # a constant

# What was made in a cluster, and of whose pods too few are free there: how many too few.
_GATHERING = f"""
SELECT o.workload_id::text, sum(greatest(s.min_count - h.here, 0))::int, sum(s.min_count)::int
FROM scheduler_origin o JOIN scheduler_workload w ON w.id = o.workload_id
JOIN scheduler_podset s ON s.workload_id = w.id
CROSS JOIN LATERAL (SELECT count(*) AS here FROM scheduler_caughtpod c
                    WHERE c.pod_set_id = s.id AND {FREE}) h
WHERE w.ended_at IS NULL AND w.state = 'PENDING'
GROUP BY 1 HAVING bool_or(h.here < s.min_count)
"""  # noqa: S608  # a constant

# Of whom pods run that the database does not know: how many in one cluster.
_STRAYS = """
SELECT DISTINCT ON (1) s.workload_id::text, count(*)::int, c.name
FROM scheduler_stray s JOIN clusters_cluster c ON c.id = s.cluster_id
WHERE s.workload_id IS NOT NULL GROUP BY 1, 3 ORDER BY 1, 3
"""


def last() -> Read:
    """What the process read last; to be asked before the moment of the next reading: of another
    thread's, of a later one, what had not changed yet would not be read."""
    return _last


def read(*, before: Read, holding: Collection[str]) -> Mapping[WorkloadId, Waiting]:
    """All that wait, by id, in its order. `holding` are those that hold something, of whom nobody
    waits. In a transaction that is one moment of the database, and later than `before`: six
    queries, and seven for what changed."""
    global _last
    [[since, count, changed, *under]] = fleet.rows(_HEAD, [before.since])
    if before.since is None or before.under != under:
        rows, known = fleet.rows(_ROWS), {}
    else:
        rows, known = fleet.rows(_ROWS + _THESE, [changed]) if changed else [], before.waiting
    asks = asked.of({row[0]: row[8] for row in rows})
    found = {row[0]: _waiting(row, asks[row[0]], before.waiting.get(row[0])) for row in rows}
    waiting = _now(known | found, count, holding)
    unmet = {of: UnmetView(*told) for of, *told in fleet.rows(_UNMET)}
    gates = {of: GateView(*told) for of, *told in fleet.rows(_GATES)}
    gathering = {of: GatheringView(*told) for of, *told in fleet.rows(_GATHERING)}
    strays = {of: StraysView(*told) for of, *told in fleet.rows(_STRAYS)}
    told = unmet, gates, gathering, strays
    same = told == (before.unmet, before.gates, before.gathering, before.strays)
    for id in found if same else waiting:
        one = waiting[id]
        array = str(one.array) if one.array else ""
        view, pods, unknown = one.view, gathering.get(id), strays.get(id)
        waits_for, gate = _both(unmet.get(id), unmet.get(array)), gates.get(array or id)
        if (view.waits_for, view.gate, view.gathering, view.strays) != (
            waits_for,
            gate,
            pods,
            unknown,
        ):
            now = replace(view, waits_for=waits_for, gate=gate, gathering=pods, strays=unknown)
            waiting[id] = one._replace(view=now)
    _last = Read(since, under, waiting, unmet, gates, gathering, strays)
    return waiting


def _now(
    known: dict[WorkloadId, Waiting], count: int, holding: Collection[str]
) -> dict[WorkloadId, Waiting]:
    """Of those that are `known`, the `count` who wait. Who waited and does not mostly holds
    something now; where that does not explain how few there are, the database is asked."""
    left = known.keys() & holding
    if len(known) - len(left) != count:
        left = known.keys() - {id for [id] in fleet.rows(_IDS)}
    for id in left:
        del known[id]
    ids = list(known)
    return known if ids == sorted(ids) else {id: known[id] for id in sorted(ids)}


def _waiting(row: fleet.Row, ask: Asked, kept: Waiting | None) -> Waiting:
    columns = row[:11]
    view = kept.view if kept and kept.columns == columns else _view(columns, ask)
    return Waiting(view, columns, *row[11:])


def _view(columns: fleet.Row, ask: Asked) -> PendingView:
    id, project, priority, preemptible, submitted_at, limit_s, not_before, user, _, *turn = columns
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
        turn=None if turn == [None, None] else TurnView(*turn),
    )


def _both(own: UnmetView | None, array: UnmetView | None) -> UnmetView | None:
    """What an element waits for by itself, and with all of its array."""
    if own is None or array is None:
        return own or array
    first = array.first if array.in_vain_count > own.in_vain_count else own.first
    count, in_vain = own.count + array.count, own.in_vain_count + array.in_vain_count
    return UnmetView(count, first, in_vain)
