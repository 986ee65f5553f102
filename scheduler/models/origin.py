"""Workloads that others made in a cluster, and the pods there that wait for them."""

from django.db import models
from django.db.models import Q

from clusters.models import Cluster
from controlplane.kernel.models import Row
from scheduler.models.placement import Placement
from scheduler.models.workload import PodSet, Workload
from tenants.models import Project


class Origin(Row):
    """What a workload was made of: an object of a cluster, "" for pods that nobody controls.

    `key` says which pods are its: those of one owner, of one gang by their own word, or one pod.
    Of those that have not ended each has another; `loop/catching/catch` sees to it.
    """

    workload = models.OneToOneField(Workload, on_delete=models.CASCADE, related_name="origin")
    cluster = models.ForeignKey(
        Cluster,
        on_delete=models.PROTECT,
        related_name="+",
        db_index=False,  # origin_by_key begins with it
    )
    key = models.CharField(max_length=700)
    api_version = models.CharField(max_length=253, blank=True)
    kind = models.CharField(max_length=253, blank=True)
    name = models.CharField(max_length=253)
    uid = models.CharField(max_length=253, blank=True)
    creator = models.CharField(max_length=300, blank=True)

    class Meta:
        indexes = [models.Index(fields=["cluster", "key"], name="origin_by_key")]

    access_path = "workload__project"

    def __str__(self) -> str:
        return f"{self.kind or 'gang'} {self.name}"


class CaughtPod(Row):
    """A gated pod that others made, from when it was seen to when it ended or went (`gone_at`).

    `said` is its report then. It is of `pod_set` once it is a part of a workload; until then
    `refusal` says why it is not, and `asked_at` is when that was asked last. `placement` is the
    last that it was given to: it is free while it has none that it might have been opened for.
    """

    cluster = models.ForeignKey(
        Cluster,
        on_delete=models.PROTECT,
        related_name="+",
        db_index=False,  # caught_pod_once begins with it
    )
    uid = models.CharField(max_length=64)
    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="caught_pods")
    name = models.CharField(max_length=253)
    said = models.JSONField()
    pod_set = models.ForeignKey(
        PodSet, on_delete=models.SET_NULL, null=True, blank=True, related_name="caught_pods"
    )
    placement = models.ForeignKey(
        Placement, on_delete=models.SET_NULL, null=True, blank=True, related_name="caught_pods"
    )
    refusal = models.CharField(max_length=500, blank=True)
    asked_at = models.DateTimeField(null=True, blank=True)
    seen_at = models.DateTimeField()
    gone_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["cluster", "uid"], name="caught_pod_once"),
            models.UniqueConstraint(
                fields=["placement"],
                condition=Q(gone_at__isnull=True),
                name="caught_pod_of_one_placement",
            ),
        ]
        indexes = [
            models.Index(
                fields=["cluster"],
                condition=Q(pod_set__isnull=True, gone_at__isnull=True),
                name="caught_pod_of_nobody",
            ),
        ]

    access_path = "project"

    @property
    def why(self) -> str:
        """Why it is not started, of one that no workload waits with."""
        if self.pod_set is None:
            return self.refusal
        return (
            f"Its workload {self.pod_set.workload} has ended: what was left of it in the cluster"
            " is deleted there."
        )

    def __str__(self) -> str:
        return self.name
