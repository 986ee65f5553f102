"""Spend over time as the spend page shows it: charges by day, and by project or flavor."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from uuid import UUID

from django.conf import settings
from django.db.models import F, Sum, Value
from django.db.models.functions import TruncDay

from tenants import access
from tenants.access import Action, Actor
from tenants.models import Charge, Project
from tenants.selectors.spend import MOMENT


@dataclass(frozen=True, slots=True)
class Spent:
    """Charges of one project and flavor that ended on one local day."""

    day: date
    project_id: UUID
    flavor: str
    amount: Decimal


def month_start(*, at: datetime, zone: tzinfo) -> datetime:
    """The first moment of the local month."""
    day = at.astimezone(zone).date().replace(day=1)
    return datetime.combine(day, time(), zone)


def days(*, at: datetime, count: int, zone: tzinfo) -> tuple[date, ...]:
    """The last `count` local days, oldest first, today last."""
    today = at.astimezone(zone).date()
    return tuple(today - timedelta(days=back) for back in reversed(range(count)))


def by_day(*, actor: Actor, since: datetime, zone: tzinfo) -> list[Spent]:
    """Of the projects whose spend the actor may see, in the installation's currency. One query."""
    rows = (
        access.for_actor(Charge.objects.all(), actor=actor, action=Action.VIEW_SPEND)
        .filter(ended_at__gt=since, currency=settings.BERTH_CURRENCY)
        .annotate(day=TruncDay(F("ended_at") - Value(MOMENT), tzinfo=zone))
        .values_list("day", "project_id", "flavor__name")
        .annotate(Sum("amount"))
        .order_by("day", "project_id", "flavor__name")
    )
    return [Spent(day.date(), project, flavor, amount) for day, project, flavor, amount in rows]


def total(*, actor: Actor, since: datetime) -> Decimal:
    """All that these projects were charged for since then. One query."""
    rows = access.for_actor(Charge.objects.all(), actor=actor, action=Action.VIEW_SPEND)
    found = rows.filter(ended_at__gt=since, currency=settings.BERTH_CURRENCY)
    amount: Decimal | None = found.aggregate(sum=Sum("amount"))["sum"]
    return amount or Decimal(0)


def projects(*, actor: Actor) -> Mapping[UUID, Project]:
    """The projects whose spend the actor may see. One query."""
    rows = access.for_actor(Project.objects.all(), actor=actor, action=Action.VIEW_SPEND)
    return {project.id: project for project in rows.select_related("tenant")}


def stacked(
    spent: Sequence[Spent], *, by: Mapping[UUID, str] | None, days: Sequence[date]
) -> list[tuple[str, list[Decimal]]]:
    """(name, a value for each day) with the largest total first; `by` maps projects to names, None
    stacks by flavor."""
    at = {day: n for n, day in enumerate(days)}
    sums: dict[str, list[Decimal]] = {}
    for one in spent:
        if one.day in at:
            name = one.flavor if by is None else by[one.project_id]
            values = sums.setdefault(name, [Decimal(0)] * len(days))
            values[at[one.day]] += one.amount
    return sorted(sums.items(), key=lambda item: (-sum(item[1]), item[0]))
