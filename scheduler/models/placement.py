"""Attempts and where their pods are: the rows that hold capacity."""

from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import ArrayField, IntegerRangeField, RangeOperators
from django.db import models
from django.db.models import F, Q

from clusters.models import Cluster, Device, Flavor, Node
from controlplane.kernel.models import Row
from scheduler.core.failures import FailureClass
from scheduler.models.workload import PodSet, Workload


class AttemptOutcome(models.TextChoices):
    SUCCEEDED = "succeeded"
    FAILED = "failed"  # the work itself failed, or it was tried too often
    PREEMPTED = "preempted"
    CANCELLED = "cancelled"
    LOST = "lost"  # its node's or cluster's doing: tried again


class Leftover(models.TextChoices):
    """What is taken away next of what an ended attempt left in its cluster."""

    SERVICE = "service"  # a gang's, at once; its pods come after that
    PODS = "pods"  # with a gang's service once more, should it be back; the last step


class Attempt(Row):
    """One try at running a workload, in one cluster. At most one is live.

    `failure` is the class of what broke it and `trouble` says it in words, from when that is
    first seen: what is stopped for it tells nothing of why. `lost_milli_s` is the work that its
    end lost, in thousandths of devices x seconds since the last checkpoint.

    `claim` is the token of the worker that carries out its operations until `claimed_until`
    (database clock). `leftover` is what of the attempt, which has ended, is taken away next from
    its cluster, and `collect_at` when (database clock).

    `choice` is why it is in that cluster, with those flavors (`selectors.choices.Told`); None
    where there was nothing to choose. It went `ahead_of` these workloads (ADR 0020).

    `unseen_since` is when it ended without its pods being seen gone, as its cluster was lost: what
    it holds is held on, and its stop stays due. None once they are seen gone, and for all others.
    """

    workload = models.ForeignKey(
        Workload,
        on_delete=models.CASCADE,
        related_name="attempts",
        db_index=False,  # attempt_number_once begins with it
    )
    number = models.PositiveIntegerField()
    cluster = models.ForeignKey(
        Cluster,
        on_delete=models.PROTECT,
        related_name="attempts",
        db_index=False,  # too many are of one cluster for it to find any
    )
    choice = models.JSONField(null=True, blank=True)
    ahead_of = ArrayField(models.UUIDField(), default=list, db_default=[])
    epoch = models.BigIntegerField()
    created_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    outcome = models.CharField(max_length=10, choices=AttemptOutcome, blank=True)
    failure = models.CharField(
        max_length=15,
        choices=[(each.value, each.value) for each in FailureClass],
        blank=True,
        db_default="",
    )
    trouble = models.CharField(max_length=500, blank=True)
    lost_milli_s = models.BigIntegerField(default=0, db_default=0)
    claim = models.UUIDField(null=True, blank=True)
    claimed_until = models.DateTimeField(null=True, blank=True)
    unseen_since = models.DateTimeField(null=True, blank=True)
    leftover = models.CharField(max_length=7, choices=Leftover, blank=True, db_default="")
    collect_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workload", "number"], name="attempt_number_once"),
            models.UniqueConstraint(
                fields=["workload"], condition=Q(ended_at__isnull=True), name="attempt_one_live"
            ),
            models.CheckConstraint(
                condition=Q(outcome="", ended_at__isnull=True)
                | Q(outcome__in=AttemptOutcome.values, ended_at__isnull=False),
                name="attempt_outcome_at_end",
            ),
            models.CheckConstraint(
                condition=Q(failure__in=["", *(each.value for each in FailureClass)]),
                name="attempt_failure_known",
            ),
            models.CheckConstraint(
                condition=Q(lost_milli_s=0)
                | Q(
                    lost_milli_s__gt=0,
                    outcome__in=[
                        AttemptOutcome.FAILED,
                        AttemptOutcome.PREEMPTED,
                        AttemptOutcome.LOST,
                    ],
                ),
                name="attempt_loses_at_a_bad_end",
            ),
            models.CheckConstraint(
                condition=Q(unseen_since__isnull=True)
                | Q(ended_at__isnull=False, failure=FailureClass.CLUSTER_LOST.value),
                name="attempt_unseen_after_loss",
            ),
            models.CheckConstraint(
                condition=Q(leftover="", collect_at__isnull=True)
                | Q(
                    leftover__in=Leftover.values,
                    collect_at__isnull=False,
                    ended_at__isnull=False,
                ),
                name="attempt_collected_after_end",
            ),
        ]
        indexes = [
            models.Index(
                fields=["cluster", "collect_at"],
                condition=Q(collect_at__isnull=False),
                name="attempt_to_collect",
            ),
            models.Index(
                fields=["cluster"],
                condition=Q(unseen_since__isnull=False),
                name="attempt_unseen",
            ),
            models.Index(
                fields=["failure"],
                include=["lost_milli_s"],
                condition=~Q(failure="") | Q(lost_milli_s__gt=0),
                name="attempt_that_failed",
            ),
            models.Index(
                fields=["ended_at"],
                include=["workload", "failure", "lost_milli_s"],
                condition=~Q(failure="") | Q(lost_milli_s__gt=0),
                name="attempt_failed_at",
            ),
        ]

    access_path = "workload__project"

    def __str__(self) -> str:
        return f"{self.workload_id}-{self.number}"


class Placement(Row):
    """One pod of an attempt on one node. It holds capacity until `released_at`.

    Written by apply (the row), resize (dismissed_at), dispatch (pod_uid, opened_at) and observe
    (the rest). `released_at`
    is set only when the pod is seen terminal or gone, never when its deletion was asked.
    `dismissed_at` is when the pod was told to go while the others of its gang stay (ADR 0026). A
    rank is given once in an attempt.
    `metered_until` is how far its held time has become usage intervals.

    Triggers (migration 0003_guards) hold it to its attempt, pod set and node, let none of that,
    the amounts or a known `pod_uid` change, and release it once, together with its spans.
    """

    workload = models.ForeignKey(Workload, on_delete=models.CASCADE, related_name="placements")
    attempt = models.ForeignKey(
        Attempt,
        on_delete=models.CASCADE,
        related_name="placements",
        db_index=False,  # placement_rank_once begins with it
    )
    # Of these three nobody asks for the placements, but for the live ones of a node.
    pod_set = models.ForeignKey(
        PodSet, on_delete=models.CASCADE, related_name="placements", db_index=False
    )
    rank = models.PositiveIntegerField()
    node = models.ForeignKey(
        Node, on_delete=models.PROTECT, related_name="placements", db_index=False
    )
    flavor = models.ForeignKey(
        Flavor, on_delete=models.PROTECT, related_name="placements", db_index=False
    )
    amount_milli = models.BigIntegerField()
    cpu_milli = models.BigIntegerField()
    memory_mib = models.BigIntegerField()
    pod_name = models.CharField(max_length=63)
    pod_uid = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField()
    opened_at = models.DateTimeField(null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    exit_code = models.IntegerField(null=True, blank=True)
    end_reason = models.CharField(max_length=200, blank=True)
    succeeded = models.BooleanField(null=True, blank=True)
    released_at = models.DateTimeField(null=True, blank=True)
    dismissed_at = models.DateTimeField(null=True, blank=True)
    metered_until = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["attempt", "rank"], name="placement_rank_once"),
            models.UniqueConstraint(fields=["attempt", "pod_name"], name="placement_name_once"),
            models.UniqueConstraint(
                fields=["pod_uid"], condition=~Q(pod_uid=""), name="placement_uid_once"
            ),
            models.CheckConstraint(
                condition=Q(amount_milli__gt=0) & Q(cpu_milli__gt=0) & Q(memory_mib__gt=0),
                name="placement_amounts_positive",
            ),
            models.CheckConstraint(
                condition=Q(opened_at__isnull=True) | ~Q(pod_uid=""),
                name="placement_opened_has_uid",
            ),
            models.CheckConstraint(
                condition=Q(ended_at__isnull=True)
                | Q(started_at__isnull=True)
                | Q(ended_at__gte=F("started_at")),
                name="placement_ends_after_start",
            ),
        ]
        indexes = [
            models.Index(
                fields=["node"], condition=Q(released_at__isnull=True), name="placement_live"
            ),
        ]

    access_path = "workload__project"

    def __str__(self) -> str:
        return self.pod_name


class PlacementSpan(Row):
    """[start, end) of one device that a placement holds: the wall against double-booking (P1)."""

    placement = models.ForeignKey(Placement, on_delete=models.CASCADE, related_name="spans")
    device = models.ForeignKey(
        Device,
        on_delete=models.PROTECT,
        related_name="spans",
        db_index=False,  # span_held_once begins with it, and nobody asks for what is released
    )
    span = IntegerRangeField()
    released_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            ExclusionConstraint(
                name="span_held_once",
                expressions=[
                    ("device", RangeOperators.EQUAL),
                    ("span", RangeOperators.OVERLAPS),
                ],
                condition=Q(released_at__isnull=True),
            ),
            models.CheckConstraint(
                condition=Q(span__contained_by=(0, 1000)) & Q(span__isempty=False),
                name="span_on_axis",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.device_id} {self.span}"
