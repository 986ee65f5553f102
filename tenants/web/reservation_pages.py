"""Reservations: what is kept for whom and when, the form of a new one, cancelling one."""

from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from clusters.models import Flavor, FlavorKind
from controlplane.api.auth import actor_of
from controlplane.kernel import clock
from controlplane.kernel.errors import Conflict, NotAllowed
from controlplane.kernel.forms import no_fields
from controlplane.kernel.htmx import go, page, refusal
from scheduler.selectors import capacity
from tenants import access
from tenants.access import Action, Actor
from tenants.models import NEVER
from tenants.selectors import people
from tenants.selectors import reservations as selectors
from tenants.services import reservations
from tenants.web.reservation_forms import ReservationForm

SHOWN = 200
"""Reservations that the page lists, the next to begin first."""


@page("GET", "HEAD", "POST")
def reservation_list(request: HttpRequest) -> HttpResponse:
    """The list, and for those who may set quotas the form of a new one; 422 with that when there
    can't be such a one. Raises NotAllowed for others who post."""
    actor = actor_of(request)
    projects = people.projects_by_name(actor=actor, action=Action.EDIT_QUOTA)
    flavors = list(Flavor.objects.exclude(kind=FlavorKind.MODEL).order_by("name"))
    if request.method != "POST":
        return _page(request, actor, ReservationForm(projects=projects, flavors=flavors))
    if not projects:
        raise NotAllowed("To reserve takes a role that may set quotas.")
    form = ReservationForm(request.POST, request.FILES, projects=projects, flavors=flavors)

    def make() -> None:
        flavor = next(f for f in flavors if f.name == form.cleaned_data["flavor"])
        made = reservations.make(
            actor=actor,
            project=next(p for p in projects if str(p.id) == form.cleaned_data["project"]),
            flavor=flavor,
            amount_milli=form.amount_milli,
            starts_at=form.cleaned_data["starts_at"],
            ends_at=form.cleaned_data["ends_at"],
            note=form.cleaned_data["note"],
            weekly=form.weekly,
            there_milli=capacity.there_milli(flavor=flavor),
            at=clock.now(),
        )
        messages.success(request, f"Reserved {made.flavor.name} for {made.project.name}.")

    status = refusal(form, make)
    if status is not None:
        return _page(request, actor, form, status=status)
    return go(request, reverse("reservation-list"))


@page("POST")
def reservation_cancel(request: HttpRequest, id: UUID) -> HttpResponse:
    """Keep nothing by it any more."""
    actor = actor_of(request)
    found = selectors.reservation(actor=actor, id=id)
    no_fields(request)
    try:
        reservations.cancel(actor=actor, reservation=found, at=clock.now())
    except Conflict as error:
        messages.warning(request, error.message)
    else:
        messages.success(request, f"Nothing is kept for {found.project.name} by it any more.")
    return go(request, reverse("reservation-list"))


def _page(
    request: HttpRequest, actor: Actor, form: ReservationForm, *, status: int = 200
) -> HttpResponse:
    at = clock.now()
    rows = selectors.reservations(actor=actor, at=at).order_by("starts_at", "id")[:SHOWN]
    context = {
        "form": form if form.may_make else None,
        "at": at,
        "reservations": [
            (
                row,
                next(row.windows(after=at, before=NEVER)),
                access.allowed(actor, Action.EDIT_QUOTA, project=row.project),
            )
            for row in rows
        ],
    }
    return render(request, "tenants/reservation_list.html", context, status=status)
