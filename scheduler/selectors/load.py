"""Rows → Snapshot, in one REPEATABLE READ READ ONLY transaction. Reads only; decides nothing."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from controlplane.kernel.moment import frozen
from scheduler.core.lifecycle import State
from scheduler.core.snapshot import HeldView, HoldingView, Snapshot
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
from scheduler.selectors import asked, budgets, fleet, rates, waiting
from scheduler.selectors.asked import Asked
from scheduler.selectors.idleness import IS_FRESH
from scheduler.selectors.landings import landings
from scheduler.selectors.waiting import Waiting
from tenants.selectors import past


@dataclass(frozen=True, slots=True)
class Loaded:
    """A snapshot and, by workload, what only the shell needs. Ids are the rows' ids as text."""

    snapshot: Snapshot
    waiting: Mapping[WorkloadId, Waiting]
    states: dict[WorkloadId, State]


def load(*, at: datetime) -> Loaded:
    """Everything a plan needs, as of one moment of the database."""
    before = waiting.last()
    with frozen():
        return load_here(at=at, before=before)


def load_here(*, at: datetime, before: waiting.Read | None = None) -> Loaded:
    """As `load`, inside a transaction that the caller has made consistent; with what was read
    `before` that began, or, where no other thread reads, last."""
    holders = {row[0]: row for row in fleet.rows(_HOLDING)}
    no_more = {id for id, row in holders.items() if row[8] != State.PENDING}
    waits = waiting.read(before=before or waiting.last(), holding=no_more)
    holding, states = _holding(holders.values())
    asked.keep(waits, holders)
    [[reserved, landing, budgeted, rated]] = fleet.rows(_THERE, [at])
    flavors, clusters = fleet.flavors(), fleet.clusters()
    snapshot = Snapshot(
        at=int(at.timestamp()),
        flavors=flavors,
        clusters=clusters,
        queues=fleet.queues(past=past.decayed(at=at)),
        reservations=fleet.reservations(at=at) if reserved else (),
        cohorts=fleet.cohorts(),
        pending=tuple(one.view for one in waits.values()),
        holding=holding,
        levels=fleet.levels(),
        landings=landings() if landing else (),
        budgets=budgets.views(at=at) if budgeted else (),
        rates=rates.rates(flavors=flavors, clusters=clusters, at=at) if rated else (),
    )
    return Loaded(snapshot, waits, states)


# What there mostly is nothing of, asked at once.
_THERE = f"""
SELECT EXISTS (SELECT FROM tenants_reservation WHERE cancelled_at IS NULL),
       EXISTS (SELECT FROM scheduler_landing), EXISTS (SELECT FROM tenants_budget),
       {rates.OF_CLUSTERS}
"""  # noqa: S608  # a constant

# By what is not released rather than by state: capacity is held until the pod is seen gone.
_HELD = """
SELECT p.attempt_id::text, p.id::text, p.pod_set_id::text, p.node_id::text, p.flavor_id::text,
       p.amount_milli, p.cpu_milli, p.memory_mib, p.rank, p.dismissed_at IS NOT NULL
FROM scheduler_placement p WHERE p.released_at IS NULL
"""
_HELD_SPANS = """
SELECT s.placement_id::text, s.device_id::text, lower(s.span), upper(s.span)
FROM scheduler_placementspan s WHERE s.released_at IS NULL
"""
# An attempt that ended unseen holds by itself, under its own id: its workload waits, or holds more
# elsewhere. Nothing is asked of it but to go, once its cluster is heard.
_HOLDING = f"""
SELECT w.id::text, w.project_id::text, a.cluster_id::text, w.priority, w.preemptible,
       extract(epoch FROM coalesce(w.admitted_at, a.created_at))::bigint,
       extract(epoch FROM w.started_at)::bigint, w.run_time_limit_s, w.state,
       EXISTS (SELECT 1 FROM scheduler_operation o
               WHERE o.attempt_id = a.id AND o.kind = 'stop'),
       {fleet.SUBMITTER},
       extract(epoch FROM w.checkpointed_at)::bigint, extract(epoch FROM w.moved_at)::bigint,
       extract(epoch FROM i.since)::bigint, extract(epoch FROM i.warned_at)::bigint,
       w.move_to_better, w.asks_version, a.id::text, a.ahead_of::text[]
FROM scheduler_workload w JOIN scheduler_attempt a ON a.workload_id = w.id
JOIN tenants_project t ON t.id = w.project_id JOIN clusters_cluster c ON c.id = a.cluster_id
LEFT JOIN scheduler_idleness i ON i.attempt_id = a.id AND w.state = 'RUNNING' AND {IS_FRESH}
WHERE a.ended_at IS NULL
UNION ALL
SELECT a.id::text, w.project_id::text, a.cluster_id::text, w.priority, false,
       extract(epoch FROM a.created_at)::bigint,
       (SELECT extract(epoch FROM max(p.started_at))::bigint FROM scheduler_placement p
        WHERE p.attempt_id = a.id AND p.released_at IS NULL),
       w.run_time_limit_s, NULL, c.state = 'active',
       {fleet.SUBMITTER},
       NULL, NULL, NULL, NULL, false, NULL, a.id::text, ARRAY[]::text[]
FROM scheduler_attempt a JOIN scheduler_workload w ON w.id = a.workload_id
JOIN tenants_project t ON t.id = w.project_id JOIN clusters_cluster c ON c.id = a.cluster_id
WHERE a.unseen_since IS NOT NULL ORDER BY 1
"""  # noqa: S608  # constants


def _held(condition: str = "", parameters: Sequence[object] = ()) -> dict[str, list[fleet.Row]]:
    """Live placements by attempt, each with its spans, in a fixed number of queries."""
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
    for attempt, *row in fleet.rows(_HELD + condition, parameters):
        found.setdefault(attempt, []).append((*row, spans.get(row[0], [])))
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


UNSEEN = Asked()
"""An attempt that ended unseen does not queue again: its workload does."""

# Of what holds: its row, its placements' and what it asks for, from which the view follows.
_holders: dict[str, tuple[fleet.Row, list[fleet.Row], Asked, HoldingView]] = {}


def _holding(
    rows: Collection[fleet.Row],
) -> tuple[tuple[HoldingView, ...], dict[WorkloadId, State]]:
    global _holders
    asks = asked.of({row[0]: row[16] for row in rows if row[8] is not None})
    held, holders = _held(), {}
    states = {}
    for row in rows:
        id, state, attempt = row[0], row[8], row[17]
        placed, ask, kept = held.get(attempt, []), asks.get(id, UNSEEN), _holders.get(id)
        same = kept is not None and kept[:3] == (row, placed, ask)
        view = kept[3] if kept and same else _holder(row, placed, ask)
        holders[id] = row, placed, ask, view
        if state is not None:
            states[WorkloadId(id)] = State(state)
    _holders = holders
    return tuple(view for *_, view in holders.values()), states


def _holder(row: fleet.Row, placed: Iterable[fleet.Row], ask: Asked) -> HoldingView:
    id, project, cluster, priority, preemptible, admitted = row[:6]
    started, limit_s, state, stop, user, checkpointed, moved = row[6:13]
    idle, warned, to_better = row[13:16]
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
        ahead_of=tuple(map(WorkloadId, row[18])),
    )
