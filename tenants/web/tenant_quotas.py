"""Endpoints about what tenants hold beside their projects' own quotas."""

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.fields import Id, StrictSerializer, Text
from controlplane.api.pagination import Keyset
from controlplane.api.schema import operation
from controlplane.api.views import ApiView, many
from scheduler.selectors import guarantees
from tenants import access
from tenants.selectors import quotas as selectors
from tenants.services import quotas
from tenants.web.amounts import ENFORCED, AmountsIn, amounts
from tenants.web.quota_api import Out, flavor_named

_WARNINGS = "What is promised beyond what there is, a sentence each."


class TenantQuotaOut(serializers.Serializer[Any]):  # Any: plain rows
    """What a tenant has beside its projects' and departments' own, for all of them together, in
    thousandths of the flavor. Its limits bound what they borrow from outside, and lend; null is no
    limit."""

    id = serializers.UUIDField()
    tenant = serializers.UUIDField(source="tenant_id")
    flavor = serializers.CharField(source="flavor.name")
    nominal_milli = serializers.IntegerField()
    borrowing_limit_milli = serializers.IntegerField(allow_null=True)
    lending_limit_milli = serializers.IntegerField(allow_null=True)
    version = serializers.IntegerField()
    enforce_at = serializers.DateTimeField(allow_null=True, help_text=ENFORCED)


class TenantQuotaSetOut(TenantQuotaOut):
    warnings = serializers.ListField(child=serializers.CharField(), help_text=_WARNINGS)


class TenantQuotaIn(AmountsIn):
    tenant = Id()


class TenantQuotasQuery(StrictSerializer):
    tenant = Id(required=False)
    flavor = Text(required=False, max_length=63)


class TenantQuotasApi(ApiView):
    pagination_class = Keyset

    @operation(
        "tenant_quotas_list",
        tag="quotas",
        summary="Quotas of your tenants, beside those of their projects",
        answers={200: TenantQuotaOut(many=True)},
        query=TenantQuotasQuery,
        problems=(404,),
    )
    def get(self, request: Request) -> Response:
        asked = self.query(TenantQuotasQuery)
        return self.page(
            selectors.tenant_quotas(
                actor=self.actor, tenant_id=asked.get("tenant"), flavor=asked.get("flavor")
            ),
            order=["id"],
            shape=many(TenantQuotaOut),
        )

    @operation(
        "tenant_quotas_set",
        tag="quotas",
        summary="Set a tenant's quota of a flavor (fleet-wide operators)",
        takes=TenantQuotaIn,
        answers={200: TenantQuotaSetOut},
        problems=(404, 409),
        keyed=True,
    )
    def post(self, request: Request) -> Response:
        def make() -> Out:
            body = self.body(TenantQuotaIn)
            flavor = flavor_named(body["flavor"])
            quota = quotas.set_tenant_quota(
                actor=self.actor,
                tenant=access.tenant_or_404(self.actor, body["tenant"]),
                flavor=flavor,
                amounts=amounts(body, at=self.at),
                version=body["version"],
                at=self.at,
            )
            warned = list(guarantees.warnings(flavor=flavor, owner=quota.tenant))
            return {**TenantQuotaOut(quota).data, "warnings": warned}

        return self.once(make, status=200)
