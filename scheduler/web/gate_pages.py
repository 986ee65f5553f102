"""The buttons that open and refuse gates. A refusal is told on the page they stand on."""

from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from controlplane.api.auth import actor_of
from controlplane.kernel import clock
from controlplane.kernel.errors import Conflict, Invalid, NotAllowed
from controlplane.kernel.htmx import go, page, refusal_status
from scheduler.models import Gate, GateState, Workload, WorkloadArray
from scheduler.selectors import arrays, workloads
from scheduler.services import gates
from scheduler.web import array_pages, pages
from scheduler.web.gate_forms import DecisionForm
from tenants.access import Actor


@page("POST")
def workload_gate(request: HttpRequest, id: UUID, name: str) -> HttpResponse:
    actor = actor_of(request)
    workload = workloads.seen(actor=actor, id=id)
    try:
        gate = _decide(request, actor, workload, name)
    except (Conflict, NotAllowed, Invalid) as error:
        return pages.detail_page(
            request, actor, workload, refusal=error.message, status=refusal_status(error)
        )
    _tell(request, gate, workload.name)
    return go(request, reverse("workload-detail", args=[workload.id]))


@page("POST")
def array_gate(request: HttpRequest, id: UUID, name: str) -> HttpResponse:
    actor = actor_of(request)
    array = arrays.array(actor=actor, id=id)
    try:
        gate = _decide(request, actor, array, name)
    except (Conflict, NotAllowed, Invalid) as error:
        return array_pages.array_page(
            request, actor, array, refusal=error.message, status=refusal_status(error)
        )
    _tell(request, gate, array.name)
    return go(request, reverse("array-detail", args=[array.id]))


def _decide(request: HttpRequest, actor: Actor, work: Workload | WorkloadArray, name: str) -> Gate:
    """Raises Invalid for a form that nobody could mean, and as the service does."""
    form = DecisionForm(request.POST, request.FILES)
    if not form.is_valid():
        raise Invalid(form.fault)
    note = form.cleaned_data["note"]
    return gates.decide(
        actor=actor, work=work, name=name, state=form.decided, note=note, at=clock.now()
    )


def _tell(request: HttpRequest, gate: Gate, of: str) -> None:
    if gate.state == GateState.OPEN:
        messages.success(request, f"The gate {gate.name} of {of} is open.")
    else:
        messages.success(request, f"Refused: {of} is cancelled.")
