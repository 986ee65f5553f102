"""Prices as they are at a moment. What must not live here: charges, which keep their rate."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import cached_property
from uuid import UUID

from tenants.models import Rate


@dataclass(frozen=True, slots=True)
class Price:
    """Per whole unit of the flavor and hour. `cluster_id` None is any cluster without its own."""

    flavor_id: UUID
    cluster_id: UUID | None
    per_hour: Decimal
    currency: str


@dataclass(frozen=True)
class Prices:
    """All rates that hold at one moment."""

    rows: tuple[Price, ...]

    def of(self, *, flavor_id: UUID, cluster_id: UUID | None) -> Price | None:
        """The cluster's own price, else the one for any cluster, else None: not charged yet."""
        own = self._known.get((flavor_id, cluster_id))
        return own or self._known.get((flavor_id, None))

    @cached_property
    def _known(self) -> dict[tuple[UUID, UUID | None], Price]:
        return {(row.flavor_id, row.cluster_id): row for row in self.rows}

    def span(self, *, flavor_id: UUID, clusters: Iterable[UUID]) -> tuple[Price, Price] | None:
        """The lowest and the highest price over those clusters, None when none has one."""
        found = [
            price
            for cluster in clusters
            if (price := self.of(flavor_id=flavor_id, cluster_id=cluster))
        ]
        if not found:
            anywhere = self.of(flavor_id=flavor_id, cluster_id=None)
            return (anywhere, anywhere) if anywhere else None
        return _span(found)

    def anywhere(self, *, flavor_id: UUID) -> tuple[Price, Price] | None:
        """The lowest and the highest price of the flavor, whatever cluster it is of; None when it
        has none."""
        found = [row for row in self.rows if row.flavor_id == flavor_id]
        return _span(found) if found else None


def _span(found: Iterable[Price]) -> tuple[Price, Price]:
    ordered = sorted(found, key=lambda price: price.per_hour)
    return ordered[0], ordered[-1]


def at_moment(*, at: datetime) -> Prices:
    """One query. Rates are public within an installation: everybody may see what things cost."""
    rows = Rate.objects.filter(during__contains=at).order_by("id")
    columns = "flavor_id", "cluster_id", "price_per_hour", "currency"
    return Prices(tuple(Price(*row) for row in rows.values_list(*columns)))
