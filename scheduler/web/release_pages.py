"""The buttons that release what waits in vain. A refusal is told on the page they stand on."""

from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from controlplane.api.auth import actor_of
from controlplane.kernel import clock
from controlplane.kernel.errors import Conflict, NotAllowed
from controlplane.kernel.forms import no_fields
from controlplane.kernel.htmx import go, page, refusal_status
from scheduler.selectors import arrays, workloads
from scheduler.services import releases
from scheduler.web import array_pages, pages


@page("POST")
def workload_release(request: HttpRequest, id: UUID) -> HttpResponse:
    actor = actor_of(request)
    workload = workloads.seen(actor=actor, id=id)
    no_fields(request)
    try:
        releases.release(actor=actor, work=workload, at=clock.now())
    except (Conflict, NotAllowed) as error:
        return pages.detail_page(
            request, actor, workload, refusal=error.message, status=refusal_status(error)
        )
    messages.success(request, f"Released {workload.name}.")
    return go(request, reverse("workload-detail", args=[workload.id]))


@page("POST")
def array_release(request: HttpRequest, id: UUID) -> HttpResponse:
    actor = actor_of(request)
    array = arrays.array(actor=actor, id=id)
    no_fields(request)
    try:
        releases.release(actor=actor, work=array, at=clock.now())
    except (Conflict, NotAllowed) as error:
        return array_pages.array_page(
            request, actor, array, refusal=error.message, status=refusal_status(error)
        )
    messages.success(request, f"Released {array.name}.")
    return go(request, reverse("array-detail", args=[array.id]))
