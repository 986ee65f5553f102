"""What the clusters' endpoints take and give. No credential, and no error text of a cluster."""

from typing import Any

from rest_framework import serializers

from clusters.models import ClusterState, DeviceMode, FlavorKind, Isolation
from controlplane.api.fields import Id, StrictSerializer, Text

type Rows = Any  # plain rows

CLUSTER_STATES = ClusterState.values


class ClusterOut(serializers.Serializer[Rows]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    region = serializers.CharField(allow_blank=True)
    state = serializers.ChoiceField(choices=CLUSTER_STATES)
    version = serializers.CharField(allow_blank=True)
    simulated = serializers.BooleanField()
    seen_at = serializers.DateTimeField(allow_null=True)
    node_count = serializers.IntegerField()
    device_count = serializers.IntegerField()


class NodeOut(serializers.Serializer[Rows]):
    """Amounts are allocatable, what other pods hold included."""

    id = serializers.UUIDField()
    cluster = serializers.CharField(source="cluster.name")
    name = serializers.CharField()
    ready = serializers.BooleanField()
    schedulable = serializers.BooleanField()
    cpu_milli = serializers.IntegerField()
    memory_mib = serializers.IntegerField()
    device_count = serializers.IntegerField()


class NodesQuery(StrictSerializer):
    cluster = Text(required=False, max_length=40, help_text="A cluster's name.")
    name = Text(required=False, max_length=253)


class SliceOut(serializers.Serializer[Rows]):
    """Memory slices [start, end) of the device's eight."""

    profile = serializers.CharField()
    start = serializers.IntegerField(source="span.lower")
    end = serializers.IntegerField(source="span.upper")


class DeviceOut(serializers.Serializer[Rows]):
    """`uuid` is empty where the device plugin does not tell it."""

    id = serializers.UUIDField()
    cluster = serializers.CharField(source="node.cluster.name")
    node = serializers.UUIDField(source="node_id")
    node_name = serializers.CharField(source="node.name")
    ordinal = serializers.IntegerField()
    uuid = serializers.CharField(allow_blank=True)
    model = serializers.CharField()
    memory_mib = serializers.IntegerField()
    mode = serializers.ChoiceField(choices=DeviceMode.values)
    usable = serializers.BooleanField()
    slices = SliceOut(many=True, source="present_slices")


class DevicesQuery(StrictSerializer):
    cluster = Text(required=False, max_length=40, help_text="A cluster's name.")
    node = Id(required=False)
    model = Text(required=False, max_length=80)


class FlavorOut(serializers.Serializer[Rows]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    kind = serializers.ChoiceField(choices=FlavorKind.values)
    model = serializers.CharField(allow_blank=True)
    profile = serializers.CharField(allow_blank=True)
    isolation = serializers.ChoiceField(choices=Isolation.values)
    memory_mib = serializers.IntegerField()


class FlavorsQuery(StrictSerializer):
    kind = serializers.ChoiceField(choices=FlavorKind.values, required=False)
