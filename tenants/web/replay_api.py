"""The endpoint of what the last days would have been under another weight, quota or policy."""

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.fields import Integer, StrictSerializer
from controlplane.api.schema import operation
from controlplane.api.views import ApiView
from controlplane.kernel.errors import Invalid
from scheduler.services import replays
from scheduler.services.replays import Replayed
from tenants import access
from tenants.access import Place
from tenants.models import Project, Quota, Tenant
from tenants.services import quotas
from tenants.services.quotas import MAX_MILLI
from tenants.services.weights import MAX_WEIGHT
from tenants.web.policy_api import RulesIn, rules_of
from tenants.web.quota_api import flavor_named

type Out = dict[str, Any]  # Any: JSON values

_QUOTA = {"project", "flavor", "nominal_milli"}
_LIMITS = {"borrowing_limit_milli", "lending_limit_milli"}


class ReplayIn(StrictSerializer):
    """One change: a weight, of a project or a tenant; a project's quota of a flavor; or a policy,
    of a project, of a tenant, or without either of the fleet."""

    project = serializers.UUIDField(required=False)
    tenant = serializers.UUIDField(required=False)
    weight = Integer(low=1, high=MAX_WEIGHT, required=False)
    flavor = serializers.CharField(max_length=63, required=False)
    nominal_milli = Integer(high=MAX_MILLI, required=False)
    borrowing_limit_milli = Integer(
        high=MAX_MILLI, required=False, allow_null=True, help_text="Left out: as it is."
    )
    lending_limit_milli = Integer(
        high=MAX_MILLI, required=False, allow_null=True, help_text="Left out: as it is."
    )
    policy = RulesIn(required=False)


class WaitsOut(serializers.Serializer[Any]):  # Any: rows
    mean_s = serializers.IntegerField(help_text="Until work first started, on average.")
    p90_s = serializers.IntegerField(help_text="Of nine tenths of it.")
    waiting_count = serializers.IntegerField(
        help_text="What had not started by the end, and counts as if it did then."
    )
    evictions_count = serializers.IntegerField(help_text="Stops before the end of a run.")


class RefusedByOut(serializers.Serializer[Any]):  # Any: rows
    rule = serializers.CharField()
    count = serializers.IntegerField()


class ReplayUsedOut(serializers.Serializer[Any]):  # Any: rows
    """What pods hold of a flavor from start to end, in thousandths of it times seconds, and what
    that costs at the prices of now; null where any of it has none."""

    flavor = serializers.CharField()
    before_milli_s = serializers.IntegerField(help_text="As it is now.")
    after_milli_s = serializers.IntegerField(help_text="With the change.")
    before_cost = serializers.DecimalField(max_digits=None, decimal_places=6, allow_null=True)
    after_cost = serializers.DecimalField(max_digits=None, decimal_places=6, allow_null=True)


class ReplayBorrowedOut(serializers.Serializer[Any]):  # Any: rows
    """What is held of a flavor beyond nominal, in thousandths of it times seconds."""

    flavor = serializers.CharField()
    before_milli_s = serializers.IntegerField(help_text="Beyond the nominal of now.")
    after_milli_s = serializers.IntegerField(help_text="Beyond the nominal with the change.")


class ReplayedProjectOut(serializers.Serializer[Any]):  # Any: rows
    """`project` is empty for all those together whose quotas, or policies, you do not set."""

    project = serializers.CharField(allow_blank=True)
    tenant = serializers.CharField(allow_blank=True)
    projects_count = serializers.IntegerField()
    arrivals_count = serializers.IntegerField()
    before = WaitsOut(help_text="As it is now.")
    after = WaitsOut(help_text="With the change.")
    longer_s = serializers.IntegerField(help_text="Of the mean; negative for who gains.")
    refused_count = serializers.IntegerField(
        help_text="What the policy would refuse; waits are of the rest, before and after."
    )
    cut_count = serializers.IntegerField(
        help_text="Runs of the rest that end sooner, by the policy's run-time limit."
    )
    refused_by = RefusedByOut(many=True, help_text="By rule; several may refuse the same.")
    used = ReplayUsedOut(
        many=True,
        help_text="By flavor, of all that comes to each; none where you don't see what is spent.",
    )
    borrowed = ReplayBorrowedOut(
        many=True, help_text="By flavor of which it borrows any, also of a quota over a model."
    )


class ReplayedOut(serializers.Serializer[Any]):  # Any: rows
    """What came in the last days, played again on the fleet as it is, twice."""

    since = serializers.DateTimeField()
    until = serializers.DateTimeField()
    complete = serializers.BooleanField(
        help_text="Whether that is all of the last 7 days; not where more came than is played, or"
        " where it took too long."
    )
    left_count = serializers.IntegerField(
        help_text="What came after `until` and is not played, as it took too long."
    )
    currency = serializers.CharField(help_text="Of all costs.")
    step_s = serializers.IntegerField(help_text="What comes and ends is looked at each so often.")
    projects = ReplayedProjectOut(many=True)


class ReplaysApi(ApiView):
    @operation(
        "replays",
        tag="quotas",
        summary="Who would have waited longer in the last 7 days under another weight, quota or"
        " policy, what would be borrowed and what it costs (who may set it); nothing is stored",
        takes=ReplayIn,
        answers={200: ReplayedOut},
        problems=(404, 429),
    )
    def post(self, request: Request) -> Response:
        return Response(ReplayedOut(self._replayed(self.body(ReplayIn))).data)

    def _replayed(self, body: Out) -> Replayed:
        match sorted(body):
            case ["project", "weight"]:
                of = access.project_or_404(self.actor, body["project"])
                return self._of_weight(of, body)
            case ["tenant", "weight"]:
                return self._of_weight(access.tenant_or_404(self.actor, body["tenant"]), body)
            case names if _QUOTA <= set(names) <= _QUOTA | _LIMITS:
                return self._of_quota(body)
            case ["policy"]:
                return self._of_policy(None, body)
            case ["policy", "project"]:
                return self._of_policy(access.project_or_404(self.actor, body["project"]), body)
            case ["policy", "tenant"]:
                return self._of_policy(access.tenant_or_404(self.actor, body["tenant"]), body)
        raise Invalid(
            "Name one change: project or tenant with weight, project with flavor and"
            " nominal_milli, or policy with project, tenant or neither.",
            pointer="",
        )

    def _of_weight(self, of: Project | Tenant, body: Out) -> Replayed:
        return replays.of_weight(actor=self.actor, of=of, weight=body["weight"], at=self.at)

    def _of_quota(self, body: Out) -> Replayed:
        project = access.project_or_404(self.actor, body["project"])
        flavor = flavor_named(body["flavor"])
        there = quotas.of(owner=project, flavor=flavor) or Quota(borrowing_limit_milli=0)
        limits = {name: body.get(name, getattr(there, name)) for name in _LIMITS}
        amounts = quotas.Amounts(nominal_milli=body["nominal_milli"], **limits)
        return replays.of_quota(
            actor=self.actor, project=project, flavor=flavor, amounts=amounts, at=self.at
        )

    def _of_policy(self, of: Place, body: Out) -> Replayed:
        rules = rules_of(body["policy"])
        try:
            return replays.of_policy(actor=self.actor, of=of, rules=rules, at=self.at)
        except Invalid as error:
            raise error.within("/policy") from error
