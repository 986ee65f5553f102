"""The project: a tenant's unit that owns a queue, quota and spend."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from clusters.models import Isolation
from controlplane.kernel import queues
from controlplane.kernel.models import Row
from tenants.models.tenant import Tenant, idle_limit_in_range, min_run_time_in_range

CAPS = (
    "max_running",
    "max_pending",
    "user_max_running",
    "user_max_pending",
    "user_max_gpus_milli",
    "max_submits_a_minute",
    "user_max_submits_a_minute",
)
"""Columns of Project; None in one is no cap."""
MAX_CAP = 10**9


def _is_cap(column: str) -> Q:
    within = Q((f"{column}__gte", 1), (f"{column}__lte", MAX_CAP))
    return Q((f"{column}__isnull", True)) | within


class Project(queues.Queue, Row):
    """`namespace` is server-made and the same in each cluster.

    `queue_changed_by` is who moved its queue last, None when nobody did. Caps count workloads that
    hold capacity (`running`) or wait (`pending`), of the whole project or of each submitter in it;
    `user_max_gpus_milli` is in thousandths of devices, slices and shares being parts of one, held
    by one submitter at once;
    `…_submits_a_minute` count workloads, an array as one. Those of `caps_from_above` somebody with
    a role above the project set, so its own people don't change them.
    `min_run_time_s` is how long its work runs before it may be evicted, and what is idle for
    `idle_timeout_s` is freed, as `Tenant` says of it.
    Its work starts on no share that keeps neighbours less apart than `least_isolation`: a new
    project's on none at all, until somebody says that it accepts them.
    `quota_confirmed_at` is when somebody last said that its quota is still wanted, or when it was
    made; while `quota_frozen_at` is set nothing of it starts, until somebody says so (ADR 0123).
    """

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="projects")
    name = models.CharField(max_length=100)
    slug = models.SlugField(max_length=40)
    namespace = models.CharField(max_length=63, unique=True)
    weight = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField()
    queue_changed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="queue_changes",
    )
    max_running = models.IntegerField(null=True, blank=True)
    max_pending = models.IntegerField(null=True, blank=True)
    user_max_running = models.IntegerField(null=True, blank=True)
    user_max_pending = models.IntegerField(null=True, blank=True)
    user_max_gpus_milli = models.IntegerField(null=True, blank=True)
    max_submits_a_minute = models.IntegerField(null=True, blank=True)
    user_max_submits_a_minute = models.IntegerField(null=True, blank=True)
    caps_from_above = ArrayField(
        models.CharField(max_length=30), default=list, db_default=[], blank=True
    )
    min_run_time_s = models.IntegerField(null=True, blank=True)
    idle_timeout_s = models.IntegerField(null=True, blank=True)
    idle_warning_s = models.IntegerField(null=True, blank=True)
    least_isolation = models.CharField(
        max_length=8,
        choices=Isolation,
        default=Isolation.HARDWARE,
        db_default=Isolation.HARDWARE,
    )
    quota_confirmed_at = models.DateTimeField(db_default=Now())
    quota_frozen_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "slug"], name="project_slug_once_a_tenant"),
            models.CheckConstraint(
                condition=Q(weight__gte=1, weight__lte=1000), name="project_weight_in_range"
            ),
            models.CheckConstraint(
                condition=min_run_time_in_range(), name="project_min_run_time_in_range"
            ),
            models.CheckConstraint(
                condition=idle_limit_in_range(), name="project_idle_limit_in_range"
            ),
            models.CheckConstraint(
                condition=Q(namespace__regex=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"),
                name="project_namespace_plain",
            ),
            *queues.constraints("project", by_someone=Q(queue_changed_by__isnull=False)),
            models.CheckConstraint(
                condition=Q(least_isolation__in=Isolation.values), name="project_isolation_known"
            ),
            models.CheckConstraint(
                condition=Q(quota_frozen_at__isnull=True)
                | Q(quota_frozen_at__gt=F("quota_confirmed_at")),
                name="project_frozen_since_confirmed",
            ),
            *(
                models.CheckConstraint(condition=_is_cap(cap), name=f"project_{cap}")
                for cap in CAPS
            ),
            models.CheckConstraint(
                condition=Q(caps_from_above__contained_by=list(CAPS)),
                name="project_caps_from_above_known",
            ),
        ]

    @property
    def full_name(self) -> str:
        """With its tenant's, for where those of several stand together."""
        return f"{self.tenant.name} / {self.name}"

    def __str__(self) -> str:
        return self.name
