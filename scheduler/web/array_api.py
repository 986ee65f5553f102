"""The endpoints of arrays."""

from collections.abc import Callable
from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.schema import operation
from controlplane.api.views import ApiView
from controlplane.kernel.errors import Invalid
from scheduler.models import WorkloadArray
from scheduler.selectors import arrays as selectors
from scheduler.services import arrays as services
from scheduler.services import releases
from scheduler.web import array_input, serializers, shapes
from scheduler.web.api import moved
from scheduler.web.serializers import parse_array
from tenants import access


class ArraysApi(ApiView):
    @operation(
        "arrays_submit",
        tag="workloads",
        summary="Submit an array: many workloads that differ in their index alone, all or none",
        takes=serializers.ArrayIn,
        answers={201: array_input.ArrayOut},
        problems=(404, 409, 429),
        keyed=True,
    )
    def post(self, request: Request) -> Response:
        def prepare() -> Callable[[], shapes.Out]:
            project_id, spec, array = parse_array(request.data)
            project = access.project_or_404(self.actor, project_id)
            try:
                checked = services.check(
                    actor=self.actor, project=project, spec=spec, array=array, at=self.at
                )
            except Invalid as error:
                raise moved(error, root="") from error

            def store() -> shapes.Out:
                return shape(services.store(checked=checked, array=array, at=self.at))

            return store

        return self.once_prepared(prepare)


class ArrayApi(ApiView):
    @operation(
        "arrays_get",
        tag="workloads",
        summary="An array, with counts by state; GET /workloads?array= lists its elements",
        answers={200: array_input.ArrayOut},
        problems=(404,),
    )
    def get(self, request: Request, id: UUID) -> Response:
        self.query()
        return Response(shape(selectors.array(actor=self.actor, id=id)))


class ArrayCancelApi(ApiView):
    @operation(
        "arrays_cancel",
        tag="workloads",
        summary="Stop all of an array",
        answers={200: array_input.ArrayOut},
        problems=(404, 409),
        keyed=True,
    )
    def post(self, request: Request, id: UUID) -> Response:
        self.no_body()

        def make() -> shapes.Out:
            row = selectors.array(actor=self.actor, id=id)
            return shape(services.cancel(actor=self.actor, array=row, at=self.at))

        return self.once(make, status=200)


class ArrayReleaseApi(ApiView):
    @operation(
        "arrays_release",
        tag="workloads",
        summary="Let an array, and each of its elements, wait no more for ends that can't come",
        answers={200: array_input.ArrayOut},
        problems=(404, 409),
        keyed=True,
    )
    def post(self, request: Request, id: UUID) -> Response:
        self.no_body()

        def make() -> shapes.Out:
            row = selectors.array(actor=self.actor, id=id)
            releases.release(actor=self.actor, work=row, at=self.at)
            return shape(row)

        return self.once(make, status=200)


def shape(row: WorkloadArray) -> shapes.Out:
    """As `array_input.ArrayOut` describes it."""
    return {
        **shapes.array(selectors.sums([row.id])[row.id]),
        "project": row.project_id,
        "submitted_by": row.submitted_by.get_username(),
        "submitted_at": row.submitted_at,
    }
