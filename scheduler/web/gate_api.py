"""Endpoints of gates: what waits for whom, deciding it, and the gates that all work of a project
gets. A token for gates alone sees the first two, and nothing else."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.pagination import Keyset
from controlplane.api.schema import operation
from controlplane.api.views import ApiView, many
from scheduler.models import GateState, Workload, WorkloadArray
from scheduler.selectors import gates as selectors
from scheduler.services import gates
from scheduler.web import gate_input as g
from tenants import access
from tenants.gating import GateSpec
from tenants.selectors import gates as of_projects
from tenants.services import gates as standing

type Out = dict[str, Any]  # Any: JSON values


class GatesApi(ApiView):
    pagination_class = Keyset
    of_gates = True

    @operation(
        "gates_list",
        tag="gates",
        summary="Gates that wait for you: your own, and those of projects that you administer",
        answers={200: g.WorkGateOut(many=True)},
    )
    def get(self, request: Request) -> Response:
        self.query()
        rows = selectors.to_decide(actor=self.actor)
        return self.page(rows, order=["id"], shape=many(g.WorkGateOut))


class _DecideApi(ApiView):
    of_gates = True

    def decide[W: (Workload, WorkloadArray)](
        self, rows: QuerySet[W], id: UUID, name: str
    ) -> Response:
        def make() -> Out:
            work = access.get_or_404(rows.select_related("project"), actor=self.actor, id=id)
            body = self.body(g.DecisionIn)
            made = gates.decide(
                actor=self.actor,
                work=work,
                name=name,
                state=GateState(body["state"]),
                note=body["note"],
                at=self.at,
            )
            shown: Out = g.GateOut(made).data
            return shown

        return self.once(make, status=200)


class WorkloadGateApi(_DecideApi):
    @operation(
        "workloads_decide_gate",
        tag="gates",
        summary="Open a gate of a workload, or refuse it, which cancels the workload",
        takes=g.DecisionIn,
        answers={200: g.GateOut},
        problems=(404, 409),
        keyed=True,
    )
    def post(self, request: Request, id: UUID, name: str) -> Response:
        return self.decide(Workload.objects.all(), id, name)


class ArrayGateApi(_DecideApi):
    @operation(
        "arrays_decide_gate",
        tag="gates",
        summary="Open a gate of an array, for all of its elements, or refuse it",
        takes=g.DecisionIn,
        answers={200: g.GateOut},
        problems=(404, 409),
        keyed=True,
    )
    def post(self, request: Request, id: UUID, name: str) -> Response:
        return self.decide(WorkloadArray.objects.all(), id, name)


class StandingGatesApi(ApiView):
    pagination_class = Keyset

    @operation(
        "projects_list_gates",
        tag="gates",
        summary="The gates that all work of a project gets",
        answers={200: g.StandingGateOut(many=True)},
        problems=(404,),
    )
    def get(self, request: Request, id: UUID) -> Response:
        self.query()
        project = access.project_or_404(self.actor, id)
        rows = of_projects.standing(actor=self.actor, project=project)
        return self.page(rows, order=["id"], shape=many(g.StandingGateOut))

    @operation(
        "projects_add_gate",
        tag="gates",
        summary="Put a gate before all that is submitted from now on (operators)",
        takes=g.GateIn,
        answers={201: g.StandingGateOut},
        problems=(404, 409),
        keyed=True,
    )
    def post(self, request: Request, id: UUID) -> Response:
        def make() -> Out:
            made = standing.add(
                actor=self.actor,
                project=access.project_or_404(self.actor, id),
                gate=GateSpec(**self.body(g.GateIn)),
                at=self.at,
            )
            shown: Out = g.StandingGateOut(made).data
            return shown

        return self.once(make)


class StandingGateApi(ApiView):
    @operation(
        "projects_remove_gate",
        tag="gates",
        summary="Take a gate away from what is submitted from now on (operators)",
        answers={204: None},
        problems=(404,),
    )
    def delete(self, request: Request, id: UUID, name: str) -> Response:
        project = access.project_or_404(self.actor, id)
        standing.remove(actor=self.actor, project=project, name=name, at=self.at)
        return Response(status=204)
