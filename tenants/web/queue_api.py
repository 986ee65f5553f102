"""Endpoints of the queue of a project or a tenant: holding, draining and opening it; caps; that
a project's quota is still wanted."""

from typing import Any
from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.fields import QueueStateIn
from controlplane.api.schema import operation
from controlplane.api.views import ApiView
from controlplane.kernel.queues import QueueState
from tenants import access
from tenants.services import queues, reviews
from tenants.web import serializers as s

type Out = dict[str, Any]  # Any: JSON values


class QueueStateApi(ApiView):
    @operation(
        "projects_move_queue",
        tag="projects",
        summary="Hold, drain or open a project's queue (its owners, operators)",
        takes=QueueStateIn,
        answers={200: s.ProjectOut},
        problems=(404, 409),
        keyed=True,
    )
    def post(self, request: Request, id: UUID) -> Response:
        def make() -> Out:
            body = self.body(QueueStateIn)
            moved = queues.move(
                actor=self.actor,
                of=access.project_or_404(self.actor, id),
                state=QueueState(body["state"]),
                note=body["note"],
                at=self.at,
            )
            return s.ProjectOut(moved).data

        return self.once(make, status=200)


class ConfirmQuotaApi(ApiView):
    @operation(
        "projects_confirm_quota",
        tag="projects",
        summary="Say that a project's quota is still wanted (who owns or operates a tenant above)",
        answers={200: s.ProjectOut},
        problems=(404,),
        keyed=True,
    )
    def post(self, request: Request, id: UUID) -> Response:
        self.no_body()

        def make() -> Out:
            confirmed = reviews.confirm(
                actor=self.actor, project=access.project_or_404(self.actor, id), at=self.at
            )
            return s.ProjectOut(confirmed).data

        return self.once(make, status=200)


class TenantQueueApi(ApiView):
    @operation(
        "tenants_move_queue",
        tag="tenants",
        summary="Hold, drain or open a tenant with all below it (its owners, operators)",
        takes=QueueStateIn,
        answers={200: s.TenantOut},
        problems=(404, 409),
        keyed=True,
    )
    def post(self, request: Request, id: UUID) -> Response:
        def make() -> Out:
            body = self.body(QueueStateIn)
            moved = queues.move(
                actor=self.actor,
                of=access.tenant_or_404(self.actor, id),
                state=QueueState(body["state"]),
                note=body["note"],
                at=self.at,
            )
            return s.TenantOut(moved).data

        return self.once(make, status=200)


class CapsApi(ApiView):
    @operation(
        "projects_set_caps",
        tag="projects",
        summary="Set all caps on what of a project runs and waits (its owners, operators)",
        takes=s.CapsIn,
        answers={200: s.ProjectOut},
        problems=(404,),
        keyed=True,
    )
    def post(self, request: Request, id: UUID) -> Response:
        def make() -> Out:
            capped = queues.set_caps(
                actor=self.actor,
                project=access.project_or_404(self.actor, id),
                caps=queues.Caps(**self.body(s.CapsIn)),
                at=self.at,
            )
            return s.ProjectOut(capped).data

        return self.once(make, status=200)
