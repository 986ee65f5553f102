"""Endpoints about service accounts of a tenant or a project, for who owns it."""

from typing import Any
from uuid import UUID

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.fields import Id, StrictSerializer, Text
from controlplane.api.pagination import Keyset
from controlplane.api.schema import operation
from controlplane.api.views import ApiView, many
from tenants import access
from tenants.models import Role
from tenants.selectors import service_accounts as selectors
from tenants.services import service_accounts
from tenants.web.api import issued, not_kept
from tenants.web.named_place import ONE_OF_TWO, one_named
from tenants.web.serializers import Rows, TokenIn, TokenIssuedOut, TokenOut

type Out = dict[str, Any]  # Any: JSON values

_ROLES = [role.value for role in access.SERVICE_ROLES]


class ServiceAccountOut(serializers.Serializer[Rows]):
    """`tenant` or `project` is whose it is. Its roles are members of that place."""

    id = serializers.UUIDField()
    username = serializers.CharField(help_text="By which the audit and its work name it.")
    tenant = serializers.UUIDField(allow_null=True, source="service_tenant_id")
    project = serializers.UUIDField(allow_null=True, source="service_project_id")
    is_active = serializers.BooleanField(help_text="False once it is closed, for good.")
    made_at = serializers.DateTimeField(source="date_joined")


class ServiceAccountIn(StrictSerializer):
    """`project` or `tenant`, one of the two."""

    name = Text(max_length=40, help_text="1 to 40 of a-z, 0-9 and -.")
    role = serializers.ChoiceField(choices=_ROLES)
    project = Id(required=False)
    tenant = Id(required=False)


class ServiceAccountsQuery(StrictSerializer):
    project = Id(required=False)
    tenant = Id(required=False, help_text=ONE_OF_TWO)


class ServiceAccountsApi(ApiView):
    session_only = True
    pagination_class = Keyset

    @operation(
        "service_accounts_list",
        tag="service-accounts",
        summary="Service accounts of a project or a tenant that you own (session only)",
        answers={200: ServiceAccountOut(many=True)},
        query=ServiceAccountsQuery,
        problems=(404,),
    )
    def get(self, request: Request) -> Response:
        place = one_named(self.actor, self.query(ServiceAccountsQuery), root="?")
        rows = selectors.at_place(actor=self.actor, place=place, at=self.at)
        return self.page(rows, order=["id"], shape=many(ServiceAccountOut))

    @operation(
        "service_accounts_make",
        tag="service-accounts",
        summary="Make one with a role at its place (session only)",
        takes=ServiceAccountIn,
        answers={201: ServiceAccountOut},
        problems=(404, 409),
        keyed=True,
    )
    def post(self, request: Request) -> Response:
        def make() -> Out:
            body = self.body(ServiceAccountIn)
            made = service_accounts.make(
                actor=self.actor,
                place=one_named(self.actor, body),
                name=body["name"],
                role=Role(body["role"]),
                at=self.at,
            )
            return ServiceAccountOut(made).data

        return self.once(make)


class ServiceAccountApi(ApiView):
    session_only = True

    @operation(
        "service_accounts_get",
        tag="service-accounts",
        summary="One of them (session only)",
        answers={200: ServiceAccountOut},
        problems=(404,),
    )
    def get(self, request: Request, id: UUID) -> Response:
        self.query()
        return Response(ServiceAccountOut(selectors.one(actor=self.actor, id=id)).data)

    @operation(
        "service_accounts_close",
        tag="service-accounts",
        summary="Close it for good, with all its tokens; its work runs on (session only)",
        answers={204: None},
        problems=(404,),
    )
    def delete(self, request: Request, id: UUID) -> Response:
        account = selectors.one(actor=self.actor, id=id)
        service_accounts.close(actor=self.actor, account=account, at=self.at)
        return Response(status=204)


class ServiceAccountTokensApi(ApiView):
    session_only = True
    pagination_class = Keyset

    @operation(
        "service_accounts_tokens",
        tag="service-accounts",
        summary="Tokens of one, never their secrets (session only)",
        answers={200: TokenOut(many=True)},
        problems=(404,),
    )
    def get(self, request: Request, id: UUID) -> Response:
        self.query()
        account = selectors.one(actor=self.actor, id=id)
        return self.page(selectors.tokens(account=account), order=["-id"], shape=many(TokenOut))

    @operation(
        "service_accounts_issue",
        tag="service-accounts",
        summary="Make a token of one; DELETE /tokens/{id} ends it (session only)",
        takes=TokenIn,
        answers={201: TokenIssuedOut},
        problems=(404,),
    )
    def post(self, request: Request, id: UUID) -> Response:
        not_kept(request)
        return issued(self, account=selectors.one(actor=self.actor, id=id))
