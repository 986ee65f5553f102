"""The forms that reorder what waits. A refusal is told on the page they stand on."""

from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from controlplane.api.auth import actor_of
from controlplane.kernel import clock
from controlplane.kernel.errors import Conflict, Invalid, NotAllowed
from controlplane.kernel.htmx import go, page, refusal_status
from scheduler.models import Workload, WorkloadArray
from scheduler.selectors import arrays, workloads
from scheduler.services import reordering
from scheduler.web import array_pages, pages
from scheduler.web.order_forms import OrderForm, WorkloadOrderForm
from tenants.access import Actor


@page("POST")
def workload_order(request: HttpRequest, id: UUID) -> HttpResponse:
    actor = actor_of(request)
    workload = workloads.seen(actor=actor, id=id)
    try:
        _reorder(actor, workload, WorkloadOrderForm(request.POST, request.FILES))
    except (Conflict, NotAllowed, Invalid) as error:
        workload.refresh_from_db()
        return pages.detail_page(
            request, actor, workload, refusal=error.message, status=refusal_status(error)
        )
    messages.success(request, f"Reordered {workload.name}.")
    return go(request, reverse("workload-detail", args=[workload.id]))


@page("POST")
def array_order(request: HttpRequest, id: UUID) -> HttpResponse:
    actor = actor_of(request)
    array = arrays.array(actor=actor, id=id)
    try:
        _reorder(actor, array, OrderForm(request.POST, request.FILES))
    except (Conflict, NotAllowed, Invalid) as error:
        return array_pages.array_page(
            request, actor, array, refusal=error.message, status=refusal_status(error)
        )
    messages.success(request, f"Reordered {array.name}.")
    return go(request, reverse("array-detail", args=[array.id]))


def _reorder(actor: Actor, work: Workload | WorkloadArray, form: OrderForm) -> None:
    """Raises Invalid for a form that nobody could mean, and as the service does."""
    if not form.is_valid():
        raise Invalid(form.fault)
    reordering.reorder(actor=actor, work=work, change=form.change, at=clock.now())
