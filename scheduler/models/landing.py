"""Where a workload starts next: it was moved, or others were for it."""

from django.db import models

from clusters.models import Cluster
from controlplane.kernel.models import Row
from scheduler.models.workload import Workload


class Landing(Row):
    """`places` as `core.plan.Place` has them. Gone with the cycle after its workload has started,
    or for which the places are not to be had any more."""

    workload = models.OneToOneField(Workload, on_delete=models.CASCADE, related_name="+")
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="+")
    places = models.JSONField()
    since = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.workload_id} in {self.cluster_id}"
