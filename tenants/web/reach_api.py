"""Endpoints about live tokens that reach into a place, for who owns it."""

from uuid import UUID

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.fields import Id, StrictSerializer
from controlplane.api.pagination import Keyset
from controlplane.api.schema import operation
from controlplane.api.views import ApiView, many
from tenants.selectors import reach
from tenants.services import tokens
from tenants.web.named_place import place_named
from tenants.web.serializers import TokenOut


class ReachingTokenOut(TokenOut):
    user = serializers.CharField(source="user.username", help_text="Whose it is.")
    made_by = serializers.CharField(
        source="made_by.username", allow_null=True, default=None, help_text="Null: who owns it."
    )


class ReachQuery(StrictSerializer):
    """A project or a tenant; left out, the whole fleet."""

    project = Id(required=False)
    tenant = Id(required=False)


class ReachingTokensApi(ApiView):
    session_only = True
    pagination_class = Keyset

    @operation(
        "reaching_tokens_list",
        tag="tokens",
        summary="Live tokens of anybody that reach into a place that you own (session only)",
        answers={200: ReachingTokenOut(many=True)},
        query=ReachQuery,
        problems=(404,),
    )
    def get(self, request: Request) -> Response:
        place = place_named(self.actor, self.query(ReachQuery), root="?")
        rows = reach.tokens(actor=self.actor, place=place, at=self.at)
        return self.page(rows, order=["-id"], shape=many(ReachingTokenOut))


class ReachingTokenApi(ApiView):
    session_only = True

    @operation(
        "reaching_tokens_revoke",
        tag="tokens",
        summary="End one at once, elsewhere too; whose it is sees by whom (session only)",
        answers={204: None},
        query=ReachQuery,
        problems=(404,),
    )
    def delete(self, request: Request, id: UUID) -> Response:
        place = place_named(self.actor, self.query(ReachQuery), root="?")
        found = reach.token(actor=self.actor, place=place, id=id, at=self.at)
        tokens.revoke_in(actor=self.actor, token=found, place=place, at=self.at)
        return Response(status=204)
