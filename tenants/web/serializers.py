"""What the tenants' endpoints take and give: explicit fields, nothing mapped from models."""

from datetime import datetime
from typing import Any

from django.core.validators import RegexValidator
from rest_framework import serializers

from clusters.models import Isolation
from controlplane.api.fields import Id, Integer, Moment, StrictSerializer, Text
from controlplane.kernel.queues import QueueState
from tenants.models import (
    CAPS,
    MAX_CAP,
    MAX_MIN_RUN_TIME_S,
    OF_WORK,
    Project,
    Role,
    Scope,
)
from tenants.naming import MAX_NAME
from tenants.selectors import reviews
from tenants.services.rates import PRICE
from tenants.services.tokens import MAX_AGE
from tenants.services.weights import MAX_WEIGHT
from tenants.web.amounts import ENFORCED, AmountsIn
from tenants.web.named_place import ONE_OF_TWO

type Rows = Any  # plain rows

ROLES = [role.value for role in Role]
QUEUE_STATES = QueueState.values
_SCOPES = [scope.value for scope in Scope]
_RUNS_FOR = (
    "Its work runs as long before it may be evicted, or less, where a tenant above says it."
)
_IDLE_FOR = (
    "Its work is freed when its devices are unused as long, or as a tenant above says; 0: never."
)
_TOLD = "As long before it is told so. Null for both says nothing."
PREFERRED = "Flavors that its work tries first, in this order, and gets if it names none itself."
_MAX_AGE_S = int(MAX_AGE.total_seconds())


class TenantOut(serializers.Serializer[Rows]):
    id = serializers.UUIDField()
    parent = serializers.UUIDField(  # type: ignore[assignment]  # DRF takes it off the class
        allow_null=True, source="parent_id"
    )
    name = serializers.CharField()
    slug = serializers.CharField()
    weight = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    queue_state = serializers.ChoiceField(
        choices=QUEUE_STATES, help_text="Of a tenant that is not open nothing below it starts."
    )
    queue_note = serializers.CharField(allow_blank=True, help_text="Why it was moved there.")
    queue_changed_at = serializers.DateTimeField(allow_null=True)
    queue_changed_by = serializers.CharField(
        source="queue_changed_by.username", allow_null=True, default=None
    )
    min_run_time_s = serializers.IntegerField(allow_null=True, help_text=_RUNS_FOR)
    idle_timeout_s = serializers.IntegerField(allow_null=True, help_text=_IDLE_FOR)
    idle_warning_s = serializers.IntegerField(allow_null=True, help_text=_TOLD)


class ProjectOut(serializers.Serializer[Rows]):
    """Of a queue that is held nothing starts; one that is draining gives back what runs, too.
    Caps are the most at once, of the project or of each submitter in it; null is none."""

    id = serializers.UUIDField()
    tenant = serializers.UUIDField(source="tenant_id")
    tenant_name = serializers.CharField(source="tenant.name")
    name = serializers.CharField()
    slug = serializers.CharField()
    namespace = serializers.CharField()
    weight = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    queue_state = serializers.ChoiceField(choices=QUEUE_STATES)
    queue_note = serializers.CharField(allow_blank=True, help_text="Why it was moved there.")
    queue_changed_at = serializers.DateTimeField(allow_null=True)
    queue_changed_by = serializers.CharField(
        source="queue_changed_by.username", allow_null=True, default=None
    )
    max_running = serializers.IntegerField(allow_null=True)
    max_pending = serializers.IntegerField(allow_null=True)
    user_max_running = serializers.IntegerField(allow_null=True)
    user_max_pending = serializers.IntegerField(allow_null=True)
    user_max_gpus_milli = serializers.IntegerField(allow_null=True)
    max_submits_a_minute = serializers.IntegerField(allow_null=True)
    user_max_submits_a_minute = serializers.IntegerField(allow_null=True)
    caps_from_above = serializers.ListField(
        child=serializers.ChoiceField(choices=CAPS),
        help_text="Those of the caps that a role above it set: only such change them.",
    )
    min_run_time_s = serializers.IntegerField(allow_null=True, help_text=_RUNS_FOR)
    idle_timeout_s = serializers.IntegerField(allow_null=True, help_text=_IDLE_FOR)
    idle_warning_s = serializers.IntegerField(allow_null=True, help_text=_TOLD)
    least_isolation = serializers.ChoiceField(
        choices=Isolation.values,
        help_text="Its work starts on no share that keeps neighbours on a GPU less apart.",
    )
    quota_confirmed_at = serializers.DateTimeField(
        help_text="When somebody last said that its quota is still wanted."
    )
    review_due_at = serializers.SerializerMethodField(
        help_text="Until when somebody has to say so; null where quotas are not reviewed."
    )
    quota_frozen_at = serializers.DateTimeField(
        allow_null=True, help_text="Since when nothing of it starts, as nobody said so."
    )

    def get_review_due_at(self, project: Project) -> datetime | None:
        return reviews.due_at(project)


class PreferredFlavorsOut(serializers.Serializer[Rows]):
    preferred_flavors = serializers.ListField(child=serializers.CharField(), help_text=PREFERRED)


class ProjectDetailOut(PreferredFlavorsOut, ProjectOut):
    min_run_time_in_force_s = serializers.IntegerField(
        help_text="The least that it and the tenants above it say."
    )
    idle_timeout_in_force_s = serializers.IntegerField(
        help_text="The same of that; 0 is never, the longest."
    )
    idle_warning_in_force_s = serializers.IntegerField()
    roles = serializers.ListField(
        child=serializers.ChoiceField(choices=ROLES),
        help_text="Yours there, with inherited ones.",
    )


class _PlaceIn(StrictSerializer):
    name = Text(max_length=MAX_NAME)
    slug = serializers.RegexField(r"^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$")
    weight = Integer(low=1, high=MAX_WEIGHT, required=False, default=1)


class TenantIn(_PlaceIn):
    parent = Id(  # type: ignore[assignment]  # DRF takes it off the class
        allow_null=True, help_text="Null makes an organisation."
    )


class ProjectIn(_PlaceIn):
    tenant = Id()


def _cap(counted: str) -> Integer:
    return Integer(low=1, high=MAX_CAP, allow_null=True, help_text=f"{counted} Null is no cap.")


class CapsIn(StrictSerializer):
    """All of them; the most at once."""

    max_running = _cap("Workloads that start or run.")
    max_pending = _cap("Workloads that wait, asked when more are submitted.")
    user_max_running = _cap("Workloads of one submitter that start or run.")
    user_max_pending = _cap("Workloads of one submitter that wait.")
    user_max_gpus_milli = _cap(
        "Thousandths of devices that one submitter holds; slices and shares count as parts of one."
    )
    max_submits_a_minute = _cap("Workloads submitted in a minute; an array counts as one.")
    user_max_submits_a_minute = _cap("The same of one submitter.")


class WeightIn(StrictSerializer):
    weight = Integer(low=1, high=MAX_WEIGHT, help_text="Its part is this over all its siblings'.")


class MinRunTimeIn(StrictSerializer):
    min_run_time_s = Integer(
        low=0, high=MAX_MIN_RUN_TIME_S, allow_null=True, help_text="Null says nothing."
    )


class ProjectsQuery(StrictSerializer):
    tenant = Id(required=False)


class MemberOut(serializers.Serializer[Rows]):
    """`tenant` and `project` both null: a role in the whole fleet."""

    id = serializers.UUIDField()
    user = serializers.CharField(source="user.username")
    role = serializers.ChoiceField(choices=ROLES)
    tenant = serializers.UUIDField(allow_null=True, source="tenant_id")
    project = serializers.UUIDField(allow_null=True, source="project_id")
    granted_by = serializers.CharField(
        source="granted_by.username",
        allow_null=True,
        default=None,
        help_text="Null where the installation began, or nobody wrote it down.",
    )
    granted_at = serializers.DateTimeField(allow_null=True)
    group = serializers.CharField(
        allow_null=True, source="group_role.group", default=None, help_text="By which it came."
    )


class MemberIn(StrictSerializer):
    """`project` or `tenant`, not both; a `tenant` of null is the whole fleet."""

    user = Text(max_length=150, help_text="User name.")
    role = serializers.ChoiceField(choices=ROLES)
    project = Id(required=False)
    tenant = Id(required=False, allow_null=True, help_text="Null is the whole fleet.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:  # Any: validated input
        if ("project" in attrs) == ("tenant" in attrs):
            raise serializers.ValidationError(ONE_OF_TWO)
        return attrs


class MembersQuery(StrictSerializer):
    project = Id(required=False, help_text="Left out: who has a role in the whole fleet.")


class TokenOut(serializers.Serializer[Rows]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    scopes = serializers.ListField(child=serializers.ChoiceField(choices=_SCOPES))
    project = serializers.UUIDField(allow_null=True, source="project_id")
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField()
    last_used_at = serializers.DateTimeField(allow_null=True)
    revoked_at = serializers.DateTimeField(allow_null=True)


class TokenIssuedOut(TokenOut):
    token = serializers.CharField(help_text="Shown this once; only a hash is kept.")


class TokenIn(StrictSerializer):
    name = Text(max_length=100)
    scopes = serializers.ListField(
        child=serializers.ChoiceField(choices=_SCOPES), min_length=1, max_length=len(_SCOPES)
    )
    project = Id(required=False, allow_null=True, help_text="Narrows the token to this project.")
    expires_in_s = Integer(low=60, high=_MAX_AGE_S, required=False, default=_MAX_AGE_S)


class QuotaOut(serializers.Serializer[Rows]):
    """Amounts in thousandths of the flavor; a null limit is no limit."""

    id = serializers.UUIDField()
    project = serializers.UUIDField(source="project_id")
    flavor = serializers.CharField(source="flavor.name")
    nominal_milli = serializers.IntegerField()
    borrowing_limit_milli = serializers.IntegerField(allow_null=True)
    lending_limit_milli = serializers.IntegerField(allow_null=True)
    used_milli = serializers.IntegerField()
    version = serializers.IntegerField()
    enforce_at = serializers.DateTimeField(allow_null=True, help_text=ENFORCED)


class QuotaSetOut(QuotaOut):
    warnings = serializers.ListField(
        child=serializers.CharField(),
        help_text="What is promised beyond what there is, a sentence each.",
    )


class QuotaIn(AmountsIn):
    project = Id()


class QuotasQuery(StrictSerializer):
    project = Id(required=False)
    flavor = Text(required=False, max_length=63)


class RateOut(serializers.Serializer[Rows]):
    """Price of a whole unit of the flavor for an hour; a null cluster is any."""

    id = serializers.UUIDField()
    flavor = serializers.CharField(source="flavor.name")
    cluster = serializers.CharField(source="cluster.name", allow_null=True, default=None)
    price_per_hour = serializers.DecimalField(max_digits=12, decimal_places=6)
    currency = serializers.CharField()
    valid_from = serializers.DateTimeField(source="during.lower", allow_null=True)
    valid_until = serializers.DateTimeField(source="during.upper", allow_null=True)


class RateIn(StrictSerializer):
    flavor = Text(max_length=63)
    cluster = Text(
        max_length=40, required=False, allow_null=True, help_text="Left out or null is any."
    )
    price_per_hour = Text(
        validators=[RegexValidator(rf"^{PRICE.pattern}$", 'An amount is wanted: "2.50".')],
        help_text="Of a whole unit, as a string: money is never a float.",
    )
    currency = Text(max_length=3, help_text="The installation's.")

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        start = Moment(required=False, help_text="Now or later; left out is now.")
        return {**super().get_fields(), "from": start}  # a word that no attribute can have


class RatesQuery(StrictSerializer):
    flavor = Text(required=False, max_length=63)
    at = Moment(required=False, help_text="Only prices in force then.")


class UsageOut(serializers.Serializer[Rows]):
    """Thousandths of a flavor held over the half-open [start, end)."""

    id = serializers.UUIDField()
    project = serializers.UUIDField(source="project_id")
    flavor = serializers.CharField(source="flavor.name")
    cluster = serializers.CharField(source="cluster.name")
    user = serializers.CharField(source="user.username")
    workload = serializers.UUIDField(source="workload_id")
    placement = serializers.UUIDField(source="placement_id")
    amount_milli = serializers.IntegerField()
    start = serializers.DateTimeField(source="during.lower")
    end = serializers.DateTimeField(source="during.upper")


class ChargeOut(serializers.Serializer[Rows]):
    """A price of usage. A correction names the charge it corrects, and may be negative."""

    id = serializers.UUIDField()
    usage = serializers.UUIDField(source="usage_id")
    project = serializers.UUIDField(source="project_id")
    flavor = serializers.CharField(source="flavor.name")
    workload = serializers.UUIDField(source="workload_id")
    rate = serializers.UUIDField(source="rate_id")
    amount = serializers.DecimalField(max_digits=18, decimal_places=6)
    currency = serializers.CharField()
    ended_at = serializers.DateTimeField()
    corrects = serializers.UUIDField(source="corrects_id", allow_null=True)


class SpendQuery(QuotasQuery):
    workload = Id(required=False)
    since = Moment(required=False)
    until = Moment(required=False)


class MembershipOut(serializers.Serializer[Rows]):
    role = serializers.ChoiceField(choices=ROLES)
    tenant = serializers.UUIDField(allow_null=True, source="tenant_id")
    project = serializers.UUIDField(allow_null=True, source="project_id")


class MeOut(serializers.Serializer[Rows]):
    """Who asks; `token` is null for a session."""

    id = serializers.UUIDField()
    username = serializers.CharField()
    memberships = MembershipOut(many=True)
    token = TokenOut(allow_null=True)
    mailed_of = serializers.ListField(
        child=serializers.ChoiceField(choices=OF_WORK),
        help_text="Of which events of your own work you are told by mail.",
    )
