"""How long finished work ran: what wait estimates are drawn from."""

from scheduler.core.units import ProjectId
from scheduler.selectors import fleet

HISTORY = 200
"""Finished workloads of a project that its run times are drawn from, newest first."""

UNKNOWN_RUN_S = 3600
"""How long work is taken to run of which nobody knows: it has not ended, and none like it has."""

_RUN_TIMES = """
SELECT project_id::text, array_agg(greatest(run_s, 1)) FROM (
    SELECT project_id, extract(epoch FROM ended_at - started_at)::bigint AS run_s,
           row_number() OVER (PARTITION BY project_id ORDER BY ended_at DESC) AS age
    FROM scheduler_workload WHERE state = 'SUCCEEDED' AND started_at IS NOT NULL
) finished WHERE age <= %s GROUP BY project_id
"""


def run_times() -> dict[ProjectId, tuple[int, ...]]:
    """Seconds, by project, in any order. One query."""
    found = fleet.rows(_RUN_TIMES, [HISTORY])
    return {ProjectId(project): tuple(times) for project, times in found}
