"""Wait estimates: load → core.estimate → rows. Requests only read the rows."""

from datetime import datetime
from time import perf_counter

from scheduler.core.estimate import forecast
from scheduler.loop import pools, retention
from scheduler.models import Estimate
from scheduler.selectors import history, policy
from scheduler.selectors.load import load

PASSES = 20
BUDGET_S = 10.0
"""Real seconds after which no further pass is begun: half the time limit of a task."""
KEPT_DAYS = 28
"""How long an estimate is kept to be scored."""


def run(*, at: datetime) -> int:
    """Estimate every pending workload's start; how many rows were written. Forgets old ones.

    The figures of pools are of the same snapshot.
    """
    retention.prune(Estimate, days=KEPT_DAYS)
    begun = perf_counter()
    snapshot = load(at=at).snapshot
    pools.measure(snapshot=snapshot, at=at)
    if not snapshot.pending:
        return 0
    found = forecast(
        snapshot=snapshot,
        policy=policy.current(),
        run_times=history.run_times(),
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
