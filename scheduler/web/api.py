"""The scheduler's endpoints. Each reads its input, calls one service or selector, shapes the
answer."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.pagination import Keyset
from controlplane.api.schema import operation
from controlplane.api.views import ApiView
from controlplane.kernel.errors import Invalid, Problem
from scheduler.selectors import arrays, idleness, queues, standing
from scheduler.selectors import workloads as selectors
from scheduler.selectors.dispatch import open_dispatch
from scheduler.services import releases
from scheduler.services import workloads as services
from scheduler.services.specs import WorkloadSpec
from scheduler.web import outputs, serializers, shapes
from scheduler.web.serializers import parse_batch, parse_submission, refusal
from tenants import access


def submission(
    view: ApiView, project_id: UUID, specs: list[WorkloadSpec], *, root: str
) -> Callable[[], list[shapes.Out]]:
    """Check the workloads, and what stores them then; the service's pointers (/<index>/…) are
    moved below `root`."""
    project = access.project_or_404(view.actor, project_id)
    try:
        checked = services.check(actor=view.actor, project=project, specs=specs, at=view.at)
    except Invalid as error:
        raise moved(error, root=root) from error
    return lambda: shapes.submitted(services.store(checked=checked, at=view.at))


class WorkloadsApi(ApiView):
    pagination_class = Keyset

    @operation(
        "workloads_list",
        tag="workloads",
        summary="Workloads of your projects, the newest first",
        answers={200: outputs.WorkloadOut(many=True)},
        query=serializers.WorkloadsQuery,
        problems=(404,),
    )
    def get(self, request: Request) -> Response:
        asked = self.query(serializers.WorkloadsQuery)
        filters = selectors.WorkloadFilters(
            project_id=asked.get("project"),
            states=asked.get("state"),
            name=asked.get("name"),
            since=asked.get("since"),
            until=asked.get("until"),
            submitted_by_id=self.actor.user.id if asked.get("mine") == "true" else None,
            array_id=asked.get("array"),
        )
        return self.page(
            selectors.workloads(actor=self.actor, filters=filters),
            order=["-id"],
            shape=shapes.workloads,
        )

    @operation(
        "workloads_submit",
        tag="workloads",
        summary="Submit a workload",
        takes=serializers.WorkloadIn,
        answers={201: outputs.SubmittedOut},
        problems=(404, 409, 429),
        keyed=True,
    )
    def post(self, request: Request) -> Response:
        def prepare() -> Callable[[], shapes.Out]:
            project_id, spec = parse_submission(request.data)
            store = submission(self, project_id, [spec], root="")
            return lambda: store()[0]

        return self.once_prepared(prepare)


class BatchApi(ApiView):
    @operation(
        "workloads_submit_batch",
        tag="workloads",
        summary="Submit up to 500 workloads, all or none",
        takes=serializers.BatchIn,
        answers={201: outputs.BatchOut},
        problems=(404, 409, 429),
        keyed=True,
    )
    def post(self, request: Request) -> Response:
        def prepare() -> Callable[[], dict[str, Any]]:  # Any: JSON values
            project_id, specs = parse_batch(request.data)
            store = submission(self, project_id, specs, root="/workloads")
            return lambda: {"items": store()}

        return self.once_prepared(prepare)


def moved(error: Invalid, *, root: str) -> Invalid:
    """The same refusal, told in terms of the body: without a root the index of the one spec
    goes."""
    found = []
    for problem in error.problems:
        pointer = problem.pointer
        if pointer:
            pointer = f"{root}{pointer}" if root else f"/{pointer.lstrip('/').partition('/')[2]}"
        found.append(Problem(pointer=pointer, code=problem.code, message=problem.message))
    refused = refusal(found)
    refused.code = error.code
    refused.extra = error.extra
    return refused


class WorkloadApi(ApiView):
    @operation(
        "workloads_get",
        tag="workloads",
        summary="One workload with its pod sets and placements",
        answers={200: outputs.WorkloadDetailOut},
        problems=(404,),
    )
    def get(self, request: Request, id: UUID) -> Response:
        self.query()
        row = selectors.workload(actor=self.actor, id=id)
        attempts = selectors.attempts(workload=row)
        placements = selectors.placements(actor=self.actor, workload_id=row.id)
        dispatch = open_dispatch(workload_id=row.id)
        stands = standing.of_waiting(workload=row, at=self.at)
        ties = arrays.ties(actor=self.actor, workload=row)
        idle = idleness.of_running(workload=row)
        return Response(shapes.detail(row, ties, attempts, placements, dispatch, stands, idle))


class CancelApi(ApiView):
    @operation(
        "workloads_cancel",
        tag="workloads",
        summary="Stop a workload",
        answers={200: outputs.SubmittedOut},
        problems=(404, 409),
        keyed=True,
    )
    def post(self, request: Request, id: UUID) -> Response:
        self.no_body()

        def make() -> shapes.Out:
            row = selectors.seen(actor=self.actor, id=id)
            stopped = services.cancel(actor=self.actor, workload=row, at=self.at)
            return shapes.submitted([stopped])[0]

        return self.once(make, status=200)


class ReleaseApi(ApiView):
    @operation(
        "workloads_release",
        tag="workloads",
        summary="Let a workload wait no more for ends that can't come",
        answers={200: outputs.SubmittedOut},
        problems=(404, 409),
        keyed=True,
    )
    def post(self, request: Request, id: UUID) -> Response:
        self.no_body()

        def make() -> shapes.Out:
            row = selectors.seen(actor=self.actor, id=id)
            releases.release(actor=self.actor, work=row, at=self.at)
            return shapes.submitted([row])[0]

        return self.once(make, status=200)


class CheckpointApi(ApiView):
    @operation(
        "workloads_checkpoint",
        tag="workloads",
        summary="Tell that a running workload has saved its work now, so that less is lost",
        answers={200: outputs.CheckpointOut},
        problems=(404, 409),
        keyed=True,
    )
    def post(self, request: Request, id: UUID) -> Response:
        self.no_body()

        def make() -> shapes.Out:
            row = selectors.seen(actor=self.actor, id=id)
            saved = services.checkpoint(actor=self.actor, workload=row, at=self.at)
            return {"id": saved.id, "checkpointed_at": saved.checkpointed_at}

        return self.once(make, status=200)


class EventsApi(ApiView):
    pagination_class = Keyset

    @operation(
        "workloads_events",
        tag="workloads",
        summary="A workload's timeline, the oldest first",
        answers={200: outputs.EventOut(many=True)},
        problems=(404,),
    )
    def get(self, request: Request, id: UUID) -> Response:
        self.query()
        return self.page(
            selectors.events(actor=self.actor, workload_id=id),
            order=["id"],
            shape=shapes.events,
        )


class QueueApi(ApiView):
    pagination_class = Keyset

    @operation(
        "queue_get",
        tag="queue",
        summary="What waits in a project, in the planner's order",
        answers={200: outputs.QueuedOut(many=True)},
        problems=(404,),
    )
    def get(self, request: Request, project_id: UUID) -> Response:
        self.query()
        continued = "cursor" in request.query_params
        project = access.project_or_404(self.actor, project_id)
        stands = standing.standings(projects=[project], at=self.at)[project.id]
        return self.page(
            queues.queue(project=project),
            order=queues.ORDER,
            shape=lambda rows: shapes.queued(rows, stands, continued=continued),
        )
