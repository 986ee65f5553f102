"""The page of an array: counts by state, its elements, cancelling it."""

from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from controlplane.api.auth import actor_of
from controlplane.kernel import clock
from controlplane.kernel.errors import Conflict, NotAllowed, NotFound
from controlplane.kernel.forms import no_fields
from controlplane.kernel.htmx import go, minute, page, partial, revision, unchanged
from scheduler.core.lifecycle import TERMINAL, State
from scheduler.models import WorkloadArray
from scheduler.selectors import arrays as selectors
from scheduler.selectors import gates as of_gates
from scheduler.selectors import listing
from scheduler.services import arrays
from scheduler.web import gate_forms, order_forms
from tenants import access
from tenants.access import Action, Actor


@page("GET", "HEAD")
def array_detail(request: HttpRequest, id: UUID) -> HttpResponse:
    """One array with some of its elements: `?state=` narrows them, `?from=` is the first index."""
    actor = actor_of(request)
    return array_page(request, actor, selectors.array(actor=actor, id=id))


@page("POST")
def array_cancel(request: HttpRequest, id: UUID) -> HttpResponse:
    """Stop all of it. A refusal is told on its page."""
    actor = actor_of(request)
    array = selectors.array(actor=actor, id=id)
    no_fields(request)
    try:
        arrays.cancel(actor=actor, array=array, at=clock.now())
    except Conflict as error:
        return array_page(request, actor, array, refusal=error.message, status=409)
    except NotAllowed as error:
        return array_page(request, actor, array, refusal=error.message, status=403)
    messages.success(request, f"Asked for all of {array.name} to be stopped.")
    return go(request, reverse("array-detail", args=[array.id]))


def array_page(
    request: HttpRequest,
    actor: Actor,
    array: WorkloadArray,
    *,
    refusal: str = "",
    status: int = 200,
) -> HttpResponse:
    state, start = _state(request), _start(request)
    whole = selectors.sums([array.id])[array.id]
    shown = listing.elements(array=array, state=state, start=start)
    needs = selectors.needs_of_array(actor=actor, array=array)
    live = any(whole.states[each] for each in State if each not in TERMINAL)
    waits = whole.states[State.PENDING] > 0
    may_stop = _may_cancel(actor, array)
    gates = of_gates.of_array(array)
    decided = [(gate.id, gate.state) for gate in gates]
    rev = revision(whole, shown, needs, decided, minute(clock.now()))
    same = None if refusal else unchanged(request, rev)
    if same is not None:
        return same
    context = {
        "array": array,
        "whole": whole,
        "elements": shown,
        "needs": needs,
        "gates": gate_forms.shown(actor=actor, work=array, gates=gates, waits=waits),
        "state": state,
        "start": start,
        "live": live,
        "rev": rev,
        "may_cancel": live and may_stop,
        "order_form": order_forms.OrderForm() if waits and may_stop else None,
        "may_release": may_stop and any(need.in_vain for need in needs),
        "refusal": refusal,
    }
    return partial(request, "scheduler/array_detail.html", "body", context, status=status)


def _may_cancel(actor: Actor, array: WorkloadArray) -> bool:
    own = array.submitted_by_id == actor.user.id
    needed = Action.SUBMIT if own else Action.CANCEL
    return access.allowed(actor, needed, project=array.project)


def _state(request: HttpRequest) -> str:
    """Raises NotFound for what no link of ours has."""
    state = request.GET.get("state", "")
    if state not in {"", *State}:
        raise NotFound("There is no such state.")
    return state


def _start(request: HttpRequest) -> int:
    """Raises NotFound for what no link of ours has."""
    start = request.GET.get("from", "0")
    if not start.isascii() or not start.isdecimal() or len(start) > 6:
        raise NotFound("There is no such element.")
    return int(start)
