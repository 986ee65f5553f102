"""What projects use and borrow in days that are played again, and what it costs at the prices of
now, as the fleet is that of now."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from uuid import UUID

from django.conf import settings

from clusters.models import Flavor
from scheduler.core.simulating.held_time import Use
from scheduler.core.simulating.replay import Played
from scheduler.core.units import FlavorId
from tenants import pricing
from tenants.selectors import prices

SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Used:
    """What a project's pods hold of a flavor, in thousandths times seconds: as it is, and with the
    change. A cost is in the installation's currency, None where any of it has no price in that."""

    flavor: str
    before_milli_s: int
    after_milli_s: int
    before_cost: Decimal | None
    after_cost: Decimal | None


@dataclass(frozen=True, slots=True)
class Borrowed:
    """What is held of a flavor beyond nominal, in thousandths times seconds: as it is, and with
    the change. Where that changes a nominal quota, by each its own."""

    flavor: str
    before_milli_s: int
    after_milli_s: int


class Uses:
    """As flavors are called and priced at a moment. Two queries."""

    def __init__(self, *, at: datetime) -> None:
        self._names = {FlavorId(str(row.id)): row.name for row in Flavor.objects.all()}
        self._prices = prices.at_moment(at=at)

    def used(self, of: Played) -> tuple[Used, ...]:
        """By the name of the flavor."""
        before, after = _by_flavor(of.use_before), _by_flavor(of.use_after)
        return tuple(
            Used(
                self._names[flavor],
                before[flavor],
                after[flavor],
                self._cost(flavor, of.use_before),
                self._cost(flavor, of.use_after),
            )
            for flavor in sorted(before.keys() | after.keys(), key=self._names.__getitem__)
        )

    def borrowed(self, of: Iterable[Played]) -> tuple[Borrowed, ...]:
        """Of all of them together, by the name of the flavor."""
        before, after = Counter[str](), Counter[str]()
        for each in of:
            for found, use in ((before, each.use_before), (after, each.use_after)):
                for flavor, milli_s in use.borrowed_milli_s.items():
                    found[self._names[flavor]] += milli_s
        names = sorted(before.keys() | after.keys())
        return tuple(Borrowed(name, before[name], after[name]) for name in names)

    def _cost(self, flavor: FlavorId, use: Use) -> Decimal | None:
        cost = Decimal(0)
        for (of, cluster), milli_s in use.used_milli_s.items():
            if of != flavor:
                continue
            price = self._prices.of(flavor_id=UUID(of), cluster_id=UUID(cluster))
            if price is None or price.currency != settings.BERTH_CURRENCY:
                return None
            cost += pricing.charge(
                amount_milli=milli_s, held=SECOND, price_per_hour=price.per_hour
            )
        return cost


def _by_flavor(use: Use) -> Counter[FlavorId]:
    found = Counter[FlavorId]()
    for (flavor, _), milli_s in use.used_milli_s.items():
        found[flavor] += milli_s
    return found
