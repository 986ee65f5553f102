"""Pages of workloads: the list, one of them, cancelling it. `submit_pages` and `queue_pages` have
the others. Each view parses, calls a selector or service, and renders.
"""

from dataclasses import replace
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.urls import reverse

from controlplane.api.auth import actor_of, named_project
from controlplane.kernel import clock
from controlplane.kernel.errors import Conflict, NotAllowed, NotFound
from controlplane.kernel.forms import no_fields
from controlplane.kernel.htmx import (
    go,
    id_in,
    minute,
    page,
    partial,
    revision,
    ten_seconds,
    unchanged,
)
from scheduler.core.lifecycle import TERMINAL, State
from scheduler.models import Workload
from scheduler.selectors import arrays, listing
from scheduler.selectors import detail as details
from scheduler.selectors import workloads as selectors
from scheduler.selectors.listing import Narrowed
from scheduler.selectors.queues import position_of
from scheduler.services import workloads
from scheduler.web import gate_forms, order_forms
from tenants import access
from tenants.access import Action, Actor
from tenants.selectors import people, prices

STATES = (
    ("", "All"),
    ("waiting", "Waiting"),
    ("active", "Starting and running"),
    ("ended", "Ended"),
    (State.FAILED.value, "Failed"),
)
"""What the list can be narrowed to, and how that is called."""


@page("GET", "HEAD")
def workload_list(request: HttpRequest) -> HttpResponse:
    """What the actor sees, newest first; `?rev=` with `first=` counts what came later."""
    actor = actor_of(request)
    by = narrowed_by(request)
    listed = listing.page(
        actor=actor,
        by=by,
        before=id_in(request.GET, "before"),
        after=id_in(request.GET, "after"),
        first=id_in(request.GET, "first"),
    )
    rev = revision(listed, minute(clock.now()))
    same = unchanged(request, rev)
    if same is not None:
        return same
    here = request.GET.copy()
    for name in ("rev", "first"):
        here.pop(name, None)
    context = {
        "page": listed,
        "by": by,
        "states": STATES,
        "projects": people.projects_by_name(actor=actor),
        "may_submit": may_submit(actor),
        "rev": rev,
        "query": here.urlencode(),
        "first": listed.lines[0].id if listed.lines and "after" not in here else "",
        "newest_url": _with(here, before=None, after=None),
        "newer_url": _with(here, before=None, after=listed.newer) if listed.newer else "",
        "older_url": _with(here, after=None, before=listed.older) if listed.older else "",
    }
    return partial(request, "scheduler/workload_list.html", "rows", context)


@page("GET", "HEAD")
def workload_detail(request: HttpRequest, id: UUID) -> HttpResponse:
    """One workload; polls while it lives."""
    actor = actor_of(request)
    return detail_page(request, actor, selectors.seen(actor=actor, id=id))


def detail_page(
    request: HttpRequest, actor: Actor, workload: Workload, *, refusal: str = "", status: int = 200
) -> HttpResponse:
    at = clock.now()
    sees_cost = access.allowed(actor, Action.VIEW_SPEND, project=workload.project)
    shown = details.detail(
        workload=workload, prices=prices.at_moment(at=at) if sees_cost else None, at=at
    )
    live = workload.state not in TERMINAL
    place = position_of(workload) if workload.state == State.PENDING else None
    charged = shown.cost.charged if shown.cost else None
    ties = arrays.ties(actor=actor, workload=workload)
    decided = [(gate.id, gate.state) for gate in ties.gates]
    facts = replace(shown, cost=None), charged, place, replace(ties, gates=()), decided
    rev = revision(facts, ten_seconds(at) if live else None)
    same = None if refusal else unchanged(request, rev)
    if same is not None:
        return same
    context = {
        "workload": workload,
        "detail": shown,
        "ties": ties,
        "gates": gate_forms.shown(
            actor=actor, work=workload, gates=ties.gates, waits=workload.state == State.PENDING
        ),
        "place": place,
        "live": live,
        "rev": rev,
        "may_cancel": may_cancel(actor, workload),
        "order_form": order_forms.of_waiting(workload) if may_order(actor, workload) else None,
        "may_release": may_cancel(actor, workload) and any(need.in_vain for need in ties.needs),
        "refusal": refusal,
    }
    return partial(request, "scheduler/workload_detail.html", "body", context, status=status)


@page("POST")
def workload_cancel(request: HttpRequest, id: UUID) -> HttpResponse:
    """Stop it. A refusal is told on its page."""
    actor = actor_of(request)
    workload = selectors.seen(actor=actor, id=id)
    no_fields(request)
    try:
        workload = workloads.cancel(actor=actor, workload=workload, at=clock.now())
    except Conflict as error:
        workload.refresh_from_db()
        return detail_page(request, actor, workload, refusal=error.message, status=409)
    except NotAllowed as error:
        return detail_page(request, actor, workload, refusal=error.message, status=403)
    if workload.state == State.CANCELLED:
        messages.success(request, f"Cancelled {workload.name}.")
    else:
        messages.success(request, f"Asked for {workload.name} to be stopped.")
    return go(request, reverse("workload-detail", args=[workload.id]))


def may_cancel(actor: Actor, workload: Workload) -> bool:
    """Whether the cancel button has a use: as `workloads.cancel` decides."""
    if workload.state in TERMINAL or workload.state == State.CANCELLING:
        return False
    own = workload.submitted_by_id == actor.user.id
    needed = Action.SUBMIT if own else Action.CANCEL
    return access.allowed(actor, needed, project=workload.project)


def may_order(actor: Actor, workload: Workload) -> bool:
    """The same of its place in the queue: as `reordering.reorder` decides."""
    return workload.state == State.PENDING and may_cancel(actor, workload)


def may_submit(actor: Actor) -> bool:
    """Whether there is any project that the actor may submit to."""
    return people.projects(actor=actor, action=Action.SUBMIT).exists()


def narrowed_by(request: HttpRequest) -> Narrowed:
    """The filters of a list. Raises NotFound for values that no link of ours has."""
    state = request.GET.get("state", "")
    if state not in listing.GROUPS and state not in {"", *State}:
        raise NotFound("There is no such state.")
    project, mine = named_project(request), request.GET.get("mine") == "1"
    return Narrowed(state=state, project=project.id if project else None, mine=mine)


def _with(query: QueryDict, **changes: UUID | None) -> str:
    """The list's own address with these parameters set, or taken away."""
    changed = query.copy()
    for name, value in changes.items():
        changed.pop(name, None)
        if value is not None:
            changed[name] = str(value)
    path = reverse("workload-list")
    return f"{path}?{changed.urlencode()}" if changed else path
