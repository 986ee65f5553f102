"""The endpoint of what a grant would do to others."""

from typing import Any
from uuid import UUID

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.fields import StrictSerializer
from controlplane.api.schema import operation
from controlplane.api.views import ApiView
from scheduler.core.simulating.estimate import HORIZON_S
from scheduler.services import impacts
from tenants.selectors import requests
from tenants.services.quotas import MAX_MILLI

type Out = dict[str, Any]  # Any: JSON values

_WAIT = f"Until nine tenths of it have started; {HORIZON_S} is then, or never."


class BorrowedOut(serializers.Serializer[Any]):  # Any: rows
    """What is held of a flavor beyond nominal after the next plan."""

    flavor = serializers.CharField()
    before_milli = serializers.IntegerField()
    after_milli = serializers.IntegerField()


class ImpactCostOut(serializers.Serializer[Any]):  # Any: rows
    """What it costs at most to use all that is added for so many days, where it is cheapest and
    where it is dearest."""

    low = serializers.DecimalField(max_digits=None, decimal_places=6)
    high = serializers.DecimalField(max_digits=None, decimal_places=6)
    currency = serializers.CharField()
    days = serializers.IntegerField()


class EffectOut(serializers.Serializer[Any]):  # Any: rows
    """On a project; `project` is empty for all those together that you do not decide for."""

    project = serializers.CharField(allow_blank=True)
    tenant = serializers.CharField(allow_blank=True)
    own = serializers.BooleanField(help_text="It is the one that would get the quota.")
    projects_count = serializers.IntegerField()
    waiting_count = serializers.IntegerField(help_text="Workloads that wait now.")
    before_s = serializers.IntegerField(help_text=_WAIT)
    after_s = serializers.IntegerField()
    low_s = serializers.IntegerField(
        help_text="In nine of ten passes it waits from this many seconds longer"
    )
    high_s = serializers.IntegerField(help_text="to this many.")
    starts_count = serializers.IntegerField(help_text="How many more start at once.")
    evicted_count = serializers.IntegerField(help_text="How many lose what they borrow at once.")
    returned_milli = serializers.DictField(
        child=serializers.IntegerField(), help_text="What those give back, by flavor."
    )
    borrowed = BorrowedOut(many=True, help_text="Of flavors of which it borrows another amount.")


class ImpactOut(serializers.Serializer[Any]):  # Any: rows
    """What would become of what waits and runs now if the request were granted now."""

    request = serializers.UUIDField()
    version = serializers.IntegerField()
    quota_version = serializers.IntegerField()
    nominal_milli = serializers.IntegerField()
    as_of = serializers.DateTimeField()
    passes = serializers.IntegerField(help_text="Of the simulation.")
    unpromised_before_milli = serializers.IntegerField(
        help_text="What the fleet has of the flavor beyond all nominal quotas; negative where more"
        " is promised than there is."
    )
    unpromised_after_milli = serializers.IntegerField()
    cost = ImpactCostOut(allow_null=True, help_text="Null where the flavor has no price.")
    effects = EffectOut(many=True)
    preview = serializers.CharField(
        source="previewed.sign", help_text="For the answer by which it is decided."
    )


class ImpactQuery(StrictSerializer):
    nominal_milli = serializers.IntegerField(
        min_value=0, max_value=MAX_MILLI, required=False, help_text="Instead of what is asked."
    )


class ImpactApi(ApiView):
    @operation(
        "quota_requests_impact",
        tag="quota requests",
        summary="Who would wait longer, and who loses what they borrow, by a grant (approvers)",
        answers={200: ImpactOut},
        query=ImpactQuery,
        problems=(404, 409, 429),
    )
    def get(self, request: Request, id: UUID) -> Response:
        asked = self.query(ImpactQuery)
        found = impacts.preview(
            actor=self.actor,
            request=requests.request(actor=self.actor, id=id),
            nominal_milli=asked.get("nominal_milli"),
            at=self.at,
        )
        return Response(ImpactOut(found).data)
