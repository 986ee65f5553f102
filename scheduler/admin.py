"""The back office of work and decisions, to look at."""

from django.contrib import admin

from controlplane.kernel.admin import ReadOnly
from scheduler import models


@admin.register(models.Workload)
class WorkloadPage(ReadOnly):
    list_display = ("id", "name", "project", "state", "priority_class", "submitted_at")
    list_select_related = ("project",)
    list_filter = ("state", "priority_class")
    search_fields = ("id", "name")


@admin.register(models.WorkloadArray)
class WorkloadArrayPage(ReadOnly):
    list_display = ("id", "name", "project", "size", "most_at_once", "submitted_at")
    list_select_related = ("project",)
    search_fields = ("id", "name")


@admin.register(models.Dependency)
class DependencyPage(ReadOnly):
    list_display = (
        "workload",
        "array",
        "kind",
        "on_workload",
        "on_array",
        "unmet_at",
        "settled_at",
    )
    list_select_related = ("workload", "array", "on_workload", "on_array")
    list_filter = ("kind", "on_unmet")


@admin.register(models.Gate)
class GatePage(ReadOnly):
    list_display = ("name", "kind", "workload", "array", "owner", "state", "deadline_at")
    list_select_related = ("workload", "array", "owner")
    list_filter = ("kind", "state")


@admin.register(models.Attempt)
class AttemptPage(ReadOnly):
    list_display = (
        "workload", "number", "cluster", "epoch", "outcome", "failure", "created_at", "ended_at",
    )  # fmt: skip
    list_select_related = ("workload", "cluster")
    list_filter = ("outcome", "failure")


@admin.register(models.Placement)
class PlacementPage(ReadOnly):
    list_display = ("pod_name", "node", "flavor", "amount_milli", "started_at", "released_at")
    list_select_related = ("node", "flavor")
    search_fields = ("pod_name", "pod_uid")


@admin.register(models.Operation)
class OperationPage(ReadOnly):
    list_display = ("attempt", "kind", "due_at", "failures", "last_error", "done_at")
    list_select_related = ("attempt",)
    list_filter = ("kind",)


@admin.register(models.SchedulerLease)
class LeasePage(ReadOnly):
    list_display = ("shard", "epoch", "holder", "expires_at")


@admin.register(models.InvariantCheck)
class InvariantCheckPage(ReadOnly):
    list_display = ("at", "took_ms", "violations", "accepted_at")


@admin.register(models.CycleRecord)
class CyclePage(ReadOnly):
    list_display = (
        "at", "shard", "epoch", "pending_count", "admitted_count", "refused_count",
        "load_ms", "plan_ms", "apply_ms", "faults",
    )  # fmt: skip
    list_filter = ("shard",)


@admin.register(models.Confinement)
class ConfinementPage(ReadOnly):
    list_display = (
        "project", "cluster", "applied_at", "checked_at", "drifted_at", "repaired_at", "error",
    )  # fmt: skip
    list_select_related = ("project", "cluster")
