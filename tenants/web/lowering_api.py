"""Endpoints that say who would be preempted if a quota were enforced: nothing is stored."""

from collections.abc import Iterable
from datetime import datetime

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.schema import operation
from controlplane.api.views import ApiView
from scheduler.core.units import ONE_MILLI
from scheduler.services import lowering
from scheduler.services.lowering import Loss, Preview
from tenants import access
from tenants.web.amounts import amounts
from tenants.web.quota_api import Out, flavor_named
from tenants.web.serializers import QuotaIn
from tenants.web.tenant_quotas import TenantQuotaIn


class VictimOut(serializers.Serializer[Loss]):
    workload = serializers.UUIDField()
    name = serializers.CharField()
    project = serializers.CharField(help_text="Its name.")
    whole = serializers.BooleanField(help_text="False: it runs on with fewer pods.")
    pods_count = serializers.IntegerField(help_text="Pods that end.")
    lost_s = serializers.IntegerField(
        help_text="Of its work, in seconds of a GPU: a slice counts as the part that it is of one."
    )
    preemptible = serializers.BooleanField(help_text="Whether it may be stopped for others, too.")


class LoweringOut(serializers.Serializer[dict[str, object]]):
    """Were it enforced now. It is worked out anew when it is."""

    over_milli = serializers.IntegerField(help_text="Held beyond nominal + borrowing limit.")
    stays_milli = serializers.IntegerField(
        help_text="What of that may not be preempted: it ends by itself."
    )
    lost_s = serializers.IntegerField(help_text="In all.")
    victims = VictimOut(many=True, help_text="In the order in which they would go.")
    enforce_at = serializers.DateTimeField(
        allow_null=True, help_text="From when on; null is never."
    )
    warnings = serializers.ListField(
        child=serializers.CharField(),
        help_text="What would be promised beyond what there is, a sentence each.",
    )


class QuotaDryRunApi(ApiView):
    @operation(
        "quotas_dry_run",
        tag="quotas",
        summary="Who would be preempted if a project's quota became this (operators); nothing is"
        " stored",
        takes=QuotaIn,
        answers={200: LoweringOut},
        problems=(404, 409, 429),
    )
    def post(self, request: Request) -> Response:
        body = self.body(QuotaIn)
        wanted = amounts(body, at=self.at)
        found = lowering.preview(
            actor=self.actor,
            owner=access.project_or_404(self.actor, body["project"]),
            flavor=flavor_named(body["flavor"]),
            amounts=wanted,
            at=self.at,
            version=body["version"],
        )
        return Response(LoweringOut(shown(found, enforce_at=wanted.enforce_at)).data)


class TenantQuotaDryRunApi(ApiView):
    @operation(
        "tenant_quotas_dry_run",
        tag="quotas",
        summary="Who would be preempted if a tenant's quota became this (fleet-wide operators);"
        " nothing is stored",
        takes=TenantQuotaIn,
        answers={200: LoweringOut},
        problems=(404, 409, 429),
    )
    def post(self, request: Request) -> Response:
        body = self.body(TenantQuotaIn)
        wanted = amounts(body, at=self.at)
        found = lowering.preview(
            actor=self.actor,
            owner=access.tenant_or_404(self.actor, body["tenant"]),
            flavor=flavor_named(body["flavor"]),
            amounts=wanted,
            at=self.at,
            version=body["version"],
        )
        return Response(LoweringOut(shown(found, enforce_at=wanted.enforce_at)).data)


def shown(found: Preview, *, enforce_at: datetime | None) -> Out:
    """As LoweringOut has it."""
    return {
        "over_milli": found.over_milli,
        "stays_milli": found.stays_milli,
        "lost_s": seconds(found.lost_milli_s),
        "victims": victims_shown(found.losses),
        "enforce_at": enforce_at,
        "warnings": list(found.warnings),
    }


def victims_shown(losses: Iterable[Loss]) -> list[Out]:
    """As VictimOut has them."""
    return [
        {
            "workload": loss.workload,
            "name": loss.name,
            "project": loss.project,
            "whole": loss.whole,
            "pods_count": loss.pods_count,
            "lost_s": seconds(loss.lost_milli_s),
            "preemptible": loss.preemptible,
        }
        for loss in losses
    ]


def seconds(milli_s: int) -> int:
    """Rounded up."""
    return -(-milli_s // ONE_MILLI)
