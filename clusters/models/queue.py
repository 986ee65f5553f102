"""Whether new work starts in a cluster, or on one model in it."""

from django.db import models
from django.db.models import Q

from clusters import stock
from clusters.models.cluster import Cluster
from controlplane.kernel import queues
from controlplane.kernel.models import Row


class HardwareQueue(queues.Queue, Row):
    """The queue of a pool, one stock in one cluster, `model` by its name; for "" that of the whole
    cluster. Without a row it is open. `queue_changed_by` is who moved it last, as the audit names
    people."""

    cluster = models.ForeignKey(
        Cluster, on_delete=models.PROTECT, related_name="queues", db_index=False
    )
    model = models.CharField(max_length=stock.LONGEST, blank=True)
    queue_changed_by = models.CharField(max_length=150, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "model"], name="hardware_queue_once_a_pool"
            ),
            *queues.constraints("hardware", by_someone=~Q(queue_changed_by="")),
        ]

    def __str__(self) -> str:
        return f"{self.model} in {self.cluster.name}" if self.model else self.cluster.name
