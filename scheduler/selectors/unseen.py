"""What silent clusters mean for the work there: what waits for them, what was started elsewhere
meanwhile, and what that still holds."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from clusters.models import ClusterState
from scheduler.core.failures import OWN
from scheduler.models import Attempt
from scheduler.selectors.fleet import rows

SILENT = frozenset({ClusterState.DEGRADED, ClusterState.LOST})


@dataclass(frozen=True, slots=True)
class Left:
    """Of one cluster: live attempts, those of them that start elsewhere if its silence lasts, and
    attempts that ended unseen, with how many pods they hold. Of the latter the stops that failed,
    how often that which did most, and its last error; "" for none."""

    live_count: int = 0
    leaving_count: int = 0
    unseen_count: int = 0
    held_pods: int = 0
    failing_count: int = 0
    failures: int = 0
    last_error: str = ""


_LEFT = """
SELECT count(*) FILTER (WHERE a.ended_at IS NULL),
       count(*) FILTER (WHERE a.ended_at IS NULL AND w.cluster_loss_requeue_s IS NOT NULL
                          AND w.state <> 'CANCELLING' AND NOT a.failure = ANY(%(own)s)),
       count(*) FILTER (WHERE a.unseen_since IS NOT NULL),
       coalesce(sum((SELECT count(*) FROM scheduler_placement p
                     WHERE p.attempt_id = a.id AND p.released_at IS NULL))
                FILTER (WHERE a.unseen_since IS NOT NULL), 0)::int,
       count(o.id) FILTER (WHERE o.failures > 0), coalesce(max(o.failures), 0),
       coalesce((array_agg(o.last_error ORDER BY o.failures DESC)
                 FILTER (WHERE o.failures > 0))[1], '')
FROM scheduler_attempt a JOIN scheduler_workload w ON w.id = a.workload_id
LEFT JOIN scheduler_operation o ON o.attempt_id = a.id AND a.unseen_since IS NOT NULL
  AND o.kind = 'stop' AND o.done_at IS NULL
WHERE a.cluster_id = %(cluster)s AND (a.ended_at IS NULL OR a.unseen_since IS NOT NULL)
"""


def left_in(*, cluster_id: UUID) -> Left:
    """One query."""
    return Left(*rows(_LEFT, {"cluster": cluster_id, "own": sorted(OWN)})[0])


_EVERYWHERE = """
SELECT c.name, count(a.id) FROM clusters_cluster c
LEFT JOIN scheduler_attempt a ON a.cluster_id = c.id AND a.unseen_since IS NOT NULL
GROUP BY c.name ORDER BY c.name
"""


def counts() -> dict[str, int]:
    """By cluster, how many attempts ended unseen and hold on. One query."""
    return dict(rows(_EVERYWHERE))


@dataclass(frozen=True, slots=True)
class Held:
    """The pods that an attempt holds which ended unseen, how often their stop has failed, and with
    what last."""

    pods: int = 0
    failures: int = 0
    last_error: str = ""


_HELD = """
SELECT a.number, count(*), coalesce(max(o.failures), 0), coalesce(max(o.last_error), '')
FROM scheduler_attempt a
JOIN scheduler_placement p ON p.attempt_id = a.id AND p.released_at IS NULL
LEFT JOIN scheduler_operation o ON o.attempt_id = a.id AND o.kind = 'stop' AND o.done_at IS NULL
WHERE a.workload_id = %s AND a.unseen_since IS NOT NULL GROUP BY a.number
"""


def held(*, workload_id: UUID) -> dict[int, Held]:
    """By the attempts' numbers. One query."""
    return {number: Held(*told) for number, *told in rows(_HELD, [workload_id])}


def elsewhere_at(*, attempt: Attempt) -> datetime | None:
    """When its workload starts elsewhere if its cluster stays silent, at the soonest. None where
    it has ended or failed, where it waits for its cluster, where nobody has asked that in vain
    yet, and where that is heard."""
    cluster, after_s = attempt.cluster, attempt.workload.cluster_loss_requeue_s
    if attempt.ended_at or attempt.failure in OWN:
        return None
    if after_s is None or cluster.state not in SILENT or cluster.failing_since is None:
        return None
    return cluster.failing_since + timedelta(seconds=after_s)
