"""Endpoints of how long work may leave its devices unused before it is freed."""

from typing import Any
from uuid import UUID

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.fields import Integer, StrictSerializer
from controlplane.api.schema import operation
from controlplane.api.views import ApiView
from tenants import access
from tenants.models import MAX_IDLE_TIMEOUT_S
from tenants.selectors.idle_limits import IdleLimit
from tenants.services import idle_limits
from tenants.web import serializers as s

type Out = dict[str, Any]  # Any: JSON values


class IdleLimitIn(StrictSerializer):
    """Both, or null for both, which says nothing."""

    idle_timeout_s = Integer(
        low=0, high=MAX_IDLE_TIMEOUT_S, allow_null=True, help_text="0 is never."
    )
    idle_warning_s = Integer(
        low=0,
        high=MAX_IDLE_TIMEOUT_S,
        allow_null=True,
        help_text="How long before it is told; no longer than the time-out.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:  # Any: validated input
        missing = [name for name, said in attrs.items() if said is None]
        if len(missing) == 1:
            raise serializers.ValidationError({missing[0]: "Say both or neither of the two."})
        return attrs


class ProjectIdleLimitApi(ApiView):
    @operation(
        "projects_set_idle_limit",
        tag="projects",
        summary="Set how long a project's work may be idle before it is freed (operators)",
        takes=IdleLimitIn,
        answers={200: s.ProjectOut},
        problems=(404,),
        keyed=True,
    )
    def post(self, request: Request, id: UUID) -> Response:
        def make() -> Out:
            project = idle_limits.set_for_project(
                actor=self.actor,
                project=access.project_or_404(self.actor, id),
                limit=_limit(self.body(IdleLimitIn)),
                at=self.at,
            )
            return s.ProjectOut(project).data

        return self.once(make, status=200)


class TenantIdleLimitApi(ApiView):
    @operation(
        "tenants_set_idle_limit",
        tag="tenants",
        summary="Set the same for those of a tenant's projects that say nothing (operators)",
        takes=IdleLimitIn,
        answers={200: s.TenantOut},
        problems=(404,),
        keyed=True,
    )
    def post(self, request: Request, id: UUID) -> Response:
        def make() -> Out:
            tenant = idle_limits.set_for_tenant(
                actor=self.actor,
                tenant=access.tenant_or_404(self.actor, id),
                limit=_limit(self.body(IdleLimitIn)),
                at=self.at,
            )
            return s.TenantOut(tenant).data

        return self.once(make, status=200)


def _limit(body: dict[str, int | None]) -> IdleLimit | None:
    timeout_s, warning_s = body["idle_timeout_s"], body["idle_warning_s"]
    return None if timeout_s is None or warning_s is None else IdleLimit(timeout_s, warning_s)
