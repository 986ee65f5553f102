"""What runs has cost since it was last metered: an estimate at today's prices, no charge yet.

The meter closes usage when a pod ends and at full hours; until then this is the part not in the
ledger.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from uuid import UUID

from django.db.models import DurationField, ExpressionWrapper, F, Q, QuerySet, Sum, Value
from django.db.models.fields import DateTimeField
from django.db.models.functions import Coalesce

from scheduler.models import Placement
from tenants import access, pricing
from tenants.access import Action, Actor
from tenants.models import Charge
from tenants.selectors.prices import Prices


@dataclass(frozen=True, slots=True)
class Running:
    """What one project runs of one flavor, unmetered so far.

    `per_hour` is what an hour of what runs now costs. `priced` is False when a part has no rate:
    it is charged once there is one.
    """

    project_id: UUID
    flavor_id: UUID
    amount: Decimal
    per_hour: Decimal
    priced: bool


@dataclass(frozen=True, slots=True)
class Cost:
    """`charged` is in the ledger; `running` is an estimate of what is not yet."""

    charged: Decimal
    running: Running | None

    @property
    def total(self) -> Decimal:
        return self.charged + (self.running.amount if self.running else Decimal(0))


def by_project_and_flavor(*, actor: Actor, prices: Prices, at: datetime) -> list[Running]:
    """For the projects whose spend the actor may see. One query."""
    rows = access.for_actor(Placement.objects.all(), actor=actor, action=Action.VIEW_SPEND)
    return _running(rows, prices=prices, at=at)


def of_workload(*, workload_id: UUID, prices: Prices, at: datetime) -> Running | None:
    """All pods of one workload, None when nothing of it is unmetered. One query."""
    parts = _running(Placement.objects.filter(workload_id=workload_id), prices=prices, at=at)
    if not parts:
        return None
    return Running(
        parts[0].project_id,
        parts[0].flavor_id,
        sum((part.amount for part in parts), Decimal(0)),
        sum((part.per_hour for part in parts), Decimal(0)),
        all(part.priced for part in parts),
    )


def cost(*, workload_id: UUID, prices: Prices, at: datetime) -> Cost:
    """What one workload cost so far. Two queries."""
    charged = Charge.objects.filter(workload_id=workload_id).aggregate(sum=Sum("amount"))["sum"]
    running = of_workload(workload_id=workload_id, prices=prices, at=at)
    return Cost(charged or Decimal(0), running)


def _running(rows: QuerySet[Placement], *, prices: Prices, at: datetime) -> list[Running]:
    """Amount times held time is summed in the database, by what has one price."""
    held = ExpressionWrapper(
        Coalesce(F("ended_at"), Value(at, output_field=DateTimeField()))
        - Coalesce(F("metered_until"), F("started_at")),
        output_field=DurationField(),
    )
    # What is released is metered to its end, in one transaction.
    sums = (
        rows.filter(released_at__isnull=True, started_at__isnull=False, started_at__lt=at)
        .values("workload__project_id", "flavor_id", "attempt__cluster_id")
        .annotate(
            milli_time=Sum(
                ExpressionWrapper(F("amount_milli") * held, output_field=DurationField())
            ),
            running_milli=Sum("amount_milli", filter=Q(ended_at__isnull=True)),
        )
        .order_by("workload__project_id", "flavor_id")
    )
    found: dict[tuple[UUID, UUID], Running] = {}
    for row in sums:
        key = row["workload__project_id"], row["flavor_id"]
        price = prices.of(flavor_id=key[1], cluster_id=row["attempt__cluster_id"])
        rate = price.per_hour if price else Decimal(0)
        before = found.get(key)
        found[key] = Running(
            *key,
            (before.amount if before else Decimal(0))
            + pricing.charge(
                amount_milli=1, held=max(row["milli_time"], timedelta(0)), price_per_hour=rate
            ),
            (before.per_hour if before else Decimal(0))
            + rate * (row["running_milli"] or 0) / 1000,
            (before.priced if before else True) and price is not None,
        )
    return list(found.values())
