"""How many hours of devices a project, or a tenant with all below it, may use in a period."""

from datetime import UTC, date, datetime, time
from typing import NamedTuple

from django.db import models
from django.db.models import Q

from controlplane.kernel.models import Row
from tenants.models.project import Project
from tenants.models.tenant import Tenant

MAX_BUDGET_H = 10**9


class Period(models.TextChoices):
    """What a budget is for; months and quarters are of the calendar, in UTC."""

    ONCE = "once"  # the days that it says
    MONTH = "month"
    QUARTER = "quarter"


class BudgetMode(models.TextChoices):
    WARN = "warn"  # nothing is kept from starting
    SOFT = "soft"  # once it is used up nothing new starts; what runs goes on
    SAFE = "safe"  # as soft, and what starts is covered to the end of its run-time limit
    HARD = "hard"  # as soft, and what runs on devices is stopped


class Window(NamedTuple):
    """[starts_at, ends_at), both midnight in UTC."""

    starts_at: datetime
    ends_at: datetime


class Budget(Row):
    """`limit_h` device-hours in each period, of the project or the tenant: one of them is set.

    `starts_on` is the first day of a budget for once, and `ends_on` the day after its last; others
    have neither. `version` counts edits, as that of a quota does. `used_up_at`: when work was last
    stopped for it; to the end of that period it is used up, whatever is counted anew, unless it is
    raised.
    """

    project = models.ForeignKey(
        Project, null=True, blank=True, on_delete=models.PROTECT, related_name="budgets"
    )
    tenant = models.ForeignKey(
        Tenant, null=True, blank=True, on_delete=models.PROTECT, related_name="budgets"
    )
    period = models.CharField(max_length=7, choices=Period)
    limit_h = models.BigIntegerField()
    mode = models.CharField(max_length=4, choices=BudgetMode)
    starts_on = models.DateField(null=True, blank=True)
    ends_on = models.DateField(null=True, blank=True)
    version = models.PositiveIntegerField(default=1)
    used_up_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(project__isnull=True, tenant__isnull=False)
                | Q(project__isnull=False, tenant__isnull=True),
                name="budget_of_one",
            ),
            models.UniqueConstraint(
                fields=["project", "period"], name="budget_once_a_project_and_period"
            ),
            models.UniqueConstraint(
                fields=["tenant", "period"], name="budget_once_a_tenant_and_period"
            ),
            models.CheckConstraint(
                condition=Q(limit_h__gte=0, limit_h__lte=MAX_BUDGET_H),
                name="budget_limit_in_range",
            ),
            models.CheckConstraint(
                condition=Q(mode__in=BudgetMode.values), name="budget_mode_known"
            ),
            models.CheckConstraint(
                condition=Q(used_up_at__isnull=True) | Q(mode=BudgetMode.HARD),
                name="budget_used_up_where_hard",
            ),
            models.CheckConstraint(
                condition=Q(period=Period.ONCE, starts_on__lt=models.F("ends_on"))
                & Q(starts_on__isnull=False, ends_on__isnull=False)
                | Q(
                    period__in=(Period.MONTH, Period.QUARTER),
                    starts_on__isnull=True,
                    ends_on__isnull=True,
                ),
                name="budget_days_of_its_period",
            ),
        ]

    access_path = "project"

    @property
    def owner(self) -> Project | Tenant:
        owner = self.project or self.tenant
        assert owner is not None  # noqa: S101  # for the type checker: a constraint
        return owner

    def window(self, *, at: datetime) -> Window | None:
        """Its period at that time; None before and after the days of one for once."""
        day = at.astimezone(UTC).date()
        if self.starts_on is not None and self.ends_on is not None:
            within = self.starts_on <= day < self.ends_on
            return Window(_midnight(self.starts_on), _midnight(self.ends_on)) if within else None
        months = 3 if self.period == Period.QUARTER else 1
        first = (day.month - 1) // months * months + 1
        year, month = divmod(first - 1 + months, 12)
        starts, ends = date(day.year, first, 1), date(day.year + year, month + 1, 1)
        return Window(_midnight(starts), _midnight(ends))

    def __str__(self) -> str:
        return f"{self.project_id or self.tenant_id} {self.period} {self.limit_h}"


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
