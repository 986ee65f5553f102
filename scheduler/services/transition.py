"""The one place where `Workload.state` changes: compare-and-set, timeline and audit, together."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import transaction

from controlplane.audit import services as audit
from controlplane.kernel import bulk, statements
from controlplane.kernel.ids import uuid7
from scheduler.core.lifecycle import State, allowed
from scheduler.models import WorkloadEvent


@dataclass(frozen=True, slots=True)
class Step:
    """One workload's move. `version` None matches any; `at` None is the moment of the call.

    `started_at` is for work that ended before it was seen to run.
    """

    workload_id: UUID
    project_id: UUID
    before: State
    after: State
    message: str = ""
    version: int | None = None
    at: datetime | None = None
    started_at: datetime | None = None


# Rows are locked by id, so that two that move the same workloads wait and don't block each other.
# From there to its end the transaction looks rows up by their keys: a session keeps the plans by
# which it checks foreign keys, and one that suited an empty table reads all of a large one.
_MOVE = """
WITH s AS (
    SELECT u.* FROM unnest(%s::uuid[], %s::text[], %s::text[], %s::int[], %s::timestamptz[],
                           %s::timestamptz[]) AS u(id, before, after, version, at, started_at)
    JOIN scheduler_workload k ON k.id = u.id ORDER BY k.id FOR NO KEY UPDATE OF k)
UPDATE scheduler_workload w SET
    state = s.after,
    version = w.version + 1,
    admitted_at = CASE s.after WHEN 'ADMITTED' THEN s.at WHEN 'PENDING' THEN NULL
                               ELSE w.admitted_at END,
    started_at = CASE s.after WHEN 'RUNNING' THEN s.at WHEN 'PENDING' THEN NULL
                              ELSE coalesce(w.started_at, s.started_at) END,
    notice_until = NULL,
    ended_at = CASE WHEN s.after IN ('SUCCEEDED', 'FAILED', 'CANCELLED') THEN s.at END,
    reason = NULL,
    reason_at = NULL
FROM s, tenants_project p, (SELECT set_config('enable_seqscan', 'off', true)) AS by_key
WHERE w.id = s.id AND w.state = s.before AND (s.version IS NULL OR w.version = s.version)
  AND p.id = w.project_id
RETURNING w.id, p.tenant_id
"""


def transition(
    steps: Sequence[Step], *, actor: str, actor_name: str, at: datetime
) -> frozenset[UUID]:
    """Move those workloads that are still where their step begins; the ids of those that moved.

    A workload that somebody else moved first is left alone and not in the answer. Raises
    ValueError for a step that the lifecycle does not know, which is a defect. Runs in the caller's
    transaction, which from there on reads no table whole (see `_MOVE`).
    """
    for step in steps:
        if not allowed(step.before, step.after):
            raise ValueError(f"no transition {step.before} → {step.after}")
    if not steps:
        return frozenset()
    with transaction.atomic(savepoint=False):
        with statements.cursor() as cursor:
            cursor.execute(
                _MOVE,
                [
                    bulk.array(step.workload_id for step in steps),
                    bulk.array(step.before.value for step in steps),
                    bulk.array(step.after.value for step in steps),
                    bulk.array(step.version for step in steps),
                    bulk.array(step.at or at for step in steps),
                    bulk.array(step.started_at for step in steps),
                ],
            )
            tenants: dict[UUID, UUID] = dict(cursor.fetchall())
        made = [step for step in steps if step.workload_id in tenants]
        bulk.insert(
            WorkloadEvent,
            id=[uuid7() for _ in made],
            workload_id=[step.workload_id for step in made],
            at=[step.at or at for step in made],
            kind="state",
            before=[step.before.value for step in made],
            after=[step.after.value for step in made],
            message=[step.message[:500] for step in made],
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
                    tenant_id=tenants[step.workload_id],
                    project_id=step.project_id,
                    before={"state": step.before.value},
                    after={"state": step.after.value, "why": step.message},
                )
                for step in made
            ],
        )
    return frozenset(tenants)


# All attempts are locked before the first workload: an array is made before it is looked up by.
_LOCK = """
WITH a AS MATERIALIZED (
    SELECT workload_id FROM scheduler_attempt WHERE id = ANY(%s) ORDER BY id FOR NO KEY UPDATE)
SELECT 1 FROM scheduler_workload WHERE id = ANY(ARRAY(SELECT workload_id FROM a))
ORDER BY id FOR NO KEY UPDATE
"""


def lock(attempts: Collection[UUID]) -> None:
    """Hold these attempts and their workloads until the transaction ends, each by id.

    The order that every writer keeps: quotas, attempts, workloads, placements, operations. Who
    judges an attempt holds it, so that nobody moves its workload meanwhile.
    """
    with statements.cursor() as cursor:
        cursor.execute(_LOCK, [list(attempts)])
