"""What has been seen of an attempt's pods → what it means for the attempt and its workload.

What must not live here: how that is judged (progress.py), and what a report says of a pod
(observe.py).
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from uuid import UUID

import orjson
from django.conf import settings
from django.db.models import F

from clusters.origin import SPOT_LABELS
from controlplane.kernel import hints, statements
from scheduler.core.failures import DELETED, LOST, FailureClass
from scheduler.core.lifecycle import State
from scheduler.loop.observing.progress import Progress, Verdict, verdict
from scheduler.loop.pods.requests import is_gang
from scheduler.models import Attempt, Leftover, Workload
from scheduler.services import stops
from scheduler.services.transition import Step, transition

ACTOR = "system:observer"
PAUSE = timedelta(seconds=10)
"""Between a lost attempt and the next, in the installation's clock."""

_SPOT = [orjson.dumps(label).decode() for label in SPOT_LABELS]

# A pod that was lost, or dismissed, is done without as long as each set has its least left. Not so
# the first of all, at which the others meet.
_PROGRESS = """
WITH seen AS (
    SELECT p.*, s.min_count, s.count AS most,
           coalesce(p.rank > 0 AND NOT p.succeeded
                    AND (split_part(p.end_reason, ':', 1) = ANY(%s)
                         OR p.dismissed_at IS NOT NULL), FALSE) AS lost
    FROM scheduler_placement p JOIN scheduler_podset s ON s.id = p.pod_set_id
    WHERE p.attempt_id = ANY(%s)),
sets AS (
    SELECT attempt_id, most, count(*) FILTER (WHERE NOT lost) >= min_count AS enough
    FROM seen GROUP BY attempt_id, pod_set_id, min_count, most),
gangs AS (SELECT attempt_id, sum(most) AS most, bool_and(enough) AS enough
          FROM sets GROUP BY attempt_id),
counted AS (SELECT seen.* FROM seen JOIN gangs USING (attempt_id) WHERE NOT (lost AND enough)),
began AS (
    SELECT attempt_id, CASE WHEN bool_and(at IS NOT NULL) THEN max(at) END AS at
    FROM (SELECT attempt_id, (array_agg(started_at ORDER BY started_at))[min_count] AS at
          FROM counted GROUP BY attempt_id, pod_set_id, min_count) least
    GROUP BY attempt_id),
held AS (
    SELECT attempt_id, array_agg(ARRAY[kind, model, profile, milli::text]) AS amounts
    FROM (SELECT p.attempt_id, f.kind, f.model, f.profile, sum(p.amount_milli) AS milli
          FROM counted p JOIN clusters_flavor f ON f.id = p.flavor_id
          GROUP BY p.attempt_id, f.id) of_one
    GROUP BY attempt_id)
SELECT a.id AS attempt_id, a.workload_id, w.project_id, w.state, w.retry_limit, w.retry_on,
       w.retry_exit_codes, w.failures, w.node_losses, a.failure, a.trouble, w.notice_until,
       g.most, count(*) AS total, count(p.released_at) AS released,
       count(*) FILTER (WHERE p.succeeded) AS succeeded,
       count(*) FILTER (WHERE NOT p.succeeded) AS failed,
       array_agg(DISTINCT p.end_reason) FILTER (WHERE NOT p.succeeded) AS reasons,
       array_agg(DISTINCT p.exit_code) FILTER (WHERE NOT p.succeeded AND p.exit_code IS NOT NULL
                                               AND p.end_reason <> %s) AS exit_codes,
       coalesce(bool_or(n.down) FILTER (WHERE NOT p.succeeded), false) AS node_down,
       min(n.name) FILTER (WHERE NOT p.succeeded AND n.taken AND n.labels @> ANY(%s::jsonb[]))
           AS spot_lost,
       b.at AS began_at, max(p.ended_at) AS ended_at,
       h.amounts AS held, w.checkpointed_at
FROM scheduler_attempt a
JOIN scheduler_workload w ON w.id = a.workload_id
JOIN gangs g ON g.attempt_id = a.id
JOIN began b ON b.attempt_id = a.id
JOIN held h ON h.attempt_id = a.id
JOIN counted p ON p.attempt_id = a.id
JOIN (SELECT id, name, labels, taken, NOT ready OR taken AS down
      FROM (SELECT *, leaving OR gone_at IS NOT NULL AS taken FROM clusters_node) node) n
     ON n.id = p.node_id
WHERE a.ended_at IS NULL
GROUP BY a.id, w.id, g.most, b.at, h.amounts ORDER BY a.workload_id
"""


def settle(*, attempts: Collection[UUID], at: datetime) -> None:
    """Draw the conclusions for these attempts' workloads. In the caller's transaction.

    They are locked (`transition.lock`) there: two observers of one gang's pods may not both think
    that the other's pod still runs, and the workload has to be where it is judged to be.
    """
    with statements.cursor() as cursor:
        cursor.execute(_PROGRESS, [sorted(LOST), list(attempts), DELETED, _SPOT])
        names = [column.name for column in cursor.description or ()]
        rows = [Progress.of(dict(zip(names, row, strict=True))) for row in cursor.fetchall()]
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
                started_at=row.began_at,
            )
            for row, found in moves
            if found.after is not None
        ],
        actor=ACTOR,
        actor_name="observer",
        at=at,
    )
    ended = [(row, found) for row, found in moves if row.workload_id in moved and found.outcome]
    _end(ended, at)
    again = [(row, found) for row, found in ended if found.after == State.PENDING]
    if again:
        hints.hint(hints.CYCLE)
        failures = {row.workload_id: found.failure for row, found in again if found.failure}
        _count_failures(failures, at)
    _stop({row.attempt_id: found for row, found in conclusions if found.stop})


# What was due is settled with it: a start that opened all and died before it closed its row.
_END = """
WITH e AS (
    SELECT * FROM unnest(%s::uuid[], %s::text[], %s::text[], %s::text[], %s::text[], %s::bigint[])
        AS u(id, outcome, leftover, failure, trouble, lost_milli_s)),
closed AS (
    UPDATE scheduler_operation SET done_at = statement_timestamp()
    WHERE attempt_id IN (SELECT id FROM e) AND done_at IS NULL)
UPDATE scheduler_attempt a SET
    ended_at = %s, outcome = e.outcome, leftover = e.leftover,
    collect_at = clock_timestamp()
                 + CASE e.leftover WHEN %s THEN %s ELSE 0 END * interval '1 second',
    failure = CASE WHEN e.failure = '' THEN a.failure ELSE e.failure END,
    trouble = CASE WHEN e.failure = '' THEN a.trouble ELSE e.trouble END,
    lost_milli_s = e.lost_milli_s
FROM e WHERE a.id = e.id AND a.ended_at IS NULL
"""


def _end(attempts: Sequence[tuple[Progress, Verdict]], at: datetime) -> None:
    """These attempts are over; what they leave in their clusters is `dispatching/collect`'s."""
    if not attempts:
        return
    columns = [
        (
            row.attempt_id,
            found.outcome,
            Leftover.SERVICE if is_gang(row.most) else Leftover.PODS,
            found.failure or "",
            found.trouble[:500],
            found.lost_milli_s,
        )
        for row, found in attempts
    ]
    with statements.cursor() as cursor:
        cursor.execute(
            _END,
            [
                *(list(column) for column in zip(*columns, strict=True)),
                at,
                Leftover.PODS.value,
                settings.BERTH_POD_RETENTION_S,
            ],
        )


def _count_failures(workloads: Mapping[UUID, FailureClass], at: datetime) -> None:
    """One more failed try each, of lost nodes or of the others, and a pause before the next."""
    lost = [id for id, each in workloads.items() if each is FailureClass.NODE_LOST]
    others = [id for id, each in workloads.items() if each is not FailureClass.NODE_LOST]
    Workload.objects.filter(id__in=lost).update(
        node_losses=F("node_losses") + 1, not_before=at + PAUSE
    )
    Workload.objects.filter(id__in=others).update(
        failures=F("failures") + 1, not_before=at + PAUSE
    )


def _stop(attempts: Mapping[UUID, Verdict]) -> None:
    """Ask for the end of what is left of broken gangs; what broke them is noted, once."""
    for id, found in attempts.items():
        if found.failure:
            Attempt.objects.filter(id=id, failure="").update(
                failure=found.failure, trouble=found.trouble[:500]
            )
    if attempts:
        stops.stop_attempts(attempt_ids=list(attempts))
