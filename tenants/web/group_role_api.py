"""Endpoints about which groups of sign-in providers have which roles."""

from typing import Any
from uuid import UUID

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.fields import Id, StrictSerializer, Text
from controlplane.api.pagination import Keyset
from controlplane.api.schema import operation
from controlplane.api.views import ApiView, many
from tenants.models import MAX_GROUP, Role
from tenants.selectors import group_roles as selectors
from tenants.services import group_roles
from tenants.web.named_place import ONE_OF_TWO, place_named
from tenants.web.serializers import ROLES, Rows

type Out = dict[str, Any]  # Any: JSON values


class GroupRoleOut(serializers.Serializer[Rows]):
    """`tenant` and `project` both null: a role in the whole fleet."""

    id = serializers.UUIDField()
    provider = serializers.CharField()
    group = serializers.CharField()
    role = serializers.ChoiceField(choices=ROLES)
    tenant = serializers.UUIDField(allow_null=True, source="tenant_id")
    project = serializers.UUIDField(allow_null=True, source="project_id")
    made_by = serializers.CharField(source="made_by.username")
    made_at = serializers.DateTimeField()


class GroupRoleIn(StrictSerializer):
    """`project` or `tenant`, not both; a `tenant` of null is the whole fleet."""

    provider = Text(max_length=20, help_text="As BERTH_OIDC or BERTH_SAML calls it.")
    group = Text(max_length=MAX_GROUP, help_text="As the provider calls it.")
    role = serializers.ChoiceField(choices=ROLES)
    project = Id(required=False)
    tenant = Id(required=False, allow_null=True, help_text="Null is the whole fleet.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:  # Any: validated input
        if ("project" in attrs) == ("tenant" in attrs):
            raise serializers.ValidationError(ONE_OF_TWO)
        return attrs


class GroupRolesApi(ApiView):
    session_only = True
    pagination_class = Keyset

    @operation(
        "group_roles_list",
        tag="members",
        summary="Which groups have which roles, where you say who has one",
        answers={200: GroupRoleOut(many=True)},
    )
    def get(self, request: Request) -> Response:
        self.query()
        return self.page(
            selectors.group_roles(actor=self.actor), order=["id"], shape=many(GroupRoleOut)
        )

    @operation(
        "group_roles_add",
        tag="members",
        summary="Give a group's people a role from their next sign-in on (session only)",
        takes=GroupRoleIn,
        answers={201: GroupRoleOut},
        problems=(404,),
        keyed=True,
    )
    def post(self, request: Request) -> Response:
        def make() -> Out:
            body = self.body(GroupRoleIn)
            made = group_roles.add(
                actor=self.actor,
                provider=body["provider"],
                group=body["group"],
                role=Role(body["role"]),
                place=place_named(self.actor, body),
                at=self.at,
            )
            return GroupRoleOut(made).data

        return self.once(make)


class GroupRoleApi(ApiView):
    session_only = True

    @operation(
        "group_roles_remove",
        tag="members",
        summary="Take a role from a group, and at once from its people (session only)",
        answers={204: None},
        problems=(404,),
    )
    def delete(self, request: Request, id: UUID) -> Response:
        found = selectors.group_role(actor=self.actor, id=id)
        group_roles.remove(actor=self.actor, group_role=found, at=self.at)
        return Response(status=204)
