"""A GPU of a node and the MIG slices cut on it: the geometry."""

from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import IntegerRangeField, RangeOperators
from django.db import models
from django.db.models import Q

from clusters import stock
from clusters.models.node import Node
from clusters.origin import CapacityType
from controlplane.kernel.models import Row


class DeviceMode(models.TextChoices):
    """As `scheduler.core.snapshot.DeviceMode`; a test holds the two together."""

    WHOLE = "whole"
    MIG_STATIC = "mig-static"
    MIG_DYNAMIC = "mig-dynamic"


class Device(Row):
    """One physical GPU; with the device plugin `uuid` is "" and the row is a count token of its
    node. With a `uuid` it stays the same row for as long as it is in that node.

    `usable` is False when the device is sick or no longer allocatable; a vanished one gets
    `gone_at`. `capacity` is its node's where any flavor of its model is of that type, else "": its
    flavors are those of its `stock` (clusters/stock.py).
    """

    node = models.ForeignKey(Node, on_delete=models.PROTECT, related_name="devices")
    ordinal = models.PositiveSmallIntegerField()
    model = models.CharField(max_length=80)
    capacity = models.CharField(max_length=9, blank=True, default="", db_default="")
    memory_mib = models.BigIntegerField()
    mode = models.CharField(max_length=12, choices=DeviceMode, default=DeviceMode.WHOLE)
    uuid = models.CharField(max_length=80, blank=True)
    usable = models.BooleanField(default=True)
    gone_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["node", "ordinal"], name="device_ordinal_once_a_node"),
            models.UniqueConstraint(
                fields=["uuid"],
                condition=~Q(uuid="") & Q(gone_at__isnull=True),
                name="device_uuid_once",
            ),
            models.CheckConstraint(
                condition=Q(mode__in=DeviceMode.values), name="device_mode_known"
            ),
            models.CheckConstraint(
                condition=Q(capacity__in=[each.value for each in CapacityType]),
                name="device_capacity_known",
            ),
            models.CheckConstraint(
                condition=Q(memory_mib__gte=0), name="device_memory_not_negative"
            ),
        ]
        indexes = [models.Index(fields=["uuid"], name="device_by_uuid", condition=~Q(uuid=""))]

    def __str__(self) -> str:
        return f"{self.node_id}/{self.ordinal}"

    @property
    def stock(self) -> str:
        return stock.name(model=self.model, capacity=self.capacity)


class DeviceSlice(Row):
    """One MIG instance: [start, end) of the device's eight memory slices."""

    device = models.ForeignKey(Device, on_delete=models.PROTECT, related_name="slices")
    profile = models.CharField(max_length=20)
    span = IntegerRangeField()
    gone_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            ExclusionConstraint(
                name="device_slices_apart",
                expressions=[
                    ("device", RangeOperators.EQUAL),
                    ("span", RangeOperators.OVERLAPS),
                ],
                condition=Q(gone_at__isnull=True),
            ),
            models.CheckConstraint(
                condition=Q(span__contained_by=(0, 8)) & Q(span__isempty=False),
                name="device_slice_on_axis",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.profile}@{self.span.lower}"


class ForeignSpan(Row):
    """[start, end) of a device that pods which are not ours are taken to hold: thousandths, or
    memory slices of one in MIG mode. The cluster tells how many they hold, not which."""

    device = models.ForeignKey(Device, on_delete=models.PROTECT, related_name="foreign")
    span = IntegerRangeField()

    class Meta:
        constraints = [
            ExclusionConstraint(
                name="foreign_spans_apart",
                expressions=[
                    ("device", RangeOperators.EQUAL),
                    ("span", RangeOperators.OVERLAPS),
                ],
            ),
            models.CheckConstraint(
                condition=Q(span__contained_by=(0, 1000)) & Q(span__isempty=False),
                name="foreign_span_on_axis",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.device_id} [{self.span.lower}, {self.span.upper})"
