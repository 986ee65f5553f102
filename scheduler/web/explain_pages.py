"""Why one workload waits: a page of its own, and a block that the workload's page loads late."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse

from controlplane.api.auth import actor_of
from controlplane.kernel import clock
from controlplane.kernel.errors import Conflict
from controlplane.kernel.htmx import later, page, partial
from controlplane.kernel.throttle import TooOften
from scheduler.selectors import workloads
from scheduler.services import explaining
from scheduler.web import explanations


@page("GET", "HEAD")
def workload_explanation(request: HttpRequest, id: UUID) -> HttpResponse:
    """Of what waits no more only that is said. 429 when it was asked for too often."""
    actor = actor_of(request)
    workload = workloads.seen(actor=actor, id=id)
    explained, refusal, status, often = None, "", 200, None
    try:
        found = explaining.of_workload(actor=actor, workload=workload, at=clock.now())
        explained = explanations.explanation(found)
    except Conflict as error:
        refusal = error.message
    except TooOften as error:
        refusal, status, often = error.message, 429, error
    context = {"workload": workload, "explained": explained, "refusal": refusal}
    template = "scheduler/workload_explanation.html"
    answer = partial(request, template, "explanation", context, status=status)
    return later(answer, often) if often else answer
