"""An amount of a flavor that is kept for a project, or for a tenant with all below it, from one
moment to another, once or weekly."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from clusters.models import Flavor
from controlplane.kernel.models import Row
from tenants.models.project import Project
from tenants.models.tenant import Tenant

NEVER = datetime.max.replace(tzinfo=UTC)
WEEK = timedelta(days=7)
LONGEST_WEEKLY = timedelta(days=6)
"""Less than a week even where clocks are changed in it, so that no two windows overlap."""


class Reservation(Row):
    """In thousandths of the flavor, over all clusters, in [starts_at, ends_at), for the project or
    the tenant: one of them is set.

    With a `zone` it is kept each week anew, as long, from the same hour of that time zone's clocks
    on; the last of its windows ends at `last_ends_at`.

    What would run into it does not start on what it needs. It gives no quota. One that was
    cancelled keeps nothing.
    """

    project = models.ForeignKey(
        Project, null=True, blank=True, on_delete=models.PROTECT, related_name="reservations"
    )
    tenant = models.ForeignKey(
        Tenant, null=True, blank=True, on_delete=models.PROTECT, related_name="reservations"
    )
    flavor = models.ForeignKey(Flavor, on_delete=models.PROTECT, related_name="reservations")
    amount_milli = models.BigIntegerField()
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    note = models.CharField(max_length=500, blank=True)
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="reservations"
    )
    made_at = models.DateTimeField()
    cancelled_at = models.DateTimeField(null=True, blank=True)
    zone = models.CharField(max_length=64, blank=True, default="", db_default="")
    last_ends_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(project__isnull=True, tenant__isnull=False)
                | Q(project__isnull=False, tenant__isnull=True),
                name="reservation_of_one",
            ),
            models.CheckConstraint(
                condition=Q(amount_milli__gte=1, amount_milli__lte=10**12),
                name="reservation_amount_in_range",
            ),
            models.CheckConstraint(
                condition=Q(ends_at__gt=F("starts_at")), name="reservation_ends_later"
            ),
            models.CheckConstraint(
                condition=Q(zone="", last_ends_at=None)
                | (
                    ~Q(zone="")
                    & Q(
                        last_ends_at__isnull=False,  # or the check would be null, which is no no
                        last_ends_at__gte=F("ends_at"),
                        ends_at__lte=F("starts_at") + LONGEST_WEEKLY,
                    )
                ),
                name="reservation_once_or_weekly",
            ),
        ]

    access_path = "project"

    @property
    def owner(self) -> Project | Tenant:
        owner = self.project or self.tenant
        assert owner is not None  # noqa: S101  # for the type checker: a constraint
        return owner

    @staticmethod
    def lasts_beyond(at: datetime) -> Q:
        """Of those that keep something later than `at`, unless they are cancelled."""
        return Q(ends_at__gt=at) | Q(last_ends_at__gt=at)

    def windows(self, *, after: datetime, before: datetime) -> Iterator[tuple[datetime, datetime]]:
        """Those that end after `after` and begin before `before`, the first one first."""
        if self.last_ends_at is None:
            if self.ends_at > after and self.starts_at < before:
                yield self.starts_at, self.ends_at
            return
        zone, lasts = ZoneInfo(self.zone), self.ends_at - self.starts_at
        first = self.starts_at.astimezone(zone).replace(tzinfo=None)
        nth = max(0, (after - self.ends_at) // WEEK)
        while True:
            # The first stands as it was given: an hour that comes twice is told apart there.
            start = (first + nth * WEEK).replace(tzinfo=zone).astimezone(UTC)
            start = start if nth else self.starts_at
            if start >= before or start + lasts > self.last_ends_at:
                return
            if start + lasts > after:
                yield start, start + lasts
            nth += 1

    def __str__(self) -> str:
        return f"{self.project_id or self.tenant_id} {self.flavor_id} {self.amount_milli}"
