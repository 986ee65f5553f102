"""What a user submits, and its timeline."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Mod
from django.db.models.lookups import Exact

from clusters.models import Cluster, Flavor, Isolation
from controlplane.kernel.models import Row
from scheduler.core.failures import (
    MOST_EXIT_CODES,
    MOST_RETRIES,
    REQUEUE_S,
    RETRIABLE,
    RETRIES,
    FailureClass,
    Retries,
)
from scheduler.core.lifecycle import TERMINAL, State
from tenants.models import Project


def retried_by_default() -> list[str]:
    return [each.value for each in RETRIES.on]


class WorkloadArray(Row):
    """`size` workloads, called its elements, that were submitted as one and differ in their index
    alone. At most `most_at_once` of them hold placements; None is no cap."""

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="arrays")
    submitted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="arrays"
    )
    name = models.CharField(max_length=100)
    size = models.PositiveIntegerField()
    most_at_once = models.PositiveIntegerField(null=True, blank=True)
    submitted_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(size__gte=1, size__lte=10_000), name="array_size_in_range"
            ),
            models.CheckConstraint(
                condition=Q(most_at_once__isnull=True)
                | Q(most_at_once__gte=1, most_at_once__lte=F("size")),
                name="array_most_in_range",
            ),
        ]

    access_path = "project"

    def __str__(self) -> str:
        return self.name


LIVE = Q(ended_at__isnull=True)
"""Of a workload in no terminal state: to be said beside any other state that is asked for, so that
the index of those finds it."""


class Workload(Row):
    """Only `services.transition` changes `state`, by compare-and-set on `state` and `version`,
    which `services.reordering` counts up too.

    `reason` is why it waits: {"code": …, "numbers": {…}, "text": …}, written by each cycle at
    `reason_at`. `not_before` holds a retry back; `failures` counts tries that failed, but for
    those that lost their node, which are `node_losses`. What is tried again says `retry_…`, as
    `core.failures.Retries`. `checkpointed_at` is when it last told that its
    work was saved, in this run or an earlier one: what eviction loses counts from there.
    `moved_at` is when it was last stopped to start elsewhere at once; with `move_to_better` it is
    also when an earlier of its flavors is free that nobody waits for.
    Its pods have `grace_s` from SIGTERM to SIGKILL; when it is evicted for others it is told
    `notice_s` before, and runs on until `notice_until`.
    All its pods have to be in one domain of `topology_level`, or had better be ("" for neither).
    When its cluster has been silent for `cluster_loss_requeue_s` it starts elsewhere; with None it
    waits for its cluster.
    Its next attempt has a number above `attempts_seen`, which a cluster has shown (ADR 0090).
    `asks_version` counts how often what its pod sets accept has changed.
    It queues as what was submitted at `turn_at` and has the id `turn_of`, in its project; None as
    what it is. Those of a project exchange their turns when they are reordered.
    `array_index` counts the elements of its array from 0; both are None outside of arrays.
    """

    project = models.ForeignKey(
        Project,
        on_delete=models.PROTECT,
        related_name="workloads",
        db_index=False,  # workload_by_project begins with it
    )
    array = models.ForeignKey(
        WorkloadArray,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="elements",
        db_index=False,  # array_element_once begins with it
    )
    array_index = models.PositiveIntegerField(null=True, blank=True)
    submitted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="workloads"
    )
    name = models.CharField(max_length=100)
    state = models.CharField(max_length=10, default=State.PENDING.value)
    version = models.PositiveIntegerField(default=1)
    priority_class = models.CharField(max_length=20)
    priority = models.IntegerField()
    preemptible = models.BooleanField(default=True)
    move_to_better = models.BooleanField(default=False, db_default=False)
    run_time_limit_s = models.PositiveIntegerField(null=True, blank=True)
    grace_s = models.PositiveSmallIntegerField(default=30, db_default=30)
    notice_s = models.PositiveSmallIntegerField(default=0, db_default=0)
    cluster_loss_requeue_s = models.PositiveIntegerField(null=True, blank=True)
    labels = models.JSONField(default=dict)
    attempts_seen = models.PositiveIntegerField(default=0, db_default=0)
    clusters = models.ManyToManyField(Cluster, blank=True, related_name="+")
    topology_level = models.CharField(max_length=40, blank=True, default="", db_default="")
    topology_required = models.BooleanField(default=False, db_default=False)
    submitted_at = models.DateTimeField()
    admitted_at = models.DateTimeField(null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    checkpointed_at = models.DateTimeField(null=True, blank=True)
    moved_at = models.DateTimeField(null=True, blank=True)
    notice_until = models.DateTimeField(null=True, blank=True)
    not_before = models.DateTimeField(null=True, blank=True)
    failures = models.PositiveSmallIntegerField(default=0)
    node_losses = models.PositiveSmallIntegerField(default=0, db_default=0)
    retry_limit = models.PositiveSmallIntegerField(default=RETRIES.limit, db_default=RETRIES.limit)
    retry_on = ArrayField(
        models.CharField(max_length=15),
        default=retried_by_default,
        db_default=retried_by_default(),
        blank=True,
    )
    retry_exit_codes = ArrayField(
        models.PositiveSmallIntegerField(), default=list, db_default=[], blank=True
    )
    reason = models.JSONField(null=True, blank=True)
    reason_at = models.DateTimeField(null=True, blank=True)
    asks_version = models.IntegerField(default=1, db_default=1)
    turn_at = models.DateTimeField(null=True, blank=True)
    turn_of = models.UUIDField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(turn_at__isnull=True, turn_of__isnull=True)
                | Q(turn_at__isnull=False, turn_of__isnull=False),
                name="workload_turn_whole",
            ),
            models.CheckConstraint(
                condition=Q(state__in=[s.value for s in State]), name="workload_state_known"
            ),
            models.CheckConstraint(
                condition=Q(state__in=sorted(TERMINAL), ended_at__isnull=False)
                | (~Q(state__in=sorted(TERMINAL)) & Q(ended_at__isnull=True)),
                name="workload_ended_iff_terminal",
            ),
            models.CheckConstraint(
                condition=Q(run_time_limit_s__isnull=True) | Q(run_time_limit_s__gte=1),
                name="workload_limit_positive",
            ),
            models.CheckConstraint(
                condition=Q(grace_s__gte=1, grace_s__lte=3600, notice_s__lte=3600),
                name="workload_grace_in_range",
            ),
            models.CheckConstraint(
                condition=Q(cluster_loss_requeue_s__range=REQUEUE_S),
                name="workload_cluster_loss_in_range",
            ),
            models.CheckConstraint(
                condition=Q(retry_limit__lte=MOST_RETRIES)
                & Q(retry_on__contained_by=[each.value for each in RETRIABLE])
                & Q(retry_exit_codes__len__lte=MOST_EXIT_CODES),
                name="workload_retries_known",
            ),
            models.CheckConstraint(
                condition=Q(topology_required=False) | ~Q(topology_level=""),
                name="workload_required_level_named",
            ),
            models.CheckConstraint(
                condition=Q(priority__gte=-1000, priority__lte=1000),
                name="workload_priority_in_range",
            ),
            models.UniqueConstraint(fields=["array", "array_index"], name="array_element_once"),
            models.CheckConstraint(
                condition=Q(array__isnull=True, array_index__isnull=True)
                | Q(array__isnull=False, array_index__isnull=False),
                name="array_element_numbered",
            ),
        ]
        indexes = [
            # Not by the state: a change of what an index looks at writes to all indexes.
            models.Index(fields=["id"], condition=LIVE, name="workload_not_ended"),
            models.Index(fields=["project", "id"], name="workload_by_project"),
            models.Index(
                fields=["id"],
                condition=Q(move_to_better=True) & LIVE,
                name="workload_to_better",
            ),
        ]

    access_path = "project"

    @property
    def retries(self) -> Retries:
        """What of its failures is tried again."""
        on = tuple(FailureClass(each) for each in self.retry_on)
        return Retries(self.retry_limit, on, tuple(self.retry_exit_codes))

    def __str__(self) -> str:
        return self.name


class PodSet(Row):
    """A group of like pods. Bounds as `core.snapshot.PodSetView` explains them.

    With `least_memory_mib` it has a wish: whole devices with so much, 0 any, of one of `vendors`,
    () any. The flavors that have it are accepted behind those that were named.

    With `as_preferred` neither flavors nor a wish were said: it accepts, of those its project
    prefers, those that go with what it asks for. With `any_order` those that it names are as
    welcome as each other.

    With `gpu_memory_mib` each pod gets the least part of one device, of each flavor another, that
    has that memory. No flavor will do that isolates less than `least_isolation`.

    All its pods, or each `topology_group_size` by rank, have to be in one domain of
    `topology_level`, or had better be ("" for neither).
    """

    workload = models.ForeignKey(
        Workload,
        on_delete=models.CASCADE,
        related_name="pod_sets",
        db_index=False,  # pod_set_position_once begins with it
    )
    position = models.PositiveSmallIntegerField()
    name = models.CharField(max_length=40)
    count = models.PositiveIntegerField()
    min_count = models.PositiveIntegerField()
    cpu_milli = models.BigIntegerField()
    memory_mib = models.BigIntegerField()
    gpu_count = models.PositiveSmallIntegerField()
    gpu_milli = models.PositiveSmallIntegerField(default=1000)
    image = models.CharField(max_length=300)
    command = ArrayField(models.CharField(max_length=4096), default=list)
    args = ArrayField(models.CharField(max_length=4096), default=list)
    env = models.JSONField(default=dict)
    least_memory_mib = models.BigIntegerField(null=True, blank=True)
    vendors = ArrayField(models.CharField(max_length=10), default=list, db_default=[], blank=True)
    as_preferred = models.BooleanField(default=False, db_default=False)
    any_order = models.BooleanField(default=False, db_default=False)
    gpu_memory_mib = models.BigIntegerField(null=True, blank=True)
    least_isolation = models.CharField(
        max_length=8, choices=Isolation, default=Isolation.NONE, db_default=Isolation.NONE
    )
    topology_level = models.CharField(max_length=40, blank=True, default="", db_default="")
    topology_required = models.BooleanField(default=False, db_default=False)
    topology_group_size = models.PositiveIntegerField(null=True, blank=True)
    flavors = models.ManyToManyField(Flavor, through="PodSetFlavor", related_name="+")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workload", "position"], name="pod_set_position_once"),
            models.UniqueConstraint(fields=["workload", "name"], name="pod_set_name_once"),
            models.CheckConstraint(
                condition=Q(count__gte=1, count__lte=4096)
                & Q(min_count__gte=1, min_count__lte=F("count")),
                name="pod_set_counts_in_range",
            ),
            models.CheckConstraint(
                condition=Q(cpu_milli__gte=1, cpu_milli__lte=4096000)
                & Q(memory_mib__gte=1, memory_mib__lte=64 * 1024 * 1024),
                name="pod_set_cpu_memory_in_range",
            ),
            models.CheckConstraint(
                condition=Q(gpu_count__lte=64)
                & Q(gpu_milli__gte=1, gpu_milli__lte=1000)
                & (Q(gpu_milli=1000) | Q(gpu_count=1)),
                name="pod_set_gpus_in_range",
            ),
            models.CheckConstraint(
                condition=(Q(least_memory_mib__isnull=True) & Q(vendors=[]))
                | Q(
                    least_memory_mib__isnull=False,
                    least_memory_mib__gte=0,
                    gpu_count__gte=1,
                    gpu_milli=1000,
                ),
                name="pod_set_wish_of_whole_devices",
            ),
            models.CheckConstraint(
                condition=Q(as_preferred=False) | Q(least_memory_mib__isnull=True),
                name="pod_set_wishes_or_as_preferred",
            ),
            models.CheckConstraint(
                condition=Q(any_order=False)
                | Q(as_preferred=False, least_memory_mib__isnull=True),
                name="pod_set_any_order_of_named",
            ),
            models.CheckConstraint(
                condition=Q(gpu_memory_mib__isnull=True)
                | Q(
                    gpu_memory_mib__gte=1,
                    gpu_count=1,
                    gpu_milli=1000,
                    least_memory_mib__isnull=True,
                ),
                name="pod_set_memory_of_one_device",
            ),
            models.CheckConstraint(
                condition=Q(least_isolation__in=Isolation.values), name="pod_set_isolation_known"
            ),
            models.CheckConstraint(
                condition=~Q(topology_level="")
                | Q(topology_required=False, topology_group_size__isnull=True),
                name="pod_set_level_named",
            ),
            models.CheckConstraint(
                condition=Q(topology_group_size__isnull=True)
                | Q(topology_group_size__gte=1, min_count=F("count"))
                & Q(Exact(Mod("count", "topology_group_size"), 0)),
                name="pod_set_in_whole_groups",
            ),
        ]
        indexes = [
            models.Index(
                fields=["workload"],
                condition=Q(min_count__lt=F("count")),
                name="pod_set_elastic",
            ),
            models.Index(
                fields=["workload"],
                condition=Q(least_memory_mib__isnull=False) | Q(as_preferred=True),
                name="pod_set_unnamed",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class PodSetFlavor(Row):
    """A flavor that a pod set accepts, in order; `wished`: not by name, but for what it has, or
    as its project prefers it."""

    pod_set = models.ForeignKey(
        PodSet,
        on_delete=models.CASCADE,
        related_name="accepted",
        db_index=False,  # accepted_position_once begins with it
    )
    flavor = models.ForeignKey(Flavor, on_delete=models.PROTECT, related_name="+")
    position = models.PositiveSmallIntegerField()
    wished = models.BooleanField(default=False, db_default=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["pod_set", "position"], name="accepted_position_once"),
            models.UniqueConstraint(fields=["pod_set", "flavor"], name="accepted_flavor_once"),
        ]

    def __str__(self) -> str:
        return f"{self.position} {self.flavor_id}"


class WorkloadEvent(Row):
    """One line of a workload's timeline, for its readers. Append-only by trigger. Each but the
    first of kind `state`, and each of kind `reordered`, counts its workload's version up.

    `kind` is `state` for transitions (before → after), else `preempted`, whose message is the
    rule, `idle` or `used-again`, whose message says so of its devices, `grown` or `shrunk`, whose
    message says by how many pods, and for whom, or `returned`, whose message says what became of
    an attempt's pods in a cluster that was lost.
    """

    workload = models.ForeignKey(
        Workload,
        on_delete=models.CASCADE,
        related_name="events",
        db_index=False,  # event_by_workload begins with it
    )
    at = models.DateTimeField()
    kind = models.CharField(max_length=30)
    before = models.CharField(max_length=10, blank=True)
    after = models.CharField(max_length=10, blank=True)
    message = models.CharField(max_length=500, blank=True)

    class Meta:
        indexes = [models.Index(fields=["workload", "id"], name="event_by_workload")]

    access_path = "workload__project"

    def __str__(self) -> str:
        return f"{self.kind} {self.before}→{self.after}"
