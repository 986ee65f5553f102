"""Endpoints that say why, and what would be: nothing is stored."""

from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.schema import operation
from controlplane.api.views import ApiView
from controlplane.kernel.errors import Invalid
from scheduler.selectors import workloads
from scheduler.services import comparing, explaining
from scheduler.web import comparisons, explanations, serializers
from scheduler.web.api import moved
from tenants import access


class DryRunApi(ApiView):
    @operation(
        "workloads_dry_run",
        tag="workloads",
        summary="What would become of a workload, or of an array's, if it were submitted now;"
        " nothing is stored",
        takes=serializers.DryRunIn,
        answers={200: explanations.DryRunOut},
        problems=(404, 429),
    )
    def post(self, request: Request) -> Response:
        project_id, spec, array = serializers.parse_dry_run(request.data)
        project = access.project_or_404(self.actor, project_id)
        try:
            found = explaining.dry_run(
                actor=self.actor, project=project, spec=spec, array=array, at=self.at
            )
        except Invalid as error:
            raise moved(error, root="") from error
        return Response(explanations.dry_run(found, of_element=array is not None))


class ModesApi(ApiView):
    @operation(
        "workloads_modes",
        tag="workloads",
        summary="What each mode would cost a workload, or an element of an array, if it were"
        " submitted now; nothing is stored",
        takes=serializers.DryRunIn,
        answers={200: comparisons.ModesOut},
        problems=(404, 429),
    )
    def post(self, request: Request) -> Response:
        project_id, spec, array = serializers.parse_dry_run(request.data)
        project = access.project_or_404(self.actor, project_id)
        try:
            found = comparing.compare(
                actor=self.actor, project=project, spec=spec, array=array, at=self.at
            )
        except Invalid as error:
            raise moved(error, root="") from error
        return Response(comparisons.comparison(found))


class ExplanationApi(ApiView):
    @operation(
        "workloads_explanation",
        tag="workloads",
        summary="Why a workload waits: check by check, and what would let it start",
        answers={200: explanations.ExplanationOut},
        problems=(404, 409, 429),
    )
    def get(self, request: Request, id: UUID) -> Response:
        self.query()
        row = workloads.seen(actor=self.actor, id=id)
        found = explaining.of_workload(actor=self.actor, workload=row, at=self.at)
        return Response(explanations.explanation(found))
