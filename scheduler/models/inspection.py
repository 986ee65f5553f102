"""What a cluster says of a pod, fetched because somebody asked (ADR 0087)."""

from datetime import timedelta

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from controlplane.kernel.models import Row
from scheduler.models.placement import Placement

KEPT = timedelta(minutes=15)
"""Real time."""


class Inspection(Row):
    """The newest of a placement's pod; it is forgotten soon. Under way until `ended_at`.

    `events` have the fields of `clusters.inspection.EventReport`, the latest first; `log` is the
    end of its container's log, `log_is_cut` whether there may be more before that. `events_why`
    and `log_why` say why there are none of them, "" where they were told. `asked_by` is who asked,
    as the audit names people. `timed_from` is when, by the database's clock: how long it is kept
    is real time.
    """

    placement = models.OneToOneField(
        Placement, on_delete=models.CASCADE, related_name="inspection"
    )
    asked_at = models.DateTimeField()
    asked_by = models.CharField(max_length=150)
    timed_from = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True, blank=True)
    events = models.JSONField(default=list)
    events_why = models.CharField(max_length=500, blank=True)
    log = models.TextField(blank=True)
    log_is_cut = models.BooleanField(default=False)
    log_why = models.CharField(max_length=500, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(ended_at__isnull=False) | Q(events=[], log=""),
                name="inspection_tells_at_its_end",
            )
        ]

    access_path = "placement__workload__project"

    def __str__(self) -> str:
        return f"inspection of {self.placement.pod_name}"
