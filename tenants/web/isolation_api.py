"""The endpoint of how far a project's work has to be kept from its neighbours."""

from typing import Any
from uuid import UUID

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from clusters.models import Isolation
from controlplane.api.fields import StrictSerializer
from controlplane.api.schema import operation
from controlplane.api.views import ApiView
from tenants import access
from tenants.services import isolation
from tenants.web import serializers as s

type Out = dict[str, Any]  # Any: JSON values


class LeastIsolationIn(StrictSerializer):
    least_isolation = serializers.ChoiceField(
        choices=Isolation.values,
        help_text="none accepts every share, memory those with memory limits, hardware none.",
    )


class ProjectIsolationApi(ApiView):
    @operation(
        "projects_set_least_isolation",
        tag="projects",
        summary="Set how far its work has to be kept from neighbours on a GPU (owners, operators)",
        takes=LeastIsolationIn,
        answers={200: s.ProjectOut},
        problems=(404,),
        keyed=True,
    )
    def post(self, request: Request, id: UUID) -> Response:
        def make() -> Out:
            project = isolation.set_for_project(
                actor=self.actor,
                project=access.project_or_404(self.actor, id),
                least=Isolation(self.body(LeastIsolationIn)["least_isolation"]),
                at=self.at,
            )
            return s.ProjectOut(project).data

        return self.once(make, status=200)
