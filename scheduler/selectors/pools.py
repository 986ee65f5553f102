"""What is free of each model in a cluster, which gangs fit, what is stranded; now and of late.

Facts of the fleet, as the loop has written them down. It belongs to no tenant.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from uuid import UUID

from scheduler.models import PoolSample
from scheduler.selectors.fleet import rows

HOURS = 24
FRESH = timedelta(minutes=15)
"""What is older tells nothing about now: the loop stands, or the cluster takes nothing new."""


@dataclass(frozen=True, slots=True)
class Hour:
    """Means over the samples of one hour, in thousandths of a device."""

    start: datetime
    free_milli: Decimal
    stranded_milli: Decimal


@dataclass(frozen=True, slots=True)
class Fits:
    """The most pods of 1, 2, 4 and 8 GPUs each: anywhere for `level` "", else in one domain."""

    level: str
    pods: tuple[tuple[int, int], ...]


def newest(*, cluster_id: UUID, at: datetime) -> tuple[PoolSample, ...]:
    """The last figures of each pool of the cluster, all of one moment, by model; () when none are
    fresh. One query."""
    last = PoolSample.objects.filter(cluster=cluster_id, at__gt=at - FRESH, at__lte=at)
    moment = last.order_by("-at").values("at")[:1]
    return tuple(PoolSample.objects.filter(cluster=cluster_id, at=moment).order_by("model"))


def everywhere(*, at: datetime) -> tuple[PoolSample, ...]:
    """The last figures of every pool, with its cluster, where they are fresh. One query."""
    return tuple(
        PoolSample.objects.filter(at__gt=at - FRESH, at__lte=at)
        .select_related("cluster")
        .order_by("cluster__name", "model", "-at")
        .distinct("cluster__name", "model")
    )


def trends(*, cluster_id: UUID, at: datetime) -> dict[str, tuple[Hour, ...]]:
    """By model, each of the last HOURS in which there are figures, the oldest first. One query."""
    found: dict[str, list[Hour]] = {}
    for model, *hour in rows(
        "SELECT model, date_trunc('hour', at, 'UTC'), avg(free_milli), avg(stranded_milli)"
        " FROM scheduler_poolsample WHERE cluster_id = %s AND at > %s AND at <= %s"
        " GROUP BY 1, 2 ORDER BY 1, 2",
        [cluster_id, at - timedelta(hours=HOURS), at],
    ):
        found.setdefault(model, []).append(Hour(*hour))
    return {model: tuple(hours) for model, hours in found.items()}


def fits(of: PoolSample) -> tuple[Fits, ...]:
    """What `of.gangs` says, the whole cluster first, then from the outermost level inwards."""
    found: dict[str, list[tuple[int, int]]] = {}
    for level, gpus, pods in of.gangs:
        found.setdefault(level, []).append((gpus, pods))
    return tuple(Fits(level, tuple(pods)) for level, pods in found.items())
