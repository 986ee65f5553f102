"""Draining queues: what runs and may be stopped gives way, and waits again. Those of projects, of
tenants with all below them, of clusters and of pools.

Asked before every cycle rather than once, so that what was being admitted while somebody began to
drain goes too. What may not be preempted ends by itself.
"""

from datetime import datetime

from django.db import transaction

from clusters import stock
from scheduler.core.lifecycle import UNDER_WAY, State
from scheduler.selectors.fleet import rows
from scheduler.services import stops
from scheduler.services.transition import Step, transition
from tenants.selectors.queues import CLOSED

ACTOR = "system:scheduler"
MOST = 500
"""Workloads a call, so that its transaction stays short: the next one takes the rest."""

# Of a workload that several queues take back, the nearest tells why.
_DRAINED = (
    "WITH RECURSIVE "  # noqa: S608  # constants
    + CLOSED
    + f""",
drained (workload_id, nth, why) AS (
    SELECT w.id, 0, 'its project''s queue is drained: ' || p.queue_note
    FROM tenants_project p JOIN scheduler_workload w ON w.project_id = p.id
    WHERE p.queue_state = 'draining' AND w.ended_at IS NULL
  UNION ALL
    SELECT w.id, up.nth, 'the queue of its tenant ' || t.name || ' is drained: ' || t.queue_note
    FROM closed c CROSS JOIN LATERAL unnest(c.above) WITH ORDINALITY AS up (id, nth)
    JOIN tenants_tenant t ON t.id = up.id AND t.queue_state = 'draining'
    JOIN tenants_project p ON p.tenant_id = c.id
    JOIN scheduler_workload w ON w.project_id = p.id AND w.ended_at IS NULL
  UNION ALL
    SELECT a.workload_id, 1000,
           CASE WHEN q.model = '' THEN 'the cluster ' ELSE 'the pool ' || q.model || ' in ' END
           || c.name || ' is drained: ' || q.queue_note
    FROM clusters_hardwarequeue q JOIN clusters_cluster c ON c.id = q.cluster_id
    JOIN scheduler_attempt a ON a.cluster_id = q.cluster_id AND a.ended_at IS NULL
    WHERE q.queue_state = 'draining' AND (q.model = '' OR EXISTS (
        SELECT FROM scheduler_placement o JOIN scheduler_placementspan s ON s.placement_id = o.id
        JOIN clusters_device d ON d.id = s.device_id
        WHERE o.attempt_id = a.id AND o.released_at IS NULL
          AND {stock.sql("d")} = q.model)))
SELECT DISTINCT ON (w.id) w.id, w.project_id, w.state, w.version, d.why
FROM drained d JOIN scheduler_workload w ON w.id = d.workload_id
WHERE w.ended_at IS NULL AND w.state = ANY(%s) AND w.preemptible
ORDER BY w.id, d.nth LIMIT %s
"""  # noqa: S608  # constants
)


def evict(*, at: datetime, speed: float = 1.0) -> int:
    """Ask for the end of what is to give way, MOST at most; how many there were. `speed` is how
    many seconds of `at` pass in one."""
    found = rows(_DRAINED, [sorted(UNDER_WAY), MOST])
    if not found:
        return 0
    with transaction.atomic():
        moved = transition(
            [
                Step(id, project, State(state), State.PREEMPTING, why, version=version)
                for id, project, state, version, why in found
            ],
            actor=ACTOR,
            actor_name="scheduler",
            at=at,
        )
        stops.evict(workload_ids=sorted(moved), at=at, speed=speed)
    return len(moved)
