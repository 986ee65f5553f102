"""Endpoints of weights in fair share."""

from typing import Any
from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.schema import operation
from controlplane.api.views import ApiView
from tenants import access
from tenants.services import weights
from tenants.web import serializers as s

type Out = dict[str, Any]  # Any: JSON values


class ProjectWeightApi(ApiView):
    @operation(
        "projects_set_weight",
        tag="projects",
        summary="Set a project's part in fair share among those of its tenant (operators)",
        takes=s.WeightIn,
        answers={200: s.ProjectOut},
        problems=(404,),
        keyed=True,
    )
    def post(self, request: Request, id: UUID) -> Response:
        def make() -> Out:
            project = weights.set_for_project(
                actor=self.actor,
                project=access.project_or_404(self.actor, id),
                weight=self.body(s.WeightIn)["weight"],
                at=self.at,
            )
            return s.ProjectOut(project).data

        return self.once(make, status=200)


class TenantWeightApi(ApiView):
    @operation(
        "tenants_set_weight",
        tag="tenants",
        summary="Set a tenant's part in fair share among its siblings (fleet-wide operators)",
        takes=s.WeightIn,
        answers={200: s.TenantOut},
        problems=(404,),
        keyed=True,
    )
    def post(self, request: Request, id: UUID) -> Response:
        def make() -> Out:
            tenant = weights.set_for_tenant(
                actor=self.actor,
                tenant=access.tenant_or_404(self.actor, id),
                weight=self.body(s.WeightIn)["weight"],
                at=self.at,
            )
            return s.TenantOut(tenant).data

        return self.once(make, status=200)
