"""What the clusters' endpoints take and give: a credential is taken and never given. A cluster's
last error is shown on pages."""

from typing import Any

from django.core.validators import RegexValidator
from rest_framework import serializers

from clusters import registry, stock
from clusters.models import (
    VENDORS,
    ClusterState,
    DeviceMode,
    ExposureVerdict,
    FlavorKind,
    Isolation,
    Placing,
    ProbeStop,
)
from clusters.origin import CapacityType
from clusters.parts import Part
from clusters.port import Verdict
from clusters.services import clusters, flavors
from controlplane.api.fields import Id, Integer, QueueStateIn, StrictSerializer, Text
from controlplane.kernel.queues import QueueState

type Rows = Any  # plain rows

CLUSTER_STATES = ClusterState.values
FLAVOR_KINDS = FlavorKind.values
CAPACITIES = [each.value for each in CapacityType]
ISOLATIONS = Isolation.values
VERDICTS = [each.value for each in Verdict]
EXPOSURE_VERDICTS = ExposureVerdict.values
_PLACING = "pack fills the fullest nodes first; spread, of whole devices and cores, the emptiest."


class CredentialOut(serializers.Serializer[Rows]):
    """What of a credential is no secret; nothing gives the rest."""

    host = serializers.CharField(help_text="Where Berth signs in.")
    key_id = serializers.CharField(help_text="Of the key under which it is sealed.")
    expires_at = serializers.DateTimeField(
        allow_null=True, help_text="By its own word; null where it says nothing of that."
    )
    metrics_server = serializers.CharField(
        allow_null=True,
        allow_blank=True,
        help_text="What measures the cluster; empty where nothing does, null of a credential that"
        " was stored before this was kept.",
    )
    version = serializers.IntegerField()
    set_at = serializers.DateTimeField()
    set_by = serializers.CharField()


class ClusterOut(serializers.Serializer[Rows]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    region = serializers.CharField(allow_blank=True)
    server = serializers.CharField(
        allow_blank=True, help_text="Where its API is; empty while nobody has said it."
    )
    state = serializers.ChoiceField(choices=CLUSTER_STATES)
    queue_state = serializers.ChoiceField(choices=QueueState.values)
    version = serializers.CharField(allow_blank=True)
    simulated = serializers.BooleanField()
    repair_drift = serializers.BooleanField(
        help_text="Whether drift of confinements is put right there, or only told."
    )
    asks_for_nodes = serializers.BooleanField(
        help_text="Whether its autoscaler is asked for nodes that work waits for."
    )
    foreign_requests_count = serializers.IntegerField(
        help_text="Requests of others for nodes that it has accepted and not yet answered."
    )
    seen_at = serializers.DateTimeField(allow_null=True)
    node_count = serializers.IntegerField()
    device_count = serializers.IntegerField()
    credential = CredentialOut(allow_null=True, help_text="null until one is stored.")


class MetricsIn(StrictSerializer):
    server = Text(help_text="An API that answers as Prometheus does, by https.")
    ca = Text(required=False, lines=True, help_text="PEM.")
    token = Text()
    query = Text(
        required=False, lines=True, help_text="PromQL; left out: what DCGM exporter tells."
    )


class CredentialIn(StrictSerializer):
    """A `kubeconfig`, or `server` and either `token` or `certificate` and `key`. It is sealed at
    once and never given back."""

    kubeconfig = Text(
        required=False,
        lines=True,
        trim_whitespace=False,  # a refusal counts its lines
        help_text="One cluster, one user, one context; with a token, or a client certificate and"
        " its key, as data. What names a program or a file is refused.",
    )
    server = Text(required=False, help_text="By https.")
    ca = Text(
        required=False,
        lines=True,
        help_text="PEM; left out: the authorities of Berth's own system.",
    )
    token = Text(required=False)
    certificate = Text(required=False, lines=True, help_text="PEM, of the client.")
    key = Text(required=False, lines=True, help_text="PEM, without a password.")
    metrics = MetricsIn(
        required=False,
        allow_null=True,
        help_text="Who tells how much its devices are used; null: nobody, or nobody any longer. It"
        " may be left out where nothing measures the cluster by now.",
    )


class ClusterIn(StrictSerializer):
    name = Text(
        validators=[RegexValidator(rf"^{clusters.NAME.pattern}$", "a-z, 0-9 and - are wanted.")],
    )
    region = Text(max_length=clusters.MAX_REGION, required=False, default="", allow_blank=True)
    server = Text(
        required=False,
        default="",
        allow_blank=True,
        help_text="Where its API is, by https; its credential says it anew.",
    )


class ProbeStepOut(serializers.Serializer[Rows]):
    name = serializers.CharField()
    verdict = serializers.ChoiceField(
        choices=VERDICTS,
        help_text="warning: it works, and something should be changed all the same.",
    )
    said = serializers.CharField(help_text="Of what does not work: what to change.")


class ProbeOut(serializers.Serializer[Rows]):
    """Under way until `ended_at`; then it has a `verdict`, or what `stopped` it."""

    id = serializers.UUIDField()
    asked_at = serializers.DateTimeField()
    asked_by = serializers.CharField()
    began_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)
    credential_version = serializers.IntegerField(
        allow_null=True, help_text="Of the credential with which it was begun."
    )
    verdict = serializers.ChoiceField(
        choices=["", *VERDICTS], help_text="The worst of its steps; empty until its end."
    )
    stopped = serializers.ChoiceField(
        choices=["", *ProbeStop.values],
        help_text="What kept it from its end: there is no credential, whoever tried has no key"
        " for it, or it was broken off.",
    )
    why = serializers.CharField(allow_blank=True, help_text="Why it was stopped.")
    steps = ProbeStepOut(many=True, source="told", help_text="So far, in their order.")


class ExposureOut(serializers.Serializer[Rows]):
    """What a pod that asked for no device saw of those of its node."""

    verdict = serializers.ChoiceField(
        choices=EXPOSURE_VERDICTS,
        help_text="safe: on each node with devices it saw none, within two days; unsafe: on one it"
        " saw some; unknown: neither.",
    )
    saw = serializers.ListField(
        child=serializers.CharField(), help_text="A line for each device; none where it is safe."
    )
    seen_at = serializers.DateTimeField(allow_null=True)
    node = serializers.CharField(
        allow_blank=True, help_text="Where it saw some; empty where it is safe."
    )
    why = serializers.CharField(
        allow_blank=True,
        help_text="What the last probe of it could not look at, or what keeps the one under way.",
    )
    ended_at = serializers.DateTimeField(allow_null=True, help_text="Of that probe.")
    asked_at = serializers.DateTimeField(
        allow_null=True, help_text="While one is under way, which comes with each probe."
    )


class ManifestQuery(StrictSerializer):
    user = Text(
        required=False,
        help_text="Whom Berth signs in as where it is no account of its own: of a client"
        " certificate its common name, else what `kubectl auth whoami` says.",
    )
    token_hours = serializers.IntegerField(
        required=False,
        default=registry.TOKEN_H,
        min_value=1,
        max_value=registry.MOST_TOKEN_H,
        help_text="How long a token of the account is good for.",
    )
    parts = serializers.RegexField(
        rf"^({'|'.join(Part)})(,({'|'.join(Part)}))*$",
        required=False,
        help_text=f"What else Berth may do there, of {', '.join(Part)}, with commas between.",
        error_messages={"invalid": f"Say which of {', '.join(Part)}, with commas between."},
    )


class HardwareQueueOut(serializers.Serializer[Rows]):
    """Where it is held nothing new starts; where it is draining what runs gives way, too."""

    model = serializers.CharField(allow_blank=True, help_text="Empty: that of the whole cluster.")
    queue_state = serializers.ChoiceField(choices=QueueState.values)
    queue_note = serializers.CharField(allow_blank=True, help_text="Why it was moved there.")
    queue_changed_at = serializers.DateTimeField(allow_null=True)
    queue_changed_by = serializers.CharField(allow_blank=True)


class HardwareQueueIn(QueueStateIn):
    model = Text(
        max_length=stock.LONGEST,
        required=False,
        default="",
        allow_blank=True,
        help_text="The pool of that model, or of its stock of one capacity type, as queues name"
        " it; without one the whole cluster.",
    )


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
    node_pool = serializers.CharField(
        source="origin.node_pool",
        allow_blank=True,
        help_text="As Karpenter, EKS, AKS or GKE name it; empty where no label tells.",
    )
    zone = serializers.CharField(source="origin.zone", allow_blank=True)
    capacity_type = serializers.ChoiceField(
        source="origin.capacity",
        choices=CAPACITIES,
        help_text="spot may be taken away at short notice; empty where no label tells.",
    )
    leaving = serializers.BooleanField(
        help_text="It is about to be taken away: nothing new starts there."
    )


class NodesQuery(StrictSerializer):
    cluster = Text(required=False, max_length=40, help_text="A cluster's name.")
    name = Text(required=False, max_length=253)


class SliceOut(serializers.Serializer[Rows]):
    """Memory slices [start, end) of the device, which has four or eight."""

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
    kind = serializers.ChoiceField(choices=FLAVOR_KINDS)
    model = serializers.CharField(allow_blank=True)
    capacity = serializers.ChoiceField(
        choices=CAPACITIES,
        allow_blank=True,
        help_text="Of nodes of that type alone; empty of those of no type that has flavors of its"
        " own.",
    )
    profile = serializers.CharField(allow_blank=True)
    vendor = serializers.CharField(
        allow_blank=True,
        help_text=f"Who makes its devices: {', '.join(VENDORS)}; empty where nothing tells.",
    )
    isolation = serializers.ChoiceField(choices=Isolation.values)
    memory_mib = serializers.IntegerField()
    placing = serializers.ChoiceField(choices=Placing.values)


class PlacingIn(StrictSerializer):
    placing = serializers.ChoiceField(choices=Placing.values, help_text=_PLACING)


class FlavorIn(StrictSerializer):
    """What may go with what is the service's to say."""

    name = Text(max_length=flavors.MAX_NAME)
    kind = serializers.ChoiceField(
        choices=FLAVOR_KINDS,
        help_text="model is a quota over all of a model, in sevenths of a device: what is started"
        " whole, in slices or in shares counts there too. Its name ends in .sevenths.",
    )
    model = Text(
        max_length=flavors.MAX_MODEL,
        required=False,
        default="",
        allow_blank=True,
        help_text="The product name that nodes report; empty for CPU.",
    )
    capacity = serializers.ChoiceField(
        choices=CAPACITIES,
        required=False,
        default="",
        allow_blank=True,
        help_text="Of devices on nodes of that type alone, which are then of no flavor without;"
        " empty for all others.",
    )
    profile = Text(
        max_length=flavors.MAX_PROFILE,
        required=False,
        default="",
        allow_blank=True,
        help_text="For MIG, and for nothing else.",
    )
    isolation = serializers.ChoiceField(
        choices=Isolation.values,
        required=False,
        help_text="For a share none or memory; everything else is isolated by hardware.",
    )
    memory_mib = Integer(high=flavors.MAX_MEMORY_MIB, required=False, default=0)
    placing = serializers.ChoiceField(
        choices=Placing.values, required=False, default=Placing.PACK.value, help_text=_PLACING
    )


class FlavorsQuery(StrictSerializer):
    kind = serializers.ChoiceField(choices=FLAVOR_KINDS, required=False)
