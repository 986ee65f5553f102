"""The endpoint of which flavors a project prefers."""

from typing import Any
from uuid import UUID

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.fields import StrictSerializer, Text
from controlplane.api.schema import operation
from controlplane.api.views import ApiView
from tenants import access
from tenants.models import MAX_PREFERRED
from tenants.services import preferred
from tenants.web import serializers as s

type Out = dict[str, Any]  # Any: JSON values


class PreferredFlavorsIn(StrictSerializer):
    """All of them, in order: what was preferred before is not any more."""

    preferred_flavors = serializers.ListField(
        child=Text(max_length=63), max_length=MAX_PREFERRED, help_text=s.PREFERRED
    )


class ProjectPreferredApi(ApiView):
    @operation(
        "projects_set_preferred_flavors",
        tag="projects",
        summary="Set which flavors its work tries first, in order (owners, operators)",
        takes=PreferredFlavorsIn,
        answers={200: s.PreferredFlavorsOut},
        problems=(404,),
        keyed=True,
    )
    def post(self, request: Request, id: UUID) -> Response:
        def make() -> Out:
            names = preferred.set_for_project(
                actor=self.actor,
                project=access.project_or_404(self.actor, id),
                names=self.body(PreferredFlavorsIn)["preferred_flavors"],
                at=self.at,
            )
            return s.PreferredFlavorsOut({"preferred_flavors": names}).data

        return self.once(make, status=200)
