"""What a cluster's page says of its node pools, and of what fits there now, by model."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from django.utils.timezone import localtime

from clusters.origin import Origin
from controlplane.kernel.charts import Series, StackedBars, stacked_bars
from scheduler.core.fleet.pools import SIZES
from scheduler.models import PoolSample
from scheduler.selectors import pools
from scheduler.selectors.hardware import NodeFacts
from scheduler.selectors.pools import Fits, Hour


@dataclass(frozen=True, slots=True)
class NodePool:
    """Nodes of one origin: how many, how many of them are usable, and their GPUs."""

    origin: Origin
    nodes: int
    usable: int
    devices: int


def node_pools(nodes: Iterable[NodeFacts]) -> list[NodePool]:
    """By name and zone; [] where no label tells of any."""
    found: dict[Origin, list[NodeFacts]] = {}
    for node in nodes:
        found.setdefault(node.origin, []).append(node)
    if not any(origin.node_pool or origin.capacity for origin in found):
        return []
    return [
        NodePool(
            origin,
            nodes=len(each),
            usable=sum(not node.state for node in each),
            devices=sum(len(node.devices) for node in each),
        )
        for origin, each in sorted(found.items())
    ]


@dataclass(frozen=True, slots=True)
class PoolCard:
    """`fits` has a column for each of `sizes`: GPUs a pod."""

    figures: PoolSample
    fits: tuple[Fits, ...]
    trend: StackedBars
    sizes: tuple[int, ...] = SIZES

    @property
    def scattered(self) -> str:
        return f"{Decimal(self.figures.scattered_milli) / 10:.0f}"


def cards(*, cluster_id: UUID, newest: Sequence[PoolSample], at: datetime) -> tuple[PoolCard, ...]:
    """Of the `newest` figures, with the hours before. One query."""
    trends = pools.trends(cluster_id=cluster_id, at=at) if newest else {}
    return tuple(
        PoolCard(one, pools.fits(one), _trend(n, one.model, trends.get(one.model, ())))
        for n, one in enumerate(newest)
    )


def _trend(n: int, model: str, hours: Sequence[Hour]) -> StackedBars:
    """A mean over an hour is so many GPU-hours."""
    stranded = [hour.stranded_milli / 1000 for hour in hours]
    usable = [hour.free_milli / 1000 - lost for hour, lost in zip(hours, stranded, strict=True)]
    return stacked_bars(
        id=f"pool-{n}",
        title=f"GPU-hours of {model} that nobody held",
        labels=[f"{localtime(hour.start):%H:%M}" for hour in hours],
        series=[Series("Usable", usable), Series("Stranded", stranded)],
        unit=lambda amount: f"{amount:.1f}",
        column_word="Hour",
    )
