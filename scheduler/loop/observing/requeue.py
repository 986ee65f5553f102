"""Work whose cluster is lost starts elsewhere, once, where it asks for that (ADR 0085).

Its attempt ends unseen: nobody knows what runs there, so all that it holds is held on and charged,
and a stop is due for when the cluster is heard again. Until that is carried out nothing is placed
there (`selectors/fleet`). The attempt has ended, so that no gate of it is opened any more.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction

from clusters.services.clusters import TRIED_S
from controlplane.kernel import bulk, hints, statements
from controlplane.kernel.crash import crash
from controlplane.kernel.ids import uuid7s
from scheduler.core.failures import OWN, FailureClass
from scheduler.core.held.losses import gpu_hours, lost_milli_s
from scheduler.core.lifecycle import HOLDING, State
from scheduler.loop.observing.progress import sevenths_milli
from scheduler.models import AttemptOutcome, Leftover, WorkloadEvent
from scheduler.selectors import checks
from scheduler.selectors.fleet import rows
from scheduler.services import stops
from scheduler.services.transition import Step, lock, transition
from tenants.selectors.queues import CLOSED

ACTOR = "system:scheduler"
MOST = 200
"""Attempts of one transaction, so that it stays short: the next call takes the rest."""

# Whom its user has cancelled starts nowhere. What failed of its own doing is judged as any failure
# once its pods are seen gone: it may have used up its tries.
_STATES = sorted(HOLDING - {State.CANCELLING})

# Time that Berth itself was away does not count (`Cluster.failing_since`). Nor is anything given
# up for nothing: there has to be a cluster that is heard, accepted and not held as a whole, and
# the queues of its project and of the tenants above have to be open, and its quota not frozen.
# Where all are silent, it is Berth that is cut off.
_LOST = f"""
WITH RECURSIVE {CLOSED}
SELECT a.id, w.id, w.project_id, w.state, c.name, c.seen_at,
       extract(epoch FROM clock_timestamp() - c.seen_at)::float8,
       extract(epoch FROM w.started_at)::bigint, extract(epoch FROM w.checkpointed_at)::bigint,
       array(SELECT ARRAY[f.kind, f.model, f.profile, sum(p.amount_milli)::text]
             FROM scheduler_placement p JOIN clusters_flavor f ON f.id = p.flavor_id
             WHERE p.attempt_id = a.id AND p.released_at IS NULL GROUP BY f.id)
FROM clusters_cluster c
JOIN scheduler_attempt a ON a.cluster_id = c.id AND a.ended_at IS NULL
JOIN scheduler_workload w ON w.id = a.workload_id
JOIN tenants_project j ON j.id = w.project_id AND j.queue_state = 'open'
                       AND j.quota_frozen_at IS NULL
JOIN closed x ON x.id = j.tenant_id AND x.above = '{{}}'
WHERE c.state = 'lost' AND c.failed_at > clock_timestamp() - %(tried_s)s * interval '1 second'
  AND c.failing_since
      <= clock_timestamp() - w.cluster_loss_requeue_s * interval '1 second'
  AND w.ended_at IS NULL AND w.state = ANY(%(states)s) AND NOT a.failure = ANY(%(own)s)
  AND EXISTS (SELECT FROM clusters_cluster o WHERE o.state = 'active' AND NOT EXISTS (
      SELECT FROM clusters_hardwarequeue q
      WHERE q.cluster_id = o.id AND q.model = '' AND q.queue_state <> 'open') AND (
      NOT EXISTS (SELECT FROM scheduler_workload_clusters b WHERE b.workload_id = w.id)
      OR EXISTS (SELECT FROM scheduler_workload_clusters b
                 WHERE b.workload_id = w.id AND b.cluster_id = o.id)))
"""  # noqa: S608  # a constant


@dataclass(frozen=True, slots=True)
class _Lost:
    """A live attempt whose cluster has been silent for too long. `silent_s` are real seconds;
    `held` is what of each flavor, as `sevenths_milli` takes it."""

    attempt: UUID
    workload: UUID
    project: UUID
    state: State
    cluster: str
    seen_at: datetime
    silent_s: float
    started_at: int | None
    checkpointed_at: int | None
    held: Sequence[Sequence[str]]

    def lost_milli_s(self, *, at: datetime, speed: float) -> int:
        """The work since its last checkpoint, up to when its cluster was last heard."""
        heard_at = at - timedelta(seconds=self.silent_s) * speed
        return lost_milli_s(
            sevenths_milli=sevenths_milli(self.held),
            started_at=self.started_at,
            checkpointed_at=self.checkpointed_at,
            at=int(heard_at.timestamp()),
        )


def requeue_lost(*, at: datetime, speed: float = 1.0) -> int:
    """Have what waits no longer for its cluster queue again, MOST at most; how many. `speed` is
    how many seconds of `at` pass in one."""
    found = _lost(f" ORDER BY a.id LIMIT {MOST}")
    if not found or checks.admission_stopped():
        return 0
    with transaction.atomic():
        lock([each.attempt for each in found])
        # Again on the rows as they are, held so that nobody hears the cluster meanwhile.
        found = _lost(
            " AND a.id = ANY(%(these)s) ORDER BY a.id FOR SHARE OF c",
            these=[each.attempt for each in found],
        )
        losses = {each.attempt: each.lost_milli_s(at=at, speed=speed) for each in found}
        moved = transition(
            [
                Step(
                    each.workload,
                    each.project,
                    each.state,
                    State.PENDING,
                    _why(each, losses[each.attempt]),
                )
                for each in found
            ],
            actor=ACTOR,
            actor_name="scheduler",
            at=at,
        )
        gone = [each for each in found if each.workload in moved]
        _end(gone, [losses[each.attempt] for each in gone], at)
        crash("L1")
        stops.stop_attempts(attempt_ids=[each.attempt for each in gone])
        if gone:
            hints.hint(hints.CYCLE)
    crash("L2")
    return len(gone)


def _lost(further: str, *, these: Sequence[UUID] = ()) -> list[_Lost]:
    asked = {"tried_s": TRIED_S, "states": _STATES, "own": sorted(OWN), "these": list(these)}
    return [
        _Lost(attempt, workload, project, State(state), *rest)
        for attempt, workload, project, state, *rest in rows(_LOST + further, asked)
    ]


def _why(of: _Lost, loss_milli_s: int) -> str:
    loss = f"; {gpu_hours(loss_milli_s)} GPU-hours of work lost" if loss_milli_s else ""
    return (
        f"its cluster {of.cluster} was lost, silent since {of.seen_at:%Y-%m-%d %H:%M} UTC: it"
        " starts elsewhere, and what it holds there is charged until its pods are seen gone"
        f"{loss}"
    )


# Nobody's claim on it counts any more. What was due is settled, but for a stop,
# whose tries are counted from when the cluster is back.
_END = """
WITH e AS (SELECT * FROM unnest(%s::uuid[], %s::bigint[]) AS u(id, lost_milli_s)),
closed AS (
    UPDATE scheduler_operation SET done_at = statement_timestamp()
    WHERE attempt_id IN (SELECT id FROM e) AND done_at IS NULL AND kind <> 'stop'),
anew AS (
    UPDATE scheduler_operation SET failures = 0, last_error = ''
    WHERE attempt_id IN (SELECT id FROM e) AND done_at IS NULL AND kind = 'stop')
UPDATE scheduler_attempt a SET
    ended_at = %s, unseen_since = %s, outcome = %s, failure = %s,
    trouble = left(%s || CASE WHEN a.trouble = '' THEN '' ELSE '; before that: ' || a.trouble END,
                   500),
    lost_milli_s = e.lost_milli_s, claim = NULL, claimed_until = NULL
FROM e WHERE a.id = e.id
"""


def _end(attempts: Sequence[_Lost], losses_milli_s: Sequence[int], at: datetime) -> None:
    outcome, failure = AttemptOutcome.LOST.value, FailureClass.CLUSTER_LOST
    told = "its cluster was lost, and it was started elsewhere"
    with statements.cursor() as cursor:
        cursor.execute(
            _END,
            [[a.attempt for a in attempts], list(losses_milli_s), at, at, outcome, failure, told],
        )


# What is over is collected as after any end. Where all had ended by itself nothing is to stop.
_SEEN = """
WITH gone AS (
    UPDATE scheduler_attempt a SET unseen_since = NULL, leftover = %(service)s,
        collect_at = clock_timestamp()
    WHERE a.id = ANY(%(attempts)s) AND a.unseen_since IS NOT NULL
      AND NOT EXISTS (SELECT FROM scheduler_placement p
                      WHERE p.attempt_id = a.id AND p.released_at IS NULL)
    RETURNING a.id, a.workload_id, a.number, a.cluster_id),
settled AS (
    UPDATE scheduler_operation SET done_at = statement_timestamp()
    WHERE attempt_id IN (SELECT id FROM gone) AND done_at IS NULL)
SELECT g.workload_id, g.number, c.name, count(*), count(*) FILTER (WHERE p.succeeded)
FROM gone g JOIN clusters_cluster c ON c.id = g.cluster_id
JOIN scheduler_placement p ON p.attempt_id = g.id
GROUP BY g.workload_id, g.number, c.name ORDER BY g.workload_id
"""


def seen_gone(*, attempts: Collection[UUID], at: datetime) -> None:
    """Of these, which ended unseen, those that hold nothing any more: their timelines tell what
    became of them. In the caller's transaction, which has released their last pods.

    Work that had succeeded there is told and changes nothing: its next attempt goes on.
    """
    asked = {"attempts": list(attempts), "service": Leftover.SERVICE.value}
    found = rows(_SEEN, asked)
    bulk.insert(
        WorkloadEvent,
        id=uuid7s(len(found)),
        workload_id=[workload for workload, *_ in found],
        at=at,
        kind="returned",
        message=[_returned(*rest) for _, *rest in found],
    )


def _returned(number: int, cluster: str, pods: int, succeeded: int) -> str:
    gone = f"{pods} pod{'' if pods == 1 else 's'} of attempt {number} in {cluster}"
    told = f"the {gone} {'is' if pods == 1 else 'are'} seen gone, after which nothing is charged"
    return f"{told}; {succeeded} of {pods} had succeeded unseen" if succeeded else told
