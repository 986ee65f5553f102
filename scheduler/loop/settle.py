"""What has been seen of an attempt's pods → what it means for the attempt and its workload.

What must not live here: how that is judged (progress.py), and what a report says of a pod
(observe.py).
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.db.models import F
from django.db.models.functions import Now

from controlplane.kernel import hints
from scheduler.core.lifecycle import State
from scheduler.loop.progress import Progress, verdict
from scheduler.loop.requests import is_gang
from scheduler.models import Attempt, AttemptOutcome, Leftover, Operation, OperationKind, Workload
from scheduler.services.transition import Step, transition

ACTOR = "system:observer"
PAUSE = timedelta(seconds=10)
"""Between a lost attempt and the next, in the installation's clock."""

_PROGRESS = """
SELECT a.id, a.workload_id, w.project_id, w.state, w.failures, a.trouble,
       count(*), count(p.started_at), count(p.released_at),
       count(*) FILTER (WHERE p.succeeded), count(*) FILTER (WHERE NOT p.succeeded),
       array_agg(DISTINCT p.end_reason) FILTER (WHERE NOT p.succeeded),
       max(p.exit_code) FILTER (WHERE p.end_reason <> 'Deleted'),
       max(p.started_at), max(p.ended_at)
FROM scheduler_attempt a
JOIN scheduler_workload w ON w.id = a.workload_id
JOIN scheduler_placement p ON p.attempt_id = a.id
WHERE a.id = ANY(%s) AND a.ended_at IS NULL
GROUP BY a.id, a.workload_id, w.project_id, w.state, w.failures, a.trouble
ORDER BY a.workload_id
"""


def settle(*, attempts: Collection[UUID], at: datetime) -> None:
    """Draw the conclusions for these attempts' workloads. In the caller's transaction.

    They are locked (`transition.lock`) there: two observers of one gang's pods may not both think
    that the other's pod still runs, and the workload has to be where it is judged to be.
    """
    with connection.cursor() as cursor:
        cursor.execute(_PROGRESS, [list(attempts)])
        rows = [Progress.of(row) for row in cursor.fetchall()]
    conclusions = [(row, found) for row in rows if (found := verdict(row, at=at))]
    moves = [(row, found) for row, found in conclusions if found.after is not None]
    moved = transition(
        [
            Step(
                row.workload_id,
                row.project_id,
                row.state,
                found.after,
                found.why,
                at=found.at,
                started_at=row.started_at if row.started == row.total else None,
            )
            for row, found in moves
            if found.after is not None
        ],
        actor=ACTOR,
        actor_name="observer",
        at=at,
    )
    ended = {
        row.attempt_id: (found.outcome, Leftover.SERVICE if is_gang(row.total) else Leftover.PODS)
        for row, found in moves
        if row.workload_id in moved and found.outcome
    }
    _end(ended, at)
    # What was due is settled with it: a start that opened all and died before it closed its row.
    Operation.objects.filter(attempt_id__in=list(ended), done_at__isnull=True).update(
        done_at=Now()
    )
    again = [row.workload_id for row, found in moves if found.after == State.PENDING]
    if again:
        hints.hint(hints.CYCLE)
    _count_failures(
        [row.workload_id for row, found in moves if found.failed and row.workload_id in moved], at
    )
    _stop({row.attempt_id: found.trouble for row, found in conclusions if found.stop})


def _end(attempts: Mapping[UUID, tuple[AttemptOutcome, Leftover]], at: datetime) -> None:
    """These attempts are over; what they leave in their clusters is `collect`'s."""
    if attempts:
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE scheduler_attempt a SET ended_at = %s, outcome = e.outcome,"
                " leftover = e.leftover, collect_at = clock_timestamp()"
                " + CASE e.leftover WHEN %s THEN %s ELSE 0 END * interval '1 second'"
                " FROM unnest(%s::uuid[], %s::text[], %s::text[]) AS e(id, outcome, leftover)"
                " WHERE a.id = e.id AND a.ended_at IS NULL",
                [
                    at,
                    Leftover.PODS.value,
                    settings.BERTH_POD_RETENTION_S,
                    list(attempts),
                    [outcome.value for outcome, _ in attempts.values()],
                    [leftover.value for _, leftover in attempts.values()],
                ],
            )


def _count_failures(workloads: Sequence[UUID], at: datetime) -> None:
    """One more failed try each, and a pause before the next."""
    if workloads:
        Workload.objects.filter(id__in=workloads).update(
            failures=F("failures") + 1, not_before=at + PAUSE
        )


def _stop(attempts: Mapping[UUID, str]) -> None:
    """Ask for the end of what is left of broken gangs; the cluster's trouble is noted."""
    for id, trouble in attempts.items():
        if trouble:
            Attempt.objects.filter(id=id, trouble="").update(trouble=trouble)
    if attempts:
        Operation.objects.bulk_create(
            [Operation(attempt_id=id, kind=OperationKind.STOP) for id in attempts],
            ignore_conflicts=True,
        )
        hints.hint(hints.DISPATCH)
