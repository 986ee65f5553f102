"""The one place where `Workload.state` changes: compare-and-set, timeline and audit, together."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import connection, transaction

from controlplane.audit import services as audit
from scheduler.core.lifecycle import State, allowed
from scheduler.models import WorkloadEvent


@dataclass(frozen=True, slots=True)
class Step:
    """One workload's move. `version` None matches any; `at` None is the moment of the call."""

    workload_id: UUID
    project_id: UUID
    before: State
    after: State
    message: str = ""
    version: int | None = None
    at: datetime | None = None


_MOVE = """
UPDATE scheduler_workload w SET
    state = s.after,
    version = w.version + 1,
    admitted_at = CASE s.after WHEN 'ADMITTED' THEN s.at WHEN 'PENDING' THEN NULL
                               ELSE w.admitted_at END,
    started_at = CASE s.after WHEN 'RUNNING' THEN s.at WHEN 'PENDING' THEN NULL
                              ELSE w.started_at END,
    ended_at = CASE WHEN s.after IN ('SUCCEEDED', 'FAILED', 'CANCELLED') THEN s.at END,
    reason = NULL,
    reason_at = NULL
FROM unnest(%s::uuid[], %s::text[], %s::text[], %s::int[], %s::timestamptz[])
     AS s(id, before, after, version, at)
WHERE w.id = s.id AND w.state = s.before AND (s.version IS NULL OR w.version = s.version)
RETURNING w.id
"""


def transition(
    steps: Sequence[Step], *, actor: str, actor_name: str, at: datetime
) -> frozenset[UUID]:
    """Move those workloads that are still where their step begins; the ids of those that moved.

    A workload that somebody else moved first is left alone and not in the answer. Raises
    ValueError for a step that the lifecycle does not know, which is a defect. Runs in the caller's
    transaction.
    """
    for step in steps:
        if not allowed(step.before, step.after):
            raise ValueError(f"no transition {step.before} → {step.after}")
    if not steps:
        return frozenset()
    with transaction.atomic(savepoint=False):
        with connection.cursor() as cursor:
            cursor.execute(
                _MOVE,
                [
                    [step.workload_id for step in steps],
                    [step.before.value for step in steps],
                    [step.after.value for step in steps],
                    [step.version for step in steps],
                    [step.at or at for step in steps],
                ],
            )
            moved = frozenset(row[0] for row in cursor.fetchall())
        made = [step for step in steps if step.workload_id in moved]
        WorkloadEvent.objects.bulk_create(
            [
                WorkloadEvent(
                    workload_id=step.workload_id,
                    at=step.at or at,
                    kind="state",
                    before=step.before.value,
                    after=step.after.value,
                    message=step.message[:500],
                )
                for step in made
            ]
        )
        audit.record(
            actor=actor,
            actor_name=actor_name,
            at=at,
            entries=[
                audit.Entry(
                    action="workload.state",
                    target_type="workload",
                    target_id=step.workload_id,
                    project_id=step.project_id,
                    before={"state": step.before.value},
                    after={"state": step.after.value, "why": step.message},
                )
                for step in made
            ],
        )
    return moved
