"""Endpoints of how long work runs before it may be evicted."""

from typing import Any
from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.schema import operation
from controlplane.api.views import ApiView
from tenants import access
from tenants.services import run_times
from tenants.web import serializers as s

type Out = dict[str, Any]  # Any: JSON values


class ProjectRunTimeApi(ApiView):
    @operation(
        "projects_set_min_run_time",
        tag="projects",
        summary="Set how long a project's work runs before it may be evicted (operators)",
        takes=s.MinRunTimeIn,
        answers={200: s.ProjectOut},
        problems=(404,),
        keyed=True,
    )
    def post(self, request: Request, id: UUID) -> Response:
        def make() -> Out:
            project = run_times.set_for_project(
                actor=self.actor,
                project=access.project_or_404(self.actor, id),
                seconds=self.body(s.MinRunTimeIn)["min_run_time_s"],
                at=self.at,
            )
            return s.ProjectOut(project).data

        return self.once(make, status=200)


class TenantRunTimeApi(ApiView):
    @operation(
        "tenants_set_min_run_time",
        tag="tenants",
        summary="Set the same for those of a tenant's projects that have none (operators)",
        takes=s.MinRunTimeIn,
        answers={200: s.TenantOut},
        problems=(404,),
        keyed=True,
    )
    def post(self, request: Request, id: UUID) -> Response:
        def make() -> Out:
            tenant = run_times.set_for_tenant(
                actor=self.actor,
                tenant=access.tenant_or_404(self.actor, id),
                seconds=self.body(s.MinRunTimeIn)["min_run_time_s"],
                at=self.at,
            )
            return s.TenantOut(tenant).data

        return self.once(make, status=200)
