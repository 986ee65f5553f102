"""The one place where `Workload.state` changes: compare-and-set, timeline and audit, together."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import transaction

from controlplane.audit import services as audit
from controlplane.kernel import bulk, statements
from controlplane.kernel.ids import uuid7s
from scheduler.core.lifecycle import State, allowed


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
_MOVE = f"""
WITH s AS (
    SELECT u.* FROM unnest(
        %s::uuid[], %s::uuid[], %s::text[], %s::text[], %s::text[], %s::int[],
        %s::timestamptz[], %s::timestamptz[], %s::uuid[], %s::uuid[]
    ) AS u(id, project_id, before, after, message, version, at, started_at, event_id, audit_id)
    JOIN scheduler_workload k ON k.id = u.id ORDER BY k.id FOR NO KEY UPDATE OF k
), moved AS (
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
    RETURNING s.*, p.tenant_id
), told AS (
    INSERT INTO scheduler_workloadevent (id, workload_id, at, kind, before, after, message)
    SELECT event_id, id, at, 'state', before, after, left(message, 500) FROM moved
), recorded AS (
    {audit.INSERT}
    SELECT audit_id, %s, %s, %s, 'workload.state', 'workload', id, tenant_id, project_id,
           jsonb_build_object('state', before),
           jsonb_build_object('state', after, 'why', message)
    FROM moved
)
SELECT id FROM moved
"""  # noqa: S608  # constants


def transition(
    steps: Sequence[Step], *, actor: str, actor_name: str, at: datetime
) -> frozenset[UUID]:
    """Move those workloads that are still where their step begins; the ids of those that moved.

    A workload that somebody else moved first is left alone and not in the answer. Raises
    ValueError for a step that the lifecycle does not know, which is a defect. Runs in the caller's
    transaction, which from there on reads no table whole (see `_MOVE`).
    """
    for before, after in {(step.before, step.after) for step in steps}:
        if not allowed(before, after):
            raise ValueError(f"no transition {before} → {after}")
    if not steps:
        return frozenset()
    with transaction.atomic(savepoint=False), statements.cursor() as cursor:
        cursor.execute(
            _MOVE,
            [
                bulk.array(step.workload_id for step in steps),
                bulk.array(step.project_id for step in steps),
                bulk.array(step.before.value for step in steps),
                bulk.array(step.after.value for step in steps),
                bulk.array(step.message for step in steps),
                bulk.array(step.version for step in steps),
                bulk.array(step.at or at for step in steps),
                bulk.array(step.started_at for step in steps),
                bulk.array(uuid7s(len(steps))),
                bulk.array(uuid7s(len(steps))),
                at,
                actor,
                actor_name,
            ],
        )
        return frozenset(id for (id,) in cursor.fetchall())


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
