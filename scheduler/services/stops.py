"""Asks clusters to end the pods of live attempts, at once or after a notice. All of it is rows of
the outbox, in the caller's transaction."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models.functions import Now

from controlplane.kernel import hints, statements
from scheduler.models import Attempt, Operation, OperationKind, Workload, WorkloadEvent


def stop(*, workload_ids: Sequence[UUID]) -> None:
    """At once, also of those that were given notice."""
    stop_attempts(attempt_ids=_live(workload_ids))


def stop_attempts(*, attempt_ids: Sequence[UUID]) -> None:
    """As `stop`."""
    _ask(attempt_ids)
    _without_waiting(attempt_ids)


def evict(*, workload_ids: Sequence[UUID], at: datetime, speed: float = 1.0) -> None:
    """After the notice that each has asked for, where it has run and nothing else is to be done
    in its cluster; of the others at once. `speed` is how many of its seconds pass in one."""
    if not workload_ids:
        return
    told = _to_be_told(workload_ids)
    _ask([id for id in _live(workload_ids) if id not in told])
    if not told:
        return
    Operation.objects.bulk_create(
        operation
        for attempt, (_, notice_s) in told.items()
        for operation in (
            Operation(attempt_id=attempt, kind=OperationKind.NOTICE),
            Operation(
                attempt_id=attempt,
                kind=OperationKind.STOP,
                due_at=Now() + timedelta(seconds=notice_s / speed),
            ),
        )
    )
    with statements.cursor() as cursor:
        cursor.execute(
            "UPDATE scheduler_workload SET notice_until = %s + notice_s * interval '1 second'"
            " WHERE id = ANY(%s)",
            [at, [workload for workload, _ in told.values()]],
        )
    _tell(
        {
            workload: f"it has {notice_s} s to save its work; then its pods are stopped"
            for workload, notice_s in told.values()
        },
        at,
    )


def end_notice(*, workload_id: UUID, at: datetime) -> None:
    """Its work is saved: its pods need not run on. Nothing to do where it was given no notice."""
    noticed = Workload.objects.filter(id=workload_id, notice_until__gt=at)
    if noticed.update(notice_until=at):
        _without_waiting(_live([workload_id]))
        _tell({workload_id: "its work is saved, and its pods are stopped"}, at)


def _live(workload_ids: Sequence[UUID]) -> list[UUID]:
    live = Attempt.objects.filter(workload_id__in=workload_ids, ended_at__isnull=True)
    return list(live.values_list("id", flat=True))


_TOLD = """
SELECT a.id, a.workload_id, w.notice_s
FROM scheduler_attempt a JOIN scheduler_workload w ON w.id = a.workload_id
WHERE a.workload_id = ANY(%s) AND a.ended_at IS NULL
  AND w.notice_s > 0 AND w.started_at IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM scheduler_operation o
                  WHERE o.attempt_id = a.id AND (o.done_at IS NULL OR o.kind = 'stop'))
ORDER BY a.id
"""


def _to_be_told(workload_ids: Sequence[UUID]) -> dict[UUID, tuple[UUID, int]]:
    """Attempt → its workload and how many seconds of notice that has."""
    with statements.cursor() as cursor:
        cursor.execute(_TOLD, [list(workload_ids)])
        return {attempt: (workload, notice_s) for attempt, workload, notice_s in cursor}


def _ask(attempts: Sequence[UUID]) -> None:
    Operation.objects.bulk_create(
        [Operation(attempt_id=id, kind=OperationKind.STOP) for id in attempts],
        ignore_conflicts=True,
    )
    hints.hint(hints.DISPATCH)


def _without_waiting(attempts: Sequence[UUID]) -> None:
    """Stops that wait for the end of a notice are due now; those that failed keep their time."""
    waiting = Operation.objects.filter(
        attempt_id__in=attempts,
        kind=OperationKind.STOP,
        done_at__isnull=True,
        failures=0,
        due_at__gt=Now(),
    )
    if waiting.update(due_at=Now()):
        hints.hint(hints.DISPATCH)


def _tell(messages: Mapping[UUID, str], at: datetime) -> None:
    """On the workloads' timelines."""
    WorkloadEvent.objects.bulk_create(
        WorkloadEvent(workload_id=id, at=at, kind="notice", message=message)
        for id, message in messages.items()
    )
