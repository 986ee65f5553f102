"""Endpoints about what may be submitted: what the fleet, a tenant or a project says of it, what
holds there, and what a policy would have refused lately."""

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.fields import Id, Integer, StrictSerializer
from controlplane.api.schema import operation
from controlplane.api.views import ApiView
from scheduler.services import policy_trials
from tenants import access, policy
from tenants.access import Action, Actor, Place
from tenants.policy import Rules
from tenants.selectors import policies as selectors
from tenants.services import policies
from tenants.web.named_place import place_named

type Out = dict[str, Any]  # Any: JSON values


class RulesIn(StrictSerializer):
    """What is left out is not said. What several say of the same holds all at once."""

    max_run_time_s = Integer(
        low=1,
        high=policy.MAX_RUN_TIME_S,
        required=False,
        allow_null=True,
        help_text="Also the limit of what says none, where there is no default.",
    )
    max_gpus_milli = Integer(
        low=1,
        high=policy.MAX_GPUS_MILLI,
        required=False,
        allow_null=True,
        help_text="Of one workload, in thousandths of a GPU: slices and shares are parts of one.",
    )
    max_pods = Integer(low=1, high=policy.MAX_PODS, required=False, allow_null=True)
    priority_classes = serializers.ListField(
        child=serializers.ChoiceField(choices=policy.PRIORITY_CLASSES),
        required=False,
        help_text="Those that are permitted; none is all.",
    )
    images = serializers.ListField(
        child=serializers.CharField(max_length=300),
        required=False,
        max_length=policy.MAX_IMAGES,
        help_text="References as they are written, or beginnings of such that end with /*, :* or"
        " @*; none is all.",
    )
    required_labels = serializers.DictField(
        child=serializers.ListField(
            child=serializers.CharField(max_length=63), max_length=policy.MAX_VALUES
        ),
        required=False,
        help_text="Label → the values that it may have; [] is any.",
    )
    forbidden_fields = serializers.ListField(
        child=serializers.ChoiceField(choices=policy.FIELDS), required=False
    )
    default_run_time_s = Integer(
        low=1, high=policy.MAX_RUN_TIME_S, required=False, allow_null=True
    )
    default_priority_class = serializers.ChoiceField(
        choices=["", *policy.PRIORITY_CLASSES], required=False
    )
    default_labels = serializers.DictField(
        child=serializers.CharField(max_length=63, allow_blank=True), required=False
    )


class PolicyIn(RulesIn):
    version = Integer(
        high=2**31 - 1, help_text="The version you saw, 0 where nothing was said yet."
    )


class RulesOut(serializers.Serializer[Any]):  # Any: plain values
    max_run_time_s = serializers.IntegerField(allow_null=True)
    max_gpus_milli = serializers.IntegerField(allow_null=True)
    max_pods = serializers.IntegerField(allow_null=True)
    priority_classes = serializers.ListField(child=serializers.CharField())
    images = serializers.ListField(child=serializers.CharField())
    required_labels = serializers.DictField(
        child=serializers.ListField(child=serializers.CharField())
    )
    forbidden_fields = serializers.ListField(child=serializers.CharField())
    default_run_time_s = serializers.IntegerField(allow_null=True)
    default_priority_class = serializers.CharField()
    default_labels = serializers.DictField(child=serializers.CharField())


class InForceOut(serializers.Serializer[Any]):  # Any: plain values
    rule = serializers.CharField()
    value = serializers.JSONField(help_text="As the rule has it.")
    by = serializers.CharField(help_text="Whose word that is: the fleet, a tenant, the project.")


class PolicyOut(serializers.Serializer[Any]):  # Any: plain values
    """What it says itself, and all that holds there."""

    rules = RulesOut()
    is_from_above = serializers.BooleanField(
        help_text="Said by somebody with a role above it: only such change it."
    )
    version = serializers.IntegerField()
    may_set = serializers.BooleanField()
    in_force = InForceOut(many=True)


class TrialIn(RulesIn):
    project = Id(required=False, allow_null=True, help_text="This, the tenant, or the fleet.")
    tenant = Id(required=False, allow_null=True)


class TrialRefusalOut(serializers.Serializer[Any]):  # Any: plain values
    rule = serializers.CharField()
    count = serializers.IntegerField(help_text="Submissions that it would have refused.")
    projects = serializers.IntegerField(help_text="Of how many projects.")
    example = serializers.CharField(help_text="Why one of them, the latest.")


class TrialOut(serializers.Serializer[Any]):  # Any: plain values
    """Submissions of the last days, as they were stored, against these rules alone. An array is
    one; what they waited for and their gates are not looked at."""

    since = serializers.DateTimeField()
    looked_at = serializers.IntegerField()
    all_looked_at = serializers.BooleanField(help_text="False: there were more, earlier ones.")
    refused = serializers.IntegerField()
    rules = TrialRefusalOut(many=True)


def rules_of(body: Mapping[str, Any]) -> Rules:  # Any: validated input
    said = {name: body[name] for name in Rules.__dataclass_fields__ if name in body}
    for name in ("priority_classes", "images", "forbidden_fields"):
        said[name] = tuple(said.get(name, ()))
    labels = said.get("required_labels", {})
    said["required_labels"] = {key: tuple(values) for key, values in labels.items()}
    return Rules(**said)


class FleetPolicyApi(ApiView):
    @operation(
        "policy_of_fleet",
        tag="policies",
        summary="What may be submitted anywhere",
        answers={200: PolicyOut},
    )
    def get(self, request: Request) -> Response:
        return Response(_shaped(self.actor, None))

    @operation(
        "policy_of_fleet_set",
        tag="policies",
        summary="Say what may be submitted anywhere (owners and operators of the fleet)",
        takes=PolicyIn,
        answers={200: PolicyOut},
        problems=(409,),
        keyed=True,
    )
    def post(self, request: Request) -> Response:
        return _set(self, lambda: None)


class TenantPolicyApi(ApiView):
    @operation(
        "tenants_policy",
        tag="policies",
        summary="What may be submitted below a tenant",
        answers={200: PolicyOut},
        problems=(404,),
    )
    def get(self, request: Request, id: UUID) -> Response:
        return Response(_shaped(self.actor, access.tenant_or_404(self.actor, id)))

    @operation(
        "tenants_set_policy",
        tag="policies",
        summary="Say what may be submitted below a tenant, within what holds above",
        takes=PolicyIn,
        answers={200: PolicyOut},
        problems=(404, 409),
        keyed=True,
    )
    def post(self, request: Request, id: UUID) -> Response:
        return _set(self, lambda: access.tenant_or_404(self.actor, id))


class ProjectPolicyApi(ApiView):
    @operation(
        "projects_policy",
        tag="policies",
        summary="What may be submitted to a project",
        answers={200: PolicyOut},
        problems=(404,),
    )
    def get(self, request: Request, id: UUID) -> Response:
        return Response(_shaped(self.actor, access.project_or_404(self.actor, id)))

    @operation(
        "projects_set_policy",
        tag="policies",
        summary="Say what may be submitted to a project, within what holds above",
        takes=PolicyIn,
        answers={200: PolicyOut},
        problems=(404, 409),
        keyed=True,
    )
    def post(self, request: Request, id: UUID) -> Response:
        return _set(self, lambda: access.project_or_404(self.actor, id))


class PolicyDryRunApi(ApiView):
    @operation(
        "policies_dry_run",
        tag="policies",
        summary="What a policy would have refused in the last days (who may set it); nothing is"
        " stored",
        takes=TrialIn,
        answers={200: TrialOut},
        problems=(404, 429),
    )
    def post(self, request: Request) -> Response:
        body = self.body(TrialIn)
        of = place_named(self.actor, body)
        found = policy_trials.tried(actor=self.actor, of=of, rules=rules_of(body), at=self.at)
        return Response(TrialOut(found).data)


def _set(view: ApiView, find: Callable[[], Place]) -> Response:
    def make() -> Out:
        body = view.body(PolicyIn)
        of = find()
        policies.set_policy(
            actor=view.actor, of=of, rules=rules_of(body), version=body["version"], at=view.at
        )
        return _shaped(view.actor, of)

    return view.once(make, status=200)


def _shaped(actor: Actor, of: Place) -> Out:
    own = selectors.own(of)
    told = {
        "rules": own.rules,
        "is_from_above": own.is_from_above,
        "version": own.version,
        "may_set": access.allowed_at(actor, Action.EDIT_POLICY, place=of),
        "in_force": selectors.in_force(of, selectors.of_place(of)),
    }
    return PolicyOut(told).data
