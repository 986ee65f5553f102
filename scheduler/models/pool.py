"""What was free of each stock in each cluster, and how usable that was, moment after moment."""

from django.db import models
from django.db.models import F, Q

from clusters import stock
from clusters.models import Cluster
from controlplane.kernel.models import Row


class PoolSample(Row):
    """As `core.fleet.pools.PoolFigures`; `model` is the stock's name, `gangs` are [level, GPUs
    a pod, pods]."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="pool_samples")
    model = models.CharField(max_length=stock.LONGEST)
    at = models.DateTimeField()
    total_milli = models.BigIntegerField()
    free_milli = models.BigIntegerField()
    stranded_milli = models.BigIntegerField()
    scattered_milli = models.PositiveSmallIntegerField()
    whole_nodes = models.PositiveIntegerField()
    gangs = models.JSONField(default=list, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "at", "model"], name="pool_sample_once_a_moment"
            ),
            models.CheckConstraint(
                condition=Q(
                    stranded_milli__gte=0,
                    free_milli__gte=F("stranded_milli"),
                    total_milli__gte=F("free_milli"),
                    scattered_milli__lte=1000,
                ),
                name="pool_sample_in_order",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.cluster_id} {self.model} {self.free_milli}/{self.total_milli}"
