"""How much of a flavor a project may hold."""

from django.db import models
from django.db.models import Q

from clusters.models import Flavor
from controlplane.kernel.models import Row
from tenants.models.project import Project


class Quota(Row):
    """Amounts in thousandths of the flavor; a null limit is no limit.

    `used_milli` moves in the transactions that place and release; a trigger refuses any increase
    past nominal + borrowing limit, or past what the fleet's projects lend each other, and others
    refuse to delete or move a row that is used. `version` counts edits, so that an approval binds
    to what was seen.
    """

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="quotas")
    flavor = models.ForeignKey(Flavor, on_delete=models.PROTECT, related_name="quotas")
    nominal_milli = models.BigIntegerField()
    borrowing_limit_milli = models.BigIntegerField(null=True, blank=True)
    lending_limit_milli = models.BigIntegerField(null=True, blank=True)
    used_milli = models.BigIntegerField(default=0)
    version = models.PositiveIntegerField(default=1)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["project", "flavor"], name="quota_once_a_project_and_flavor"
            ),
            models.CheckConstraint(
                condition=Q(nominal_milli__gte=0, nominal_milli__lte=10**12)
                & Q(used_milli__gte=0, used_milli__lte=10**12)
                & (
                    Q(borrowing_limit_milli__isnull=True)
                    | Q(borrowing_limit_milli__gte=0, borrowing_limit_milli__lte=10**12)
                )
                & (
                    Q(lending_limit_milli__isnull=True)
                    | Q(lending_limit_milli__gte=0, lending_limit_milli__lte=10**12)
                ),
                name="quota_amounts_in_range",
            ),
        ]

    access_path = "project"

    def __str__(self) -> str:
        return f"{self.project_id} {self.flavor_id} {self.nominal_milli}"
