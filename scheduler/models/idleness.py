"""Which attempts leave all their devices unused."""

from django.db import models
from django.db.models import F, Q

from controlplane.kernel.models import Row
from scheduler.models.placement import Attempt


class Idleness(Row):
    """An attempt all of whose devices have been seen unused since then; gone once one is used, or
    not measured. Its submitter was told at `warned_at`. It means nothing while its cluster's use
    was not seen lately (`selectors.idleness`)."""

    attempt = models.OneToOneField(Attempt, on_delete=models.CASCADE, related_name="idleness")
    since = models.DateTimeField()
    warned_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(warned_at__isnull=True) | Q(warned_at__gte=F("since")),
                name="idleness_told_of_after_it_began",
            )
        ]

    access_path = "attempt__workload__project"

    def __str__(self) -> str:
        return f"{self.attempt_id} since {self.since}"
