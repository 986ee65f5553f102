"""A machine of a cluster, as its API last showed it."""

from collections.abc import Mapping

from django.db import models
from django.db.models import Q

from clusters.models.cluster import Cluster
from clusters.models.flavor import Isolation
from clusters.origin import Origin, origin
from clusters.port import NVIDIA_GPU
from controlplane.kernel.models import Row


class Node(Row):
    """Amounts are allocatable. `foreign_*` is what pods that are not ours hold there. With
    `mig_single` a slice of its devices is asked for as one `gpu_resource`. With a `device_driver`
    each of its devices is asked for by itself. It is `leaving` once its cluster was told that it
    will be taken away.

    A node that vanished keeps its row, with `gone_at`.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="nodes")
    name = models.CharField(max_length=253)
    hostname = models.CharField(max_length=253)
    ready = models.BooleanField(default=False)
    schedulable = models.BooleanField(default=True)
    leaving = models.BooleanField(default=False, db_default=False)
    cpu_milli = models.BigIntegerField()
    memory_mib = models.BigIntegerField()
    foreign_cpu_milli = models.BigIntegerField(default=0)
    foreign_memory_mib = models.BigIntegerField(default=0)
    share_replicas = models.PositiveIntegerField(default=1)
    share_isolation = models.CharField(max_length=8, blank=True)
    share_resource = models.CharField(max_length=80, blank=True)
    gpu_resource = models.CharField(max_length=80, default=NVIDIA_GPU, db_default=NVIDIA_GPU)
    mig_single = models.BooleanField(default=False, db_default=False)
    device_driver = models.CharField(max_length=253, blank=True, default="", db_default="")
    labels = models.JSONField(default=dict)
    gone_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["cluster", "name"], name="node_name_once_a_cluster"),
            models.CheckConstraint(
                condition=Q(cpu_milli__gte=0)
                & Q(memory_mib__gte=0)
                & Q(foreign_cpu_milli__gte=0)
                & Q(foreign_memory_mib__gte=0),
                name="node_amounts_not_negative",
            ),
            models.CheckConstraint(
                condition=Q(share_replicas__gte=1, share_replicas__lte=1000),
                name="node_share_replicas_in_range",
            ),
            models.CheckConstraint(
                condition=Q(share_isolation__in=["", Isolation.NONE, Isolation.MEMORY]),
                name="node_share_isolation_known",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def origin(self) -> Origin:
        return origin(self.labels)

    def topology(self, levels: Mapping[str, str]) -> dict[str, str]:
        """Where it stands, by level, as its labels tell; `levels` has the label of each. A level
        that they do not tell is left out."""
        return {level: self.labels[key] for level, key in levels.items() if self.labels.get(key)}
