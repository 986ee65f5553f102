"""What projects have used, day by day: the memory of fair share."""

from django.db import models
from django.db.models import Q

from clusters.models import Flavor
from controlplane.kernel.models import Row
from tenants.models.project import Project


class PastUse(Row):
    """What the usage intervals that began on `day` (UTC) come to, over all clusters: thousandths
    of the flavor times seconds. Kept up in the transactions that add intervals, and derivable from
    those.
    """

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="past_use")
    flavor = models.ForeignKey(Flavor, on_delete=models.PROTECT, related_name="past_use")
    day = models.DateField()
    milli_s = models.BigIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["day", "project", "flavor"], name="past_use_once_a_day"
            ),
            models.CheckConstraint(condition=Q(milli_s__gt=0), name="past_use_positive"),
        ]

    access_path = "project"

    def __str__(self) -> str:
        return f"{self.day} {self.project_id} {self.flavor_id} {self.milli_s}"
