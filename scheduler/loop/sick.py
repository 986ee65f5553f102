"""Work on a device that its driver tells of no longer goes on elsewhere, whole, if it may be
stopped. Of count tokens nobody knows whose is sick.

A taint of the device says less, or more: with NoSchedule what runs there runs on, with NoExecute
Kubernetes ends it by itself.
"""

from datetime import datetime, timedelta

from django.db import transaction

from scheduler.core.lifecycle import UNDER_WAY, State
from scheduler.selectors import checks
from scheduler.selectors.fleet import rows
from scheduler.services import stops
from scheduler.services.transition import Step, transition

ACTOR = "system:scheduler"
GONE_S = 60
"""For how long, in seconds of the real world: a driver that is started anew may tell late."""
MOST = 500
"""Workloads a call, so that its transaction stays short: the next one takes the rest."""

# A driver that tells nothing of a node is away itself.
_ON_GONE = """
SELECT DISTINCT ON (w.id) w.id, w.project_id, w.state, w.version, d.uuid, n.name
FROM clusters_device d JOIN clusters_node n ON n.id = d.node_id AND n.gone_at IS NULL
JOIN clusters_cluster c ON c.id = n.cluster_id AND c.state = 'active'
JOIN scheduler_placementspan s ON s.device_id = d.id AND s.released_at IS NULL
JOIN scheduler_placement p ON p.id = s.placement_id
JOIN scheduler_attempt a ON a.id = p.attempt_id AND a.ended_at IS NULL
JOIN scheduler_workload w ON w.id = a.workload_id
WHERE d.uuid <> '' AND d.gone_at <= %(since)s
  AND w.preemptible AND w.ended_at IS NULL AND w.state = ANY(%(states)s)
  AND EXISTS (SELECT FROM clusters_device o
              WHERE o.node_id = d.node_id AND o.uuid <> '' AND o.usable AND o.gone_at IS NULL)
ORDER BY w.id, d.uuid LIMIT %(most)s
"""


def evict(*, at: datetime, speed: float = 1.0) -> int:
    """Ask for its end, after its notice, MOST at most; how many. `speed` is how many seconds of
    `at` pass in one. Nothing while admission is stopped: it could not start again."""
    since = at - timedelta(seconds=GONE_S) * speed
    asked = {"since": since, "states": sorted(UNDER_WAY), "most": MOST}
    found = rows(_ON_GONE, asked)
    if not found or checks.admission_stopped():
        return 0
    with transaction.atomic():
        moved = transition(
            [
                Step(id, project, State(state), State.PREEMPTING, _why(*device), version=version)
                for id, project, state, version, *device in found
            ],
            actor=ACTOR,
            actor_name="scheduler",
            at=at,
        )
        stops.evict(workload_ids=sorted(moved), at=at, speed=speed)
    return len(moved)


def _why(uuid: str, node: str) -> str:
    return f"the device {uuid} of node {node} is gone, as its driver tells: it goes on elsewhere"
