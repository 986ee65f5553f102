"""Reading usage, charges and rates, as far as an actor may see. Money is Decimal, never a
float."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from uuid import UUID

from django.conf import settings
from django.db.models import F, QuerySet, Sum, Value
from django.db.models.functions import TruncDay

from tenants import access
from tenants.access import Action, Actor
from tenants.models import Charge, Project, Rate, UsageInterval


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What is asked for; None is everything. `since` is inclusive, `until` exclusive."""

    project_id: UUID | None = None
    flavor: str | None = None
    workload_id: UUID | None = None
    since: datetime | None = None
    until: datetime | None = None


ALL = Filters()
MOMENT = timedelta(microseconds=1)
"""The least time that PostgreSQL tells apart. `ended_at` is the first moment that is not charged:
the hour before midnight ends on the next day, and is dated by its last moment."""


@dataclass(frozen=True, slots=True)
class Spent:
    """Charges of one project and flavor whose last moment is on one day, summed."""

    day: date
    project_id: UUID
    flavor: str
    amount: Decimal


def usage(*, actor: Actor, filters: Filters = ALL) -> QuerySet[UsageInterval]:
    """Closed intervals whose time meets the filter's; order them by id.

    Raises NotFound or NotAllowed for the project.
    """
    rows = UsageInterval.objects.select_related("project", "flavor", "cluster", "user")
    rows = _permitted(rows, actor=actor, project_id=filters.project_id)
    if filters.flavor is not None:
        rows = rows.filter(flavor__name=filters.flavor)
    if filters.workload_id is not None:
        rows = rows.filter(workload_id=filters.workload_id)
    if filters.since is not None or filters.until is not None:
        rows = rows.filter(during__overlap=(filters.since, filters.until))
    return rows


def charges(*, actor: Actor, filters: Filters = ALL) -> QuerySet[Charge]:
    """Charges of usage whose last moment is in the filter's time; order them by id.

    Raises as `usage`.
    """
    rows = Charge.objects.select_related("project", "flavor")
    rows = _permitted(rows, actor=actor, project_id=filters.project_id)
    if filters.flavor is not None:
        rows = rows.filter(flavor__name=filters.flavor)
    if filters.workload_id is not None:
        rows = rows.filter(workload_id=filters.workload_id)
    if filters.since is not None:
        rows = rows.filter(ended_at__gte=filters.since + MOMENT)
    if filters.until is not None:
        rows = rows.filter(ended_at__lt=filters.until + MOMENT)
    return rows


def by_day(*, actor: Actor, filters: Filters = ALL, zone: tzinfo = UTC) -> list[Spent]:
    """Spend a day of `zone`, project and flavor, in that order, in the installation's currency.

    One query; raises as `usage`.
    """
    rows = (
        _in_currency(charges(actor=actor, filters=filters))
        .annotate(day=TruncDay(F("ended_at") - Value(MOMENT), tzinfo=zone))
        .values_list("day", "project_id", "flavor__name")
        .annotate(Sum("amount"))
        .order_by("day", "project_id", "flavor__name")
    )
    return [Spent(day.date(), project, flavor, amount) for day, project, flavor, amount in rows]


def total(*, actor: Actor, filters: Filters = ALL) -> Decimal:
    """All of it in the installation's currency. One query; raises as `usage`."""
    rows = _in_currency(charges(actor=actor, filters=filters))
    amount: Decimal | None = rows.aggregate(sum=Sum("amount"))["sum"]
    return amount or Decimal(0)


def month_start(*, at: datetime, zone: tzinfo) -> datetime:
    """The first moment of the month in `zone`."""
    day = at.astimezone(zone).date().replace(day=1)
    return datetime.combine(day, time(), zone)


def rates(*, flavor: str | None = None, at: datetime | None = None) -> QuerySet[Rate]:
    """Prices, which everybody may read; `at` keeps those in force then. Order them by id."""
    rows = Rate.objects.select_related("flavor", "cluster")
    if flavor is not None:
        rows = rows.filter(flavor__name=flavor)
    if at is not None:
        rows = rows.filter(during__contains=at)
    return rows


def _in_currency(rows: QuerySet[Charge]) -> QuerySet[Charge]:
    """Amounts of several currencies have no sum."""
    return rows.filter(currency=settings.BERTH_CURRENCY)


def _permitted[M: (UsageInterval, Charge)](
    rows: QuerySet[M], *, actor: Actor, project_id: UUID | None
) -> QuerySet[M]:
    """Rows of projects whose spend the actor may see; asked for one, a refusal is told."""
    if project_id is not None:
        project: Project = access.project_or_404(actor, project_id)
        access.authorize(actor, Action.VIEW_SPEND, project=project)
        rows = rows.filter(project=project)
    return access.for_actor(rows, actor=actor, action=Action.VIEW_SPEND)
