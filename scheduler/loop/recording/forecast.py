"""Wait estimates: load → core.simulating.estimate → rows. Requests only read the rows."""

from dataclasses import replace
from datetime import datetime
from time import perf_counter

from scheduler.core.simulating.estimate import Basis, Forecast, forecast
from scheduler.loop import retention
from scheduler.loop.recording import pools
from scheduler.models import Estimate
from scheduler.selectors import history, node_asks, policy
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
    coming = node_asks.expected(at=at)
    found = tuple(_sooner(one, coming.get(one.workload)) for one in found)
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


def _sooner(one: Forecast, nodes: tuple[int, int] | None) -> Forecast:
    """As it was simulated, without the nodes that were asked for, or once those are there."""
    if nodes is None or (one.p50_s is not None and one.p50_s <= nodes[0]):
        return one
    return replace(one, p50_s=nodes[0], p90_s=nodes[1], basis=Basis.NODE)
