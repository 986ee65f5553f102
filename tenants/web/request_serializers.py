"""What the endpoints of requests for quota take and give."""

from typing import Any

from rest_framework import serializers

from controlplane.api.fields import Id, Integer, Moment, StrictSerializer, Text, Words
from tenants.approval import Level
from tenants.models import Decision, QuotaRequest
from tenants.selectors.step_lines import StepLine
from tenants.services import asking
from tenants.services.quotas import MAX_MILLI
from tenants.services.requests import MAX_TEXT
from tenants.web.serializers import QuotasQuery

type Rows = Any  # plain rows

_NOMINAL = "What the nominal quota should become."
_VERSION = "The one that you have seen; at another one nothing is done."
LEVELS = [level.value for level in Level]
STATES = ["agreed", "denied", "lapsed", "overdue", "due", "later"]
_STEP = "Which of its steps you have seen to be due, from 1; at another one nothing is done."


class RequestGrantOut(serializers.Serializer[Rows]):
    """What came of a request: from `from_at` until `until_at`, null for good, the nominal quota is
    at least what was granted."""

    from_at = serializers.DateTimeField()
    until_at = serializers.DateTimeField(allow_null=True)
    take_back = serializers.BooleanField(
        help_text="Whether what is held beyond the quota at its end is preempted."
    )
    begun_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)


class RequestStepOut(serializers.Serializer[Rows]):
    """One of those who have to agree, or did; `who` are those that may, while nobody has."""

    level = serializers.ChoiceField(choices=LEVELS)
    place = serializers.CharField(help_text="The tenant's name, or what else it is of.")
    state = serializers.ChoiceField(
        choices=["agreed", "denied", "lapsed", "overdue", "due", "later"]
    )
    who = serializers.ListField(child=serializers.CharField())
    decided_by = serializers.CharField(allow_blank=True)
    on_behalf_of = serializers.CharField(
        allow_blank=True, help_text="The approver for whom a delegate said it."
    )
    decided_at = serializers.DateTimeField(allow_null=True)
    granted_milli = serializers.IntegerField(allow_null=True, help_text="At most.")
    until_at = serializers.DateTimeField(allow_null=True)
    note = serializers.CharField(allow_blank=True)


class BesideOut(serializers.Serializer[Rows]):
    """Another request that was asked for at once with this one."""

    id = serializers.UUIDField()
    flavor = serializers.CharField()
    nominal_milli = serializers.IntegerField()
    decision = serializers.ChoiceField(choices=Decision.values, allow_blank=True)


class QuotaRequestOut(serializers.Serializer[Rows]):
    """A request for quota, with the quota as it is now."""

    id = serializers.UUIDField()
    project = serializers.UUIDField(source="project_id")
    project_name = serializers.CharField(source="project.name")
    flavor = serializers.CharField(source="flavor.name")
    nominal_milli = serializers.IntegerField()
    from_at = serializers.DateTimeField(allow_null=True, help_text="Null is at once.")
    until_at = serializers.DateTimeField(allow_null=True, help_text="Null is for good.")
    version = serializers.IntegerField(help_text="Of what is asked; each change counts.")
    nominal_now_milli = serializers.IntegerField()
    quota_version = serializers.IntegerField(help_text="Of the quota as it is now; 0 for none.")
    reason = serializers.CharField()
    requested_by = serializers.CharField(source="requested_by.username")
    requested_at = serializers.DateTimeField()
    decision = serializers.ChoiceField(
        choices=Decision.values, allow_blank=True, help_text="Empty while nobody has decided."
    )
    decided_by = serializers.CharField(source="decided_by.username", allow_null=True, default=None)
    decided_at = serializers.DateTimeField(allow_null=True)
    note = serializers.CharField(allow_blank=True)
    granted_milli = serializers.IntegerField(allow_null=True)
    grant = RequestGrantOut(allow_null=True, default=None)

    step = serializers.IntegerField(default=1, help_text="Which of the steps is due, from 1.")
    steps = RequestStepOut(many=True, default=())
    beside = BesideOut(
        many=True, default=(), help_text="What else was asked for at once; each is decided alone."
    )

    def to_representation(self, instance: QuotaRequest) -> dict[str, Any]:  # Any: JSON values
        lines: tuple[StepLine, ...] = self.context["steps"][instance.id]
        return {
            **super().to_representation(instance),
            "step": 1 + sum(line.decided_at is not None for line in lines),
            "steps": RequestStepOut(lines, many=True).data,
            "beside": BesideOut(self.context["beside"].get(instance.id, ()), many=True).data,
        }


class QuotaRequestGrantedOut(QuotaRequestOut):
    warnings = serializers.ListField(
        child=serializers.CharField(), help_text="Where more is guaranteed now than there is."
    )


class _AskIn(StrictSerializer):
    from_at = Moment(required=False, default=None, allow_null=True, help_text="Null is at once.")
    until_at = Moment(required=False, default=None, allow_null=True, help_text="Null is for good.")
    reason = Text(max_length=MAX_TEXT, lines=True)


class LineIn(StrictSerializer):
    flavor = Text(max_length=63)
    nominal_milli = Integer(high=MAX_MILLI, help_text=_NOMINAL)


class QuotaRequestIn(_AskIn):
    """Of one flavor, or several as `lines`."""

    project = Id()
    flavor = Text(max_length=63, required=False)
    nominal_milli = Integer(high=MAX_MILLI, required=False, help_text=_NOMINAL)
    lines = serializers.ListField(
        child=LineIn(),
        required=False,
        allow_empty=False,
        max_length=asking.MOST,
        help_text="Several flavors instead of one, all or none: a request is made for each. The"
        " answer is the first, and `beside` in it are the others.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:  # Any: validated input
        one = [name for name in ("flavor", "nominal_milli") if name in attrs]
        if "lines" in attrs and one:
            told = "Give this, or `lines` instead."
            raise serializers.ValidationError(dict.fromkeys(one, told), code="ambiguous")
        if "lines" not in attrs and len(one) < 2:
            missing = {"flavor", "nominal_milli"} - set(one)
            told = "This is wanted, or `lines` instead."
            raise serializers.ValidationError(
                dict.fromkeys(sorted(missing), told), code="required"
            )
        return attrs


class AmendIn(_AskIn):
    nominal_milli = Integer(high=MAX_MILLI, help_text=_NOMINAL)
    version = Integer(low=1, help_text=_VERSION)


class GrantIn(StrictSerializer):
    version = Integer(low=1, help_text=_VERSION)
    quota_version = Integer(help_text="Of the quota that you have seen; 0 for none.")
    step = Integer(low=1, required=False, default=1, help_text=_STEP)
    note = Text(max_length=MAX_TEXT, lines=True, required=False, default="", allow_blank=True)
    granted_milli = Integer(
        high=MAX_MILLI, required=False, allow_null=True, help_text="Instead of what was asked."
    )
    until_at = Moment(
        required=False, allow_null=True, help_text="Instead of what was asked; null is for good."
    )
    take_back = serializers.BooleanField(
        default=False,
        help_text="At its end preempt what is held beyond the quota; else that ends by itself.",
    )
    preview = Text(
        max_length=1000,
        required=False,
        help_text="`preview` of the impact by which it is decided: stale after ten minutes, or"
        " once request, quota or amount are others.",
    )


class DenyIn(StrictSerializer):
    version = Integer(low=1, help_text=_VERSION)
    step = Integer(low=1, required=False, default=1, help_text=_STEP)
    note = Text(max_length=MAX_TEXT, lines=True)


class QuotaRequestsQuery(QuotasQuery):
    state = Words(choices=["open", *Decision.values], required=False)
