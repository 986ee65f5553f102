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
    attempts that ended unseen, with how many pods they hold."""

    live_count: int = 0
    leaving_count: int = 0
    unseen_count: int = 0
    held_pods: int = 0


_LEFT = """
SELECT count(*) FILTER (WHERE a.ended_at IS NULL),
       count(*) FILTER (WHERE a.ended_at IS NULL AND w.cluster_loss_requeue_s IS NOT NULL
                          AND w.state <> 'CANCELLING' AND NOT a.failure = ANY(%(own)s)),
       count(*) FILTER (WHERE a.unseen_since IS NOT NULL),
       coalesce(sum((SELECT count(*) FROM scheduler_placement p
                     WHERE p.attempt_id = a.id AND p.released_at IS NULL))
                FILTER (WHERE a.unseen_since IS NOT NULL), 0)::int
FROM scheduler_attempt a JOIN scheduler_workload w ON w.id = a.workload_id
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


_HELD = """
SELECT a.number, count(*) FROM scheduler_attempt a
JOIN scheduler_placement p ON p.attempt_id = a.id AND p.released_at IS NULL
WHERE a.workload_id = %s AND a.unseen_since IS NOT NULL GROUP BY a.number
"""


def held_pods(*, workload_id: UUID) -> dict[int, int]:
    """By number, the pods that attempts hold which ended unseen. One query."""
    return dict(rows(_HELD, [workload_id]))


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
