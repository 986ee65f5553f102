"""The tenant tree: organisation > department. Projects hang below."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from controlplane.kernel import queues
from controlplane.kernel.models import Row

MAX_MIN_RUN_TIME_S = 86_400
"""Longer would keep quota from its owner for more than a day."""


def min_run_time_in_range() -> Q:
    within = Q(min_run_time_s__gte=0, min_run_time_s__lte=MAX_MIN_RUN_TIME_S)
    return Q(min_run_time_s__isnull=True) | within


MAX_IDLE_TIMEOUT_S = 30 * 86_400
"""Longer is as good as never."""


def idle_limit_in_range() -> Q:
    """Both or neither are said, and the warning is no longer than the time-out."""
    neither = Q(idle_timeout_s__isnull=True, idle_warning_s__isnull=True)
    both = Q(
        idle_timeout_s__gte=0,
        idle_timeout_s__lte=MAX_IDLE_TIMEOUT_S,
        idle_warning_s__gte=0,
        idle_warning_s__lte=models.F("idle_timeout_s"),
        idle_timeout_s__isnull=False,
        idle_warning_s__isnull=False,
    )
    return neither | both


class Tenant(queues.Queue, Row):
    """An organisation (no parent) or a department of one. A trigger refuses cycles.

    `weight` is its part in fair share among its siblings. `min_run_time_s` is how long work of
    its projects runs before it may be evicted. What is idle for `idle_timeout_s` is freed, and
    told `idle_warning_s` before; a time-out of 0 is never. Of both the shortest time holds that a
    project or any tenant above it says, None saying nothing. Its queue is that of all projects
    below it; `queue_changed_by` is who moved it last, None when nobody did.
    """

    parent = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.PROTECT, related_name="departments"
    )
    name = models.CharField(max_length=100)
    slug = models.SlugField(max_length=40, unique=True)
    weight = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField()
    min_run_time_s = models.IntegerField(null=True, blank=True)
    idle_timeout_s = models.IntegerField(null=True, blank=True)
    idle_warning_s = models.IntegerField(null=True, blank=True)
    queue_changed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="tenant_queue_changes",
    )

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(weight__gte=1, weight__lte=1000), name="tenant_weight_in_range"
            ),
            models.CheckConstraint(
                condition=min_run_time_in_range(), name="tenant_min_run_time_in_range"
            ),
            models.CheckConstraint(
                condition=idle_limit_in_range(), name="tenant_idle_limit_in_range"
            ),
            *queues.constraints("tenant", by_someone=Q(queue_changed_by__isnull=False)),
            models.CheckConstraint(
                condition=Q(parent__isnull=True) | ~Q(parent=models.F("id")),
                name="tenant_not_its_own_parent",
            ),
        ]

    def __str__(self) -> str:
        return self.name
