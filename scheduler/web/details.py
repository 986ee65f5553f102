"""The parts of one workload, shown whole: its pod sets, its pods, and what is still to be done."""

from typing import Any

from rest_framework import serializers

from scheduler.core.plan import PassedFor, Verdict
from scheduler.core.snapshot import Isolation
from scheduler.models import AttemptOutcome, OperationKind
from scheduler.web.terms import CLASSES
from scheduler.web.topologies import SetTopologyOut
from scheduler.web.wishes import WishOut

OPERATION_KINDS = OperationKind.values


class PodSetOut(serializers.Serializer[Any]):  # Any: plain rows
    name = serializers.CharField()
    count = serializers.IntegerField()
    min_count = serializers.IntegerField()
    cpu_milli = serializers.IntegerField()
    memory_mib = serializers.IntegerField()
    gpu_count = serializers.IntegerField()
    gpu_milli = serializers.IntegerField()
    flavors = serializers.ListField(
        child=serializers.CharField(),
        help_text="Accepted in this order, or with `any_order` in any; those of the wish last.",
    )
    any_order = serializers.BooleanField(help_text="The flavors are as welcome as each other.")
    wish = WishOut(allow_null=True)
    as_preferred = serializers.BooleanField(
        help_text="It named none and wishes for nothing: `flavors` are what its project prefers."
    )
    gpu_memory_mib = serializers.IntegerField(
        allow_null=True, help_text="Of one GPU, instead of gpu_milli."
    )
    least_isolation = serializers.ChoiceField(choices=[each.value for each in Isolation])
    topology = SetTopologyOut(allow_null=True)
    image = serializers.CharField()
    command = serializers.ListField(child=serializers.CharField())
    args = serializers.ListField(child=serializers.CharField())
    env = serializers.DictField(child=serializers.CharField())
    held_count = serializers.IntegerField(
        help_text="Pods that hold room now; with less than `count` it grows when there is more."
    )


class OfferOut(serializers.Serializer[Any]):  # Any: plain rows
    """A cluster when the work started."""

    cluster = serializers.CharField()
    verdict = serializers.ChoiceField(choices=[each.value for each in Verdict])
    free_milli = serializers.IntegerField(
        allow_null=True,
        help_text="Thousandths of what it started on that were free there just before; null: the"
        " cluster was not looked at.",
    )
    per_hour = serializers.DecimalField(
        max_digits=24,
        decimal_places=6,
        allow_null=True,
        help_text="What all its pods were charged an hour there, in `currency`; null where nobody"
        " knew, and where all clusters charged the same.",
    )
    text = serializers.CharField()


class PassedOut(serializers.Serializer[Any]):  # Any: plain rows
    """Flavors, one a pod set, that it accepts as much or more, and did not start on."""

    flavors = serializers.ListField(child=serializers.CharField())
    why = serializers.ChoiceField(choices=[each.value for each in PassedFor])
    text = serializers.CharField()


class ChoiceOut(serializers.Serializer[Any]):  # Any: plain rows
    """Why it started there, as the plan saw it that started it. A plan looks at all clusters each
    time: work starts as soon as any that it accepts has room for it within its quota."""

    currency = serializers.CharField(
        allow_null=True, help_text="Null where all clusters charged the same."
    )
    kept = serializers.BooleanField(
        help_text="Its places were kept for it since an earlier plan; nothing else is told then."
    )
    clusters = OfferOut(many=True, help_text="The one taken first; empty where there is one.")
    passed = PassedOut(many=True)


class AttemptOut(serializers.Serializer[Any]):  # Any: plain rows
    """One try at running it."""

    number = serializers.IntegerField()
    cluster = serializers.CharField()
    created_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)
    outcome = serializers.ChoiceField(choices=AttemptOutcome.values, allow_blank=True)
    failure = serializers.ChoiceField(
        choices=CLASSES, allow_blank=True, help_text="The class of what broke it."
    )
    trouble = serializers.CharField(allow_blank=True, help_text="The same in words.")
    lost_milli_s = serializers.IntegerField(
        help_text="Work that its end lost, since the last checkpoint: thousandths of devices x"
        " seconds."
    )
    unseen_since = serializers.DateTimeField(
        allow_null=True,
        help_text="When it ended because its cluster was lost. What it holds there is held and"
        " charged until its pods are seen gone: then null again.",
    )
    choice = ChoiceOut(allow_null=True, help_text="Null where there was nothing to choose.")


class PlacementOut(serializers.Serializer[Any]):  # Any: plain rows
    """One pod on one node. `spans` are parts of devices: memory slices with MIG, else
    thousandths."""

    id = serializers.UUIDField()
    attempt = serializers.IntegerField()
    rank = serializers.IntegerField()
    pod_set = serializers.CharField()
    pod_name = serializers.CharField()
    cluster = serializers.CharField()
    node = serializers.CharField()
    topology = serializers.DictField(
        child=serializers.CharField(), help_text="Where the node stands now, by level."
    )
    flavor = serializers.CharField()
    amount_milli = serializers.IntegerField()
    spans = serializers.ListField(child=serializers.DictField())
    started_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)
    released_at = serializers.DateTimeField(allow_null=True)
    dismissed_at = serializers.DateTimeField(
        allow_null=True, help_text="When it was told to go, while the others of its gang stay."
    )
    exit_code = serializers.IntegerField(allow_null=True)
    end_reason = serializers.CharField(allow_blank=True)


class StandingOut(serializers.Serializer[Any]):  # Any: plain rows
    """A member of the tree above a project, or the project. Of two of equal priority, who has less
    comes first, compared from the top of the tree down: at each level the share, then the past."""

    name = serializers.CharField()
    share_ppm = serializers.IntegerField(
        help_text="Used now beyond its guarantee: millionths of the fleet's nominal, by weight."
    )
    past_ppm = serializers.IntegerField(
        allow_null=True,
        help_text="Used on average before, halved for each half-life since; null: not counted.",
    )


class IdleOut(serializers.Serializer[Any]):  # Any: plain rows
    """While all its devices are seen unused; null where one is used, or nobody measures it."""

    since = serializers.DateTimeField()
    devices_milli = serializers.IntegerField(help_text="Thousandths of devices.")
    warned_at = serializers.DateTimeField(allow_null=True, help_text="When it was told so.")
    frees_at = serializers.DateTimeField(
        allow_null=True, help_text="When it is freed if it goes on so; null is never."
    )


class DispatchOut(serializers.Serializer[Any]):  # Any: plain rows
    """Starting or stopping its pods, where that is not done yet; null where nothing is open."""

    kind = serializers.ChoiceField(choices=OPERATION_KINDS)
    failures = serializers.IntegerField(help_text="Tries that failed so far.")
    last_error = serializers.CharField(allow_blank=True, help_text="Of the last that failed.")
    next_try_at = serializers.DateTimeField(help_text="In the past while a try is under way.")
