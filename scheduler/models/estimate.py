"""Forecasts of starts. Every published one is kept, so that it can be scored."""

from django.db import models
from django.db.models import F, Q

from controlplane.kernel.models import Row
from scheduler.models.workload import Workload


class Estimate(Row):
    """Seconds from `as_of` to the start, half and nine in ten times. Both null: no basis."""

    workload = models.ForeignKey(
        Workload,
        on_delete=models.CASCADE,
        related_name="estimates",
        db_index=False,  # estimate_once_a_moment begins with it
    )
    as_of = models.DateTimeField()
    p50_s = models.PositiveIntegerField(null=True, blank=True)
    p90_s = models.PositiveIntegerField(null=True, blank=True)
    basis = models.CharField(max_length=10)
    passes = models.PositiveSmallIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workload", "as_of"], name="estimate_once_a_moment"),
            models.CheckConstraint(
                condition=Q(p50_s__isnull=True, p90_s__isnull=True)
                | Q(p50_s__isnull=False, p90_s__isnull=True)
                | Q(p50_s__isnull=False, p90_s__gte=F("p50_s")),
                name="estimate_in_order",
            ),
        ]

    access_path = "workload__project"

    def __str__(self) -> str:
        return f"{self.workload_id} {self.p50_s}-{self.p90_s}"
