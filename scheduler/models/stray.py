"""Pods under our labels that nobody knows: the database is older than their cluster."""

from django.db import models

from clusters.models import Cluster
from controlplane.kernel.models import Row
from scheduler.models.workload import Workload


class Stray(Row):
    """One such pod that runs, from the list in which it was found until it has ended; of a known
    workload until it is gone or has failed, for what has succeeded is not run again
    (`loop/adopting/adopt`).

    `workload` is whose it is by its labels, name and namespace, and waits meanwhile; None where
    the database has no such workload, or the pod is not believed (`loop/adopting/unknown`). `why`
    says why it was not adopted.
    """

    cluster = models.ForeignKey(
        Cluster,
        on_delete=models.CASCADE,
        related_name="strays",
        db_index=False,  # stray_once begins with it
    )
    uid = models.CharField(max_length=64)
    namespace = models.CharField(max_length=253)
    name = models.CharField(max_length=253)
    node = models.CharField(max_length=253, blank=True)
    workload = models.ForeignKey(
        Workload, on_delete=models.SET_NULL, null=True, blank=True, related_name="strays"
    )
    attempt = models.PositiveIntegerField()
    why = models.CharField(max_length=200)
    found_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "uid"], name="stray_once")]

    def __str__(self) -> str:
        return self.name
