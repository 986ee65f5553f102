"""Figures of pools: core.fleet.pools → rows, each time that waits are estimated."""

from datetime import datetime

from scheduler.core.fleet.pools import pools
from scheduler.core.snapshot import Snapshot
from scheduler.loop import retention
from scheduler.models import PoolSample

KEPT_DAYS = 7


def measure(*, snapshot: Snapshot, at: datetime) -> int:
    """Write down every pool as of `at`, once; how many there are. Forgets old figures."""
    retention.prune(PoolSample, days=KEPT_DAYS)
    found = pools(snapshot=snapshot)
    PoolSample.objects.bulk_create(
        [
            PoolSample(
                cluster_id=one.cluster,
                model=one.model,
                at=at,
                total_milli=one.total_milli,
                free_milli=one.free_milli,
                stranded_milli=one.stranded_milli,
                scattered_milli=one.scattered_milli,
                whole_nodes=one.whole_nodes,
                gangs=[[gangs.level, gangs.gpus, gangs.pods] for gangs in one.gangs],
            )
            for one in found
        ],
        ignore_conflicts=True,
    )
    return len(found)
