"""What work is charged an hour in each cluster, for the planner: where that differs."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from uuid import UUID

from django.conf import settings

from scheduler.core.rates import RateView
from scheduler.core.snapshot import ClusterView, FlavorView
from tenants.selectors import prices
from tenants.selectors.prices import Price

MICRO = 1_000_000

OF_CLUSTERS = """EXISTS (SELECT FROM tenants_rate
                 WHERE cluster_id IS NOT NULL AND during @> %s::timestamptz)"""
"""Whether any cluster has rates of its own then: else all charge the same."""


def rates(
    *, flavors: Iterable[FlavorView], clusters: Sequence[ClusterView], at: datetime
) -> tuple[RateView, ...]:
    """Those that are charged at that moment, all of them; () where each flavor is charged the same
    everywhere. What is in another currency compares with nothing, and is left out. One query."""
    now, found = prices.at_moment(at=at), list[RateView]()
    of_clusters = [UUID(cluster.id) for cluster in clusters]
    is_same = True
    for flavor in flavors:
        id = UUID(flavor.id)
        micros = [_micro_per_hour(now.of(flavor_id=id, cluster_id=c)) for c in of_clusters]
        is_same = is_same and len(set(micros)) < 2
        found += (
            RateView(flavor.id, cluster.id, micro)
            for cluster, micro in zip(clusters, micros, strict=True)
            if micro is not None
        )
    return () if is_same else tuple(found)


def _micro_per_hour(price: Price | None) -> int | None:
    if price is None or price.currency != settings.BERTH_CURRENCY:
        return None
    return int(price.per_hour * MICRO)
