"""Admitted work whose caught pods vanished before they were taken: it gives its room back.

Its owner makes others, which take their place at once. Where none come, it waits for them as it
did before it was admitted (`catch`), and holds nothing.
"""

from datetime import datetime, timedelta

from clusters.models import Cluster
from scheduler.loop.observing.retry import give_up
from scheduler.selectors.caught import FREE
from scheduler.selectors.fleet import rows

ACTOR = "system:kubernetes"
PATIENCE = timedelta(minutes=1)
"""How long a placement stays without a pod, from its admission or since the last pod went."""

_LACKING = f"""
SELECT a.id, w.id, w.project_id
FROM scheduler_origin o JOIN scheduler_workload w ON w.id = o.workload_id
JOIN scheduler_attempt a ON a.workload_id = w.id AND a.ended_at IS NULL
WHERE o.cluster_id = %s AND w.ended_at IS NULL AND w.state = 'ADMITTED'
  AND greatest(w.admitted_at, (
          SELECT max(went.gone_at) FROM scheduler_podset s
          JOIN scheduler_caughtpod went ON went.pod_set_id = s.id
          WHERE s.workload_id = w.id)) <= %s
  AND EXISTS (
      SELECT 1 FROM scheduler_placement p
      WHERE p.attempt_id = a.id AND p.released_at IS NULL
        AND NOT EXISTS (SELECT 1 FROM scheduler_caughtpod has
                        WHERE has.placement_id = p.id AND has.gone_at IS NULL)
        AND NOT EXISTS (SELECT 1 FROM scheduler_caughtpod c
                        WHERE c.pod_set_id = p.pod_set_id AND {FREE}))
ORDER BY a.id
"""  # noqa: S608  # a constant


def give_up_lacking(*, cluster: Cluster, at: datetime) -> None:
    """Take back what has been admitted and lacks a pod for PATIENCE; it is PENDING again once what
    it has taken is gone. It counts as no failed try."""
    for attempt, workload, project in rows(_LACKING, [cluster.id, at - PATIENCE]):
        give_up(
            attempt_id=attempt,
            workload_id=workload,
            project_id=project,
            why="a pod of it went before it started, and no other came in its place",
            failure=None,
            actor=ACTOR,
            at=at,
        )
