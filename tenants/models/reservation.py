"""An amount of a flavor that is kept for a project from one moment to another."""

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from clusters.models import Flavor
from controlplane.kernel.models import Row
from tenants.models.project import Project


class Reservation(Row):
    """In thousandths of the flavor, over all clusters, in [starts_at, ends_at).

    What would run into it does not start on what it needs. It gives no quota. One that was
    cancelled keeps nothing.
    """

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="reservations")
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

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(amount_milli__gte=1, amount_milli__lte=10**12),
                name="reservation_amount_in_range",
            ),
            models.CheckConstraint(
                condition=Q(ends_at__gt=F("starts_at")), name="reservation_ends_later"
            ),
        ]

    access_path = "project"

    def __str__(self) -> str:
        return f"{self.project_id} {self.flavor_id} {self.amount_milli}"
