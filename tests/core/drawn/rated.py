"""What is charged in each cluster, said in few words or drawn."""

from collections.abc import Mapping
from dataclasses import replace
from random import Random

from scheduler.core.rates import RateView
from scheduler.core.snapshot import Snapshot
from scheduler.core.units import ClusterId, FlavorId

_MICROS = (0, 1_000_000, 2_500_000, 2_500_001)


def rates(**of_clusters: Mapping[str, float]) -> tuple[RateView, ...]:
    """Of each cluster, by flavor: what a unit is charged an hour."""
    return tuple(
        RateView(FlavorId(flavor), ClusterId(cluster), round(rate * 1_000_000))
        for cluster, by_flavor in of_clusters.items()
        for flavor, rate in by_flavor.items()
    )


def rated(pick: Random, of: Snapshot) -> Snapshot:
    """At times clusters charge differently, and at times some rate is not known."""
    if pick.random() < 0.5:
        return replace(of, rates=())
    found = (
        RateView(flavor.id, cluster.id, pick.choice(_MICROS))
        for flavor in of.flavors
        for cluster in of.clusters
        if pick.random() < 0.9
    )
    return replace(of, rates=tuple(found))
