"""Endpoints of the rules by which requests for quota take more than one agreement."""

from typing import Any
from uuid import UUID

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.fields import Id, Integer, StrictSerializer
from controlplane.api.pagination import Keyset
from controlplane.api.schema import operation
from controlplane.api.views import ApiView, many
from tenants import access
from tenants.approval import Level
from tenants.models import MAX_AFTER_DAYS
from tenants.selectors import approval_rules as selectors
from tenants.services import approval_rules
from tenants.services.quotas import MAX_MILLI

type Out = dict[str, Any]  # Any: JSON values

LEVELS = [Level.TENANT.value, Level.FLEET.value]
_SIZE = "In thousandths of a device: what the project would have of the flavor in all."
_WAITS = "A step below that nobody answers for so many days goes up to them; null never."


class ApprovalRuleOut(serializers.Serializer[Any]):  # Any: rows
    """From a size on somebody of that level agrees too."""

    id = serializers.UUIDField()
    tenant = serializers.UUIDField(
        source="tenant_id", allow_null=True, help_text="It and what is below; null is everywhere."
    )
    level = serializers.ChoiceField(
        choices=LEVELS,
        help_text="An approver of the tenant or above, everywhere the project's own; or of the"
        " whole fleet.",
    )
    from_milli = serializers.IntegerField(help_text=_SIZE)
    after_days = serializers.IntegerField(allow_null=True, help_text=_WAITS)


class ApprovalRuleIn(StrictSerializer):
    """The one of that tenant and level, which is made or changed."""

    tenant = Id(allow_null=True, help_text="Null is everywhere.")
    level = serializers.ChoiceField(choices=LEVELS)
    from_milli = Integer(high=MAX_MILLI, help_text=_SIZE)
    after_days = Integer(
        low=1, high=MAX_AFTER_DAYS, required=False, default=None, allow_null=True, help_text=_WAITS
    )


class ApprovalRulesApi(ApiView):
    pagination_class = Keyset

    @operation(
        "approval_rules_list",
        tag="quota requests",
        summary="From which size on requests take more than one agreement",
        answers={200: ApprovalRuleOut(many=True)},
    )
    def get(self, request: Request) -> Response:
        self.query()
        return self.page(
            selectors.rules(actor=self.actor), order=["id"], shape=many(ApprovalRuleOut)
        )

    @operation(
        "approval_rules_set",
        tag="quota requests",
        summary="Set a rule (operators everywhere, owners for their tenant)",
        takes=ApprovalRuleIn,
        answers={200: ApprovalRuleOut},
        problems=(404,),
        keyed=True,
    )
    def post(self, request: Request) -> Response:
        def make() -> Out:
            body = self.body(ApprovalRuleIn)
            tenant = body["tenant"]
            rule = approval_rules.set_rule(
                actor=self.actor,
                tenant=access.tenant_or_404(self.actor, tenant) if tenant else None,
                level=Level(body["level"]),
                from_milli=body["from_milli"],
                after_days=body["after_days"],
                at=self.at,
            )
            return ApprovalRuleOut(rule).data

        return self.once(make, status=200)


class ApprovalRuleApi(ApiView):
    @operation(
        "approval_rules_remove",
        tag="quota requests",
        summary="Remove a rule, for open requests too (operators, or the tenant's owners)",
        answers={204: None},
        problems=(404,),
    )
    def delete(self, request: Request, id: UUID) -> Response:
        rule = selectors.rule(actor=self.actor, id=id)
        approval_rules.remove(actor=self.actor, rule=rule, at=self.at)
        return Response(status=204)
