"""Wait estimates: load → core.estimate → rows. Requests only read the rows."""

from datetime import datetime
from time import perf_counter

from django.db import connection

from scheduler.core.estimate import forecast
from scheduler.core.units import ProjectId
from scheduler.loop import policy, retention
from scheduler.loop.load import load
from scheduler.models import Estimate

PASSES = 20
BUDGET_S = 10.0
"""Real seconds after which no further pass is begun: half the time limit of a task."""
HISTORY = 200
"""Finished workloads of a project that its run times are drawn from, newest first."""
KEPT_DAYS = 28
"""How long an estimate is kept to be scored."""


def run(*, at: datetime) -> int:
    """Estimate every pending workload's start; how many rows were written. Forgets old ones."""
    retention.prune(Estimate, days=KEPT_DAYS)
    begun = perf_counter()
    snapshot = load(at=at).snapshot
    if not snapshot.pending:
        return 0
    found = forecast(
        snapshot=snapshot,
        policy=policy.current(),
        run_times=_run_times(),
        passes=PASSES,
        seed=int(at.timestamp()),
        late=lambda: perf_counter() - begun > BUDGET_S,
    )
    Estimate.objects.bulk_create(
        [
            Estimate(
                workload_id=one.workload,
                as_of=at,
                p50_s=one.p50_s,
                p90_s=one.p90_s,
                basis=one.basis,
                passes=one.passes,
            )
            for one in found
        ],
        batch_size=2000,
        ignore_conflicts=True,
    )
    return len(found)


_RUN_TIMES = """
SELECT project_id::text, array_agg(greatest(run_s, 1)) FROM (
    SELECT project_id, extract(epoch FROM ended_at - started_at)::bigint AS run_s,
           row_number() OVER (PARTITION BY project_id ORDER BY ended_at DESC) AS age
    FROM scheduler_workload WHERE state = 'SUCCEEDED' AND started_at IS NOT NULL
) finished WHERE age <= %s GROUP BY project_id
"""


def _run_times() -> dict[ProjectId, tuple[int, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(_RUN_TIMES, [HISTORY])
        return {ProjectId(project): tuple(times) for project, times in cursor.fetchall()}
