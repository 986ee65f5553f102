"""What came lately and how long it ran: what a replay plays again."""

from collections.abc import Mapping
from datetime import datetime
from statistics import median_low
from typing import NamedTuple

from scheduler.core.simulating.replay import Arrival
from scheduler.core.snapshot import PendingView
from scheduler.core.units import ProjectId, UserId, WorkloadId
from scheduler.selectors import asked, fleet, history

MOST = 5_000
"""Workloads, the last that came."""

# What ended without a start is left out: nobody knows how long it would have run.
_ROWS = f"""
SELECT w.id::text, w.project_id::text, w.priority, w.preemptible,
       extract(epoch FROM w.submitted_at)::bigint, w.run_time_limit_s,
       {fleet.SUBMITTER},
       w.asks_version, extract(epoch FROM w.ended_at - w.started_at)::bigint,
       extract(epoch FROM %s - w.started_at)::bigint
FROM scheduler_workload w JOIN tenants_project t ON t.id = w.project_id
WHERE w.submitted_at <= %s AND (w.ended_at > %s OR w.ended_at IS NULL)
      AND (w.started_at IS NOT NULL OR w.ended_at IS NULL)
ORDER BY w.submitted_at DESC, w.id DESC LIMIT %s
"""  # noqa: S608  # a constant


class Arrivals(NamedTuple):
    """The last first; `all_there` is whether there were no more of them than MOST."""

    found: list[Arrival]
    all_there: bool


def arrivals(*, since: datetime, at: datetime) -> Arrivals:
    """What came until `at` and had not ended by `since`, as the core sees what waits. Of what has
    not ended, the run is as long as it was so far, or as the project's usually are, within its
    limit. Four queries."""
    rows = fleet.rows(_ROWS, [at, at, since, MOST + 1])
    asks = asked.of({row[0]: row[7] for row in rows[:MOST]})
    usual = {project: median_low(times) for project, times in history.run_times().items()}
    found = [_arrival(row, asks[row[0]], usual) for row in rows[:MOST]]
    return Arrivals(found, len(rows) <= MOST)


def _arrival(row: fleet.Row, ask: asked.Asked, usual: Mapping[ProjectId, int]) -> Arrival:
    id, project, priority, preemptible, submitted_at, limit_s, user, _, ran_s, so_far_s = row
    pending = PendingView(
        id=WorkloadId(id),
        project=ProjectId(project),
        priority=priority,
        preemptible=preemptible,
        submitted_at=submitted_at,
        pod_sets=ask.pod_sets,
        run_time_limit_s=limit_s,
        clusters=ask.clusters,
        user=UserId(user),
        topology=ask.topology,
        array=ask.array,
    )
    if ran_s is None:
        ran_s = max(so_far_s or 0, usual.get(pending.project, history.UNKNOWN_RUN_S))
        ran_s = min(ran_s, limit_s or ran_s)
    return Arrival(pending, max(1, ran_s))
