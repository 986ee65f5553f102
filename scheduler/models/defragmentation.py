"""Moves of work that an operator has planned for a window."""

from django.db import models
from django.db.models import F, Q

from clusters.models import Cluster
from controlplane.kernel.models import Row


class Defragmentation(Row):
    """Carried out once, by the first cycle in [starts_at, ends_at) that finds no moves under way.

    It may lose `budget_s` seconds of a GPU. `ended_at` is when it was carried out, missed or
    called off, or has failed, and `outcome` says what became of it (see `loop/preparing/defrag`),
    {} that nothing was done.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="+")
    budget_s = models.PositiveIntegerField()
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    planned_by = models.CharField(max_length=150)
    planned_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    outcome = models.JSONField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(ends_at__gt=F("starts_at")), name="defragmentation_window"
            ),
            models.UniqueConstraint(
                fields=["cluster"],
                condition=Q(ended_at__isnull=True),
                name="defragmentation_planned_once",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.cluster_id} from {self.starts_at}"
