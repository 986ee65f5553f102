"""Endpoints that name and move tenants and projects."""

from typing import Any
from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.fields import Id, StrictSerializer, Text
from controlplane.api.schema import operation
from controlplane.api.views import ApiView
from tenants import access
from tenants.naming import MAX_NAME
from tenants.services import projects, tenants
from tenants.web import serializers as s

type Out = dict[str, Any]  # Any: JSON values


class NameIn(StrictSerializer):
    name = Text(max_length=MAX_NAME)


class ParentIn(StrictSerializer):
    parent = Id(  # type: ignore[assignment]  # DRF takes it off the class
        allow_null=True, help_text="Null makes it an organisation."
    )


class TenantOfIn(StrictSerializer):
    tenant = Id()


class TenantNameApi(ApiView):
    @operation(
        "tenants_rename",
        tag="tenants",
        summary="Give a tenant another name (its owners)",
        takes=NameIn,
        answers={200: s.TenantOut},
        problems=(404,),
        keyed=True,
    )
    def post(self, request: Request, id: UUID) -> Response:
        def make() -> Out:
            tenant = tenants.rename(
                actor=self.actor,
                tenant=access.tenant_or_404(self.actor, id),
                name=self.body(NameIn)["name"],
                at=self.at,
            )
            return s.TenantOut(tenant).data

        return self.once(make, status=200)


class TenantParentApi(ApiView):
    @operation(
        "tenants_move",
        tag="tenants",
        summary="Hang a tenant, with all below it, under another (owners of both places)",
        takes=ParentIn,
        answers={200: s.TenantOut},
        problems=(404, 409),
        keyed=True,
    )
    def post(self, request: Request, id: UUID) -> Response:
        def make() -> Out:
            parent = self.body(ParentIn)["parent"]
            tenant = tenants.move(
                actor=self.actor,
                tenant=access.tenant_or_404(self.actor, id),
                parent=access.tenant_or_404(self.actor, parent) if parent else None,
                at=self.at,
            )
            return s.TenantOut(tenant).data

        return self.once(make, status=200)


class ProjectNameApi(ApiView):
    @operation(
        "projects_rename",
        tag="projects",
        summary="Give a project another name (its owners)",
        takes=NameIn,
        answers={200: s.ProjectOut},
        problems=(404,),
        keyed=True,
    )
    def post(self, request: Request, id: UUID) -> Response:
        def make() -> Out:
            project = projects.rename(
                actor=self.actor,
                project=access.project_or_404(self.actor, id),
                name=self.body(NameIn)["name"],
                at=self.at,
            )
            return s.ProjectOut(project).data

        return self.once(make, status=200)


class ProjectTenantApi(ApiView):
    @operation(
        "projects_move",
        tag="projects",
        summary="Move a project to another tenant (owners of both)",
        takes=TenantOfIn,
        answers={200: s.ProjectOut},
        problems=(404, 409),
        keyed=True,
    )
    def post(self, request: Request, id: UUID) -> Response:
        def make() -> Out:
            project = projects.move(
                actor=self.actor,
                project=access.project_or_404(self.actor, id),
                tenant=access.tenant_or_404(self.actor, self.body(TenantOfIn)["tenant"]),
                at=self.at,
            )
            return s.ProjectOut(project).data

        return self.once(make, status=200)
