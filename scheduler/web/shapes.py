"""Rows as the plain JSON that the serializers describe. A test holds the two together."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from django.conf import settings

from scheduler.models import Attempt, Origin, Placement, PodSet, Workload, WorkloadEvent
from scheduler.selectors import arrays, choices, decisions, queues
from scheduler.selectors.arrays import Need, Sum, Ties
from scheduler.selectors.decisions import Decided
from scheduler.selectors.dispatch import Dispatch
from scheduler.selectors.idleness import Idle
from scheduler.selectors.standing import Standing
from scheduler.web import terms, topologies, wishes
from scheduler.web.gate_input import GateOut

type Out = dict[str, Any]  # Any: JSON values, UUID, datetime


def submitted(rows: Iterable[Workload]) -> list[Out]:
    return [{"id": row.id, "name": row.name, "state": row.state} for row in rows]


def workloads(rows: Iterable[Workload]) -> list[Out]:
    """Rows of `selectors.workloads`."""
    listed = list(rows)
    sums = arrays.sums(row.array_id for row in listed)
    return [workload(row, sums.get(row.array_id) if row.array_id else None) for row in listed]


def workload(row: Workload, of: Sum | None) -> Out:
    """A row of `selectors.workloads`, and its array."""
    pod_sets = list(row.pod_sets.all())
    return {
        "id": row.id,
        "project": row.project_id,
        "name": row.name,
        "state": row.state,
        "version": row.version,
        "priority_class": row.priority_class,
        "preemptible": row.preemptible,
        "run_time_limit_s": row.run_time_limit_s,
        "submitted_by": row.submitted_by.get_username(),
        "submitted_at": row.submitted_at,
        "admitted_at": row.admitted_at,
        "started_at": row.started_at,
        "ended_at": row.ended_at,
        "checkpointed_at": row.checkpointed_at,
        **_asks(pod_sets),
        "reason": row.reason,
        "reason_at": row.reason_at,
        "estimate": estimate(row),
        "array_index": row.array_index,
        "array": None if of is None else array(of),
    }


def array(of: Sum) -> Out:
    return asdict(of)


def detail(
    row: Workload,
    ties: Ties,
    attempts: Sequence[Attempt],
    placements: Iterable[Placement],
    dispatch: Dispatch | None,
    standing: Iterable[Standing],
    idle: Idle | None,
) -> Out:
    listed = list(placements)
    held = Counter(
        each.pod_set_id
        for each in listed
        if each.released_at is None and each.attempt.ended_at is None
    )
    return {
        **workload(row, ties.array),
        "depends_on": [_need(each) for each in ties.needs],
        "gates": GateOut(ties.gates, many=True).data,
        "clusters": [cluster.name for cluster in row.clusters.all()],
        "origin": _origin(row),
        "topology": topologies.shown(row),
        "retries": terms.shown(row),
        "failures": row.failures,
        "node_losses": row.node_losses,
        "grace_s": row.grace_s,
        "notice_s": row.notice_s,
        "cluster_loss_requeue_s": row.cluster_loss_requeue_s,
        "move_to_better": row.move_to_better,
        "moved_at": row.moved_at,
        "notice_until": row.notice_until,
        "attempts": [_attempt(each) for each in attempts],
        "labels": row.labels,
        "pod_sets": [_pod_set(each, held[each.id]) for each in row.pod_sets.all()],
        "placements": [_placement(each) for each in listed],
        "dispatch": None if dispatch is None else asdict(dispatch),
        "idle": None if idle is None else _idle(idle),
        "priority": row.priority,
        "standing": [asdict(each) for each in standing],
    }


def _origin(row: Workload) -> Out | None:
    origin: Origin | None = getattr(row, "origin", None)
    if origin is None:
        return None
    return {
        "cluster": origin.cluster.name,
        "namespace": row.project.namespace,
        "api_version": origin.api_version,
        "kind": origin.kind,
        "name": origin.name,
        "creator": origin.creator,
    }


def _idle(of: Idle) -> Out:
    return {
        "since": of.since,
        "devices_milli": of.held_milli,
        "warned_at": of.warned_at,
        "frees_at": of.frees_at,
    }


def queued(rows: list[Workload], standing: Iterable[Standing], *, continued: bool) -> list[Out]:
    """A page of a queue with positions; `continued` says that rows stand before it."""
    stands = [asdict(each) for each in standing]
    first = queues.position_of(rows[0]) if rows and continued else 1
    return [
        {
            "position": position,
            "workload": row.id,
            "name": row.name,
            "priority_class": row.priority_class,
            "priority": row.priority,
            "standing": stands,
            "submitted_by": row.submitted_by.get_username(),
            "submitted_at": row.submitted_at,
            **_asks(list(row.pod_sets.all())),
            "reason": row.reason,
            "reason_at": row.reason_at,
            "estimate": estimate(row),
        }
        for position, row in enumerate(rows, first)
    ]


def events(rows: Sequence[WorkloadEvent]) -> list[Out]:
    cycles = decisions.of_events(rows)
    return [_event(row, cycles.get(row.id)) for row in rows]


def _event(row: WorkloadEvent, decided: Decided | None) -> Out:
    return {
        "id": row.id,
        "at": row.at,
        "kind": row.kind,
        "before": row.before,
        "after": row.after,
        "message": row.message,
        "decided": None if decided is None else asdict(decided),
    }


def estimate(row: Workload) -> Out | None:
    """The newest estimate of a row with `latest`, None when none was made."""
    latest: Out | None = getattr(row, "latest")  # noqa: B009  # an annotation, unknown to the class
    if latest is None:
        return None
    as_of = latest["as_of"]
    moment = datetime.fromisoformat(as_of) if isinstance(as_of, str) else as_of
    return {**latest, "as_of": moment if moment.tzinfo else moment.replace(tzinfo=UTC)}


def _asks(pod_sets: list[PodSet]) -> Out:
    names = [each.flavor.name for pod_set in pod_sets for each in pod_set.accepted.all()]
    return {
        "pods": sum(pod_set.count for pod_set in pod_sets),
        "gpus": sum(pod_set.count * pod_set.gpu_count for pod_set in pod_sets),
        "flavors": list(dict.fromkeys(names)),
    }


def _need(of: Need) -> Out:
    return {
        "workload": of.workload,
        "array": of.array,
        "kind": of.kind,
        "on_unmet": of.on_unmet,
        "unmet_at": of.unmet_at,
        "settled_at": of.settled_at,
    }


def _pod_set(row: PodSet, held_count: int) -> Out:
    return {
        "name": row.name,
        "count": row.count,
        "min_count": row.min_count,
        "cpu_milli": row.cpu_milli,
        "memory_mib": row.memory_mib,
        "gpu_count": row.gpu_count,
        "gpu_milli": row.gpu_milli,
        "flavors": [each.flavor.name for each in row.accepted.all()],
        "any_order": row.any_order,
        "wish": wishes.shown(row),
        "as_preferred": row.as_preferred,
        "gpu_memory_mib": row.gpu_memory_mib,
        "least_isolation": row.least_isolation,
        "topology": topologies.shown_of_set(row),
        "image": row.image,
        "command": row.command,
        "args": row.args,
        "env": row.env,
        "held_count": held_count,
    }


def _attempt(row: Attempt) -> Out:
    return {
        "number": row.number,
        "cluster": row.cluster.name,
        "created_at": row.created_at,
        "ended_at": row.ended_at,
        "outcome": row.outcome,
        "failure": row.failure,
        "unseen_since": row.unseen_since,
        "trouble": row.trouble,
        "lost_milli_s": row.lost_milli_s,
        "choice": choices.shown(row.choice),
    }


def _placement(row: Placement) -> Out:
    return {
        "id": row.id,
        "attempt": row.attempt.number,
        "rank": row.rank,
        "pod_set": row.pod_set.name,
        "pod_name": getattr(row, "pod"),  # noqa: B009  # an annotation, unknown to the class
        "cluster": row.node.cluster.name,
        "node": row.node.name,
        "topology": row.node.topology(settings.BERTH_TOPOLOGY_LEVELS),
        "flavor": row.flavor.name,
        "amount_milli": row.amount_milli,
        "spans": [
            {"device": each.device.ordinal, "start": each.span.lower, "end": each.span.upper}
            for each in row.spans.all()
        ],
        "started_at": row.started_at,
        "ended_at": row.ended_at,
        "released_at": row.released_at,
        "dismissed_at": row.dismissed_at,
        "exit_code": row.exit_code,
        "end_reason": row.end_reason,
    }
