"""What has to end before a workload, or an array, may start."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Coalesce
from django.db.models.lookups import GreaterThan

from controlplane.kernel.models import Row
from scheduler.models.workload import Workload, WorkloadArray


class DependencyKind(models.TextChoices):
    """How what is waited for has to end: an array as a whole, and well if all of it did."""

    AFTER_SUCCESS = "after-success"
    AFTER_END = "after-end"
    AFTER_FAILURE = "after-failure"  # failed or cancelled: an array, any of it


class OnUnmet(models.TextChoices):
    """What becomes of who waits, once that end can't come any more."""

    CANCEL = "cancel"
    HOLD = "hold"  # it waits until somebody releases it


class Dependency(Row):
    """The workload, or all of the array, waits for the end of another workload or array. Where an
    array waits by index, each element has a row of its own, for the element of its index.

    `unmet_at` is when it was seen that it can't come true, where that holds who waits.
    `settled_at` is when the end was seen: it ended as `kind` says, or who waits was cancelled, or
    released by a person.
    Only what was there before can be waited for, so nobody waits for itself, round any corner.
    """

    workload = models.ForeignKey(
        Workload, on_delete=models.CASCADE, null=True, blank=True, related_name="dependencies"
    )
    array = models.ForeignKey(
        WorkloadArray, on_delete=models.CASCADE, null=True, blank=True, related_name="dependencies"
    )
    on_workload = models.ForeignKey(
        Workload, on_delete=models.PROTECT, null=True, blank=True, related_name="dependents"
    )
    on_array = models.ForeignKey(
        WorkloadArray, on_delete=models.PROTECT, null=True, blank=True, related_name="dependents"
    )
    kind = models.CharField(max_length=13, choices=DependencyKind)
    on_unmet = models.CharField(
        max_length=6, choices=OnUnmet, default=OnUnmet.CANCEL, db_default=OnUnmet.CANCEL
    )
    unmet_at = models.DateTimeField(null=True, blank=True)
    settled_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name_plural = "dependencies"
        constraints = [
            models.CheckConstraint(
                condition=Q(kind__in=DependencyKind.values), name="dependency_kind_known"
            ),
            models.CheckConstraint(
                condition=Q(on_unmet__in=OnUnmet.values), name="dependency_on_unmet_known"
            ),
            models.CheckConstraint(
                condition=Q(unmet_at__isnull=True) | Q(on_unmet=OnUnmet.HOLD),
                name="dependency_unmet_holds",
            ),
            models.CheckConstraint(
                condition=Q(workload__isnull=True, array__isnull=False)
                | Q(workload__isnull=False, array__isnull=True),
                name="dependency_of_one",
            ),
            models.CheckConstraint(
                condition=Q(on_workload__isnull=True, on_array__isnull=False)
                | Q(on_workload__isnull=False, on_array__isnull=True),
                name="dependency_on_one",
            ),
            models.CheckConstraint(
                condition=GreaterThan(
                    Coalesce("workload_id", "array_id"), Coalesce("on_workload_id", "on_array_id")
                ),
                name="dependency_on_the_earlier",
            ),
            models.UniqueConstraint(
                fields=["workload", "array", "on_workload", "on_array", "kind"],
                name="dependency_once",
                nulls_distinct=False,
            ),
        ]
        indexes = [
            models.Index(
                fields=["id"], condition=Q(settled_at__isnull=True), name="dependency_open"
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.on_workload_id or self.on_array_id}"
