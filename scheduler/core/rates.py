"""What work is charged an hour in each cluster, where they differ: the cheaper one is asked first.

Rates are money. (What `prices`, `packed` and `slices` call a price is what a gap is worth.)
"""

from collections.abc import Mapping
from dataclasses import dataclass
from operator import attrgetter

from scheduler.core.units import ClusterId, FlavorId

type Hourly = Mapping[ClusterId, int]
"""By cluster, in billionths of the installation's currency an hour."""


@dataclass(frozen=True, slots=True)
class RateView:
    """What a whole unit of the flavor is charged an hour in the cluster, in millionths of the
    installation's currency."""

    flavor: FlavorId
    cluster: ClusterId
    micro_per_hour: int


class Rates:
    """Those that are `listed` in one snapshot; of one that is there twice the higher counts."""

    def __init__(self, listed: tuple[RateView, ...]) -> None:
        self.listed = listed
        self._micro: dict[FlavorId, dict[ClusterId, int]] = {}
        for rate in sorted(listed, key=attrgetter("micro_per_hour")):
            self._micro.setdefault(rate.flavor, {})[rate.cluster] = rate.micro_per_hour
        self._known: dict[tuple[tuple[FlavorId, int], ...], Hourly] = {}

    def hourly(self, amounts: tuple[tuple[FlavorId, int], ...]) -> Hourly:
        """What these thousandths of flavors are charged. A cluster that lacks a rate of one of
        them is left out: nobody knows what is charged there later. What has a rate nowhere is not
        counted. {} where there are no rates."""
        if not self._micro:
            return {}
        found = self._known.get(amounts)
        if found is None:
            rated = [(self._micro[f], milli) for f, milli in amounts if f in self._micro]
            known = set[ClusterId]().union(*(of for of, _ in rated))
            found = self._known[amounts] = {
                cluster: sum(of[cluster] * milli for of, milli in rated)
                for cluster in known
                if all(cluster in of for of, _ in rated)
            }
        return found


def dearness(hourly: Hourly, cluster: ClusterId) -> tuple[bool, int]:
    """What clusters sort by, the cheapest first; last where it is not known."""
    return cluster not in hourly, hourly.get(cluster, 0)
