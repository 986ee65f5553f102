"""The back office of hardware, to look at."""

from django.contrib import admin

from clusters import models
from controlplane.kernel.admin import ReadOnly


@admin.register(models.Cluster)
class ClusterPage(ReadOnly):
    list_display = ("name", "region", "state", "version", "simulated", "seen_at", "last_error")
    list_filter = ("state",)


@admin.register(models.ClusterCredential)
class ClusterCredentialPage(ReadOnly):
    list_display = ("cluster", "host", "key_id", "expires_at", "version", "set_at", "set_by")
    list_select_related = ("cluster",)
    exclude = ("sealed",)


@admin.register(models.ClusterProbe)
class ClusterProbePage(ReadOnly):
    list_display = ("cluster", "asked_at", "asked_by", "ended_at", "verdict", "stopped")
    list_select_related = ("cluster",)
    list_filter = ("cluster", "verdict")


@admin.register(models.HardwareQueue)
class HardwareQueuePage(ReadOnly):
    list_display = ("cluster", "model", "queue_state", "queue_note", "queue_changed_by")
    list_select_related = ("cluster",)
    list_filter = ("queue_state",)


@admin.register(models.Node)
class NodePage(ReadOnly):
    list_display = (
        "name",
        "cluster",
        "ready",
        "schedulable",
        "cpu_milli",
        "memory_mib",
        "gone_at",
    )
    list_select_related = ("cluster",)
    list_filter = ("cluster", "ready")
    search_fields = ("name",)


@admin.register(models.NodePool)
class NodePoolPage(ReadOnly):
    list_display = ("name", "cluster", "ready", "making_count", "room_count", "gone_at")
    list_select_related = ("cluster",)
    list_filter = ("cluster",)


@admin.register(models.NodeClaim)
class NodeClaimPage(ReadOnly):
    list_display = ("name", "pool", "node", "created_at", "ready_at", "gone_at")
    list_select_related = ("pool",)


@admin.register(models.Device)
class DevicePage(ReadOnly):
    list_display = ("node", "ordinal", "model", "capacity", "mode", "usable", "gone_at")
    list_select_related = ("node",)
    list_filter = ("mode", "usable")
    search_fields = ("uuid", "node__name")


@admin.register(models.DeviceSlice)
class DeviceSlicePage(ReadOnly):
    list_display = ("device", "profile", "span", "gone_at")
    list_select_related = ("device",)


@admin.register(models.FlavorPart)
class FlavorPartPage(ReadOnly):
    list_display = ("part", "whole", "milli")
    list_select_related = ("part", "whole")


@admin.register(models.Flavor)
class FlavorPage(ReadOnly):
    list_display = ("name", "kind", "model", "capacity", "profile", "isolation", "placing")
    list_filter = ("kind",)
    search_fields = ("name", "model")
