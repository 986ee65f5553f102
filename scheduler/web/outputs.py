"""What the API of workloads answers with, for its description."""

from typing import Any

from drf_spectacular.utils import extend_schema_serializer
from rest_framework import serializers

from scheduler.core.lifecycle import State
from scheduler.web import array_input, gate_input
from scheduler.web.details import (
    AttemptOut,
    DispatchOut,
    IdleOut,
    PlacementOut,
    PodSetOut,
    StandingOut,
)
from scheduler.web.meanings import CODES, DOCUMENTED
from scheduler.web.terms import RetriesOut
from scheduler.web.topologies import TopologyOut

MAX_BATCH = 500
BATCH_FIELDS = frozenset({"project", "workloads"})


class SubmittedOut(serializers.Serializer[Any]):  # Any: plain rows
    id = serializers.UUIDField()
    name = serializers.CharField()
    state = serializers.ChoiceField(choices=[state.value for state in State])


class BatchOut(serializers.Serializer[Any]):  # Any: plain rows
    items = SubmittedOut(many=True)


class ReasonOut(serializers.Serializer[Any]):  # Any: plain rows
    """Why it waits."""

    code = serializers.ChoiceField(choices=CODES, help_text=DOCUMENTED)
    numbers = serializers.DictField(
        help_text="What stands in the way, in numbers; those that end in `_milli` in thousandths."
    )
    text = serializers.CharField(help_text="The same in a sentence.")


@extend_schema_serializer(component_name="EstimateOut")
class EstimateOut(serializers.Serializer[Any]):  # Any: plain rows
    """Seconds from `as_of` to the start, half and nine in ten times; both null: no basis."""

    p50_s = serializers.IntegerField(allow_null=True)
    p90_s = serializers.IntegerField(allow_null=True)
    as_of = serializers.DateTimeField()
    basis = serializers.CharField()


_SAVED = "When it last told that its work was saved: eviction loses what came after."


class CheckpointOut(serializers.Serializer[Any]):  # Any: plain rows
    id = serializers.UUIDField()
    checkpointed_at = serializers.DateTimeField(help_text=_SAVED)


class WorkloadOut(serializers.Serializer[Any]):  # Any: plain rows
    id = serializers.UUIDField()
    project = serializers.UUIDField()
    name = serializers.CharField()
    state = serializers.ChoiceField(choices=[state.value for state in State])
    version = serializers.IntegerField()
    priority_class = serializers.CharField()
    preemptible = serializers.BooleanField()
    run_time_limit_s = serializers.IntegerField(allow_null=True)
    submitted_by = serializers.CharField()
    submitted_at = serializers.DateTimeField()
    admitted_at = serializers.DateTimeField(allow_null=True)
    started_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)
    checkpointed_at = serializers.DateTimeField(allow_null=True, help_text=_SAVED)
    pods = serializers.IntegerField()
    gpus = serializers.IntegerField(help_text="GPUs or slices, over all pods.")
    flavors = serializers.ListField(child=serializers.CharField())
    reason = ReasonOut(allow_null=True)
    reason_at = serializers.DateTimeField(allow_null=True)
    estimate = EstimateOut(allow_null=True)
    array_index = serializers.IntegerField(allow_null=True, help_text="In its array, from 0.")
    array = array_input.ArraySumOut(allow_null=True, help_text="The array it is an element of.")


class OriginOut(serializers.Serializer[Any]):  # Any: plain rows
    """What it was made of in its cluster, of work that was not submitted here."""

    cluster = serializers.CharField()
    namespace = serializers.CharField()
    api_version = serializers.CharField(allow_blank=True)
    kind = serializers.CharField(
        allow_blank=True, help_text="Of the topmost owner of its pods; empty: nobody owns them."
    )
    name = serializers.CharField()
    creator = serializers.CharField(allow_blank=True, help_text="Whose request made its pods.")


class WorkloadDetailOut(WorkloadOut):
    origin = OriginOut(allow_null=True)
    depends_on = array_input.NeedOut(many=True)
    gates = gate_input.GateOut(many=True, help_text="Its own, or those of its array.")
    clusters = serializers.ListField(child=serializers.CharField())
    topology = TopologyOut(allow_null=True)
    retries = RetriesOut()
    failures = serializers.IntegerField(help_text="Tries that failed, but for lost nodes.")
    node_losses = serializers.IntegerField(help_text="Tries that lost their node.")
    grace_s = serializers.IntegerField()
    notice_s = serializers.IntegerField()
    cluster_loss_requeue_s = serializers.IntegerField(
        allow_null=True,
        help_text="For how long its cluster has to be silent before it starts elsewhere; null: it"
        " waits for its cluster.",
    )
    move_to_better = serializers.BooleanField()
    moved_at = serializers.DateTimeField(
        allow_null=True, help_text="When it was last stopped to start elsewhere at once."
    )
    notice_until = serializers.DateTimeField(
        allow_null=True, help_text="While it is evicted and told so: when its pods are stopped."
    )
    attempts = AttemptOut(many=True, help_text="The newest first, at most 100.")
    labels = serializers.DictField(child=serializers.CharField())
    pod_sets = PodSetOut(many=True)
    placements = PlacementOut(many=True, help_text="The newest first, at most 4,096.")
    dispatch = DispatchOut(allow_null=True)
    idle = IdleOut(allow_null=True)
    priority = serializers.IntegerField(help_text="The higher comes first.")
    standing = StandingOut(
        many=True, help_text="Its project's, from the top; only while it waits."
    )


class QueuedOut(serializers.Serializer[Any]):  # Any: plain rows
    position = serializers.IntegerField(help_text="From 1, in this project's queue.")
    workload = serializers.UUIDField()
    name = serializers.CharField()
    priority_class = serializers.CharField()
    priority = serializers.IntegerField(help_text="The higher comes first.")
    standing = StandingOut(many=True, help_text="The project's, from the top.")
    submitted_by = serializers.CharField()
    submitted_at = serializers.DateTimeField()
    pods = serializers.IntegerField()
    gpus = serializers.IntegerField()
    flavors = serializers.ListField(child=serializers.CharField())
    reason = ReasonOut(allow_null=True)
    reason_at = serializers.DateTimeField(allow_null=True)
    estimate = EstimateOut(allow_null=True)


class DecidedOut(serializers.Serializer[Any]):  # Any: plain rows
    """The cycle that decided something. An operator plans it again by its id."""

    cycle = serializers.UUIDField()
    at = serializers.DateTimeField()
    digest = serializers.CharField(
        allow_blank=True, help_text="SHA-256 of its plan; empty where its inputs are not kept."
    )
    replayable = serializers.BooleanField(help_text="Whether its inputs are kept, and readable.")


class EventOut(serializers.Serializer[Any]):  # Any: plain rows
    id = serializers.UUIDField()
    at = serializers.DateTimeField()
    kind = serializers.CharField()
    before = serializers.CharField(allow_blank=True)
    after = serializers.CharField(allow_blank=True)
    message = serializers.CharField(allow_blank=True)
    decided = DecidedOut(allow_null=True, help_text="The cycle that decided it; null: none did.")
