"""What became of confining a project in a cluster."""

from django.db import models

from clusters.models import Cluster
from controlplane.kernel.models import Row
from tenants.models import Project


class Confinement(Row):
    """Of one project in one cluster, from when it was first to be confined there.

    `digest` is of what was applied last; "" is nothing yet, or nobody knows. `drift` is what was
    found to differ from that the last time that anything did, with the fields of
    `clusters.confinement.Drift`; it was found at `drifted_at`, and put right at `repaired_at`,
    None while it stands. `error` is why it could not be applied or looked at the last time, ""
    when it could, and `failed_count` how often in a row it could not. `quotas` has, by flavor's
    id, the version of each of the project's quotas with which what is wanted was last worked out
    and found to be what is applied.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="confinements")
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="confinements")
    digest = models.CharField(max_length=64, blank=True)
    applied_at = models.DateTimeField(null=True, blank=True)
    checked_at = models.DateTimeField(null=True, blank=True)
    drift = models.JSONField(default=list, blank=True)
    drifted_at = models.DateTimeField(null=True, blank=True)
    repaired_at = models.DateTimeField(null=True, blank=True)
    error = models.CharField(max_length=500, blank=True)
    failed_count = models.IntegerField(default=0, db_default=0)
    quotas = models.JSONField(default=dict, db_default={}, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "project"], name="confinement_once_a_cluster_and_project"
            )
        ]

    access_path = "project"

    @property
    def is_drifted(self) -> bool:
        return self.drifted_at is not None and self.repaired_at is None

    def __str__(self) -> str:
        return f"{self.project_id} in {self.cluster_id}"
