"""Reservations: what is kept for whom and when, the form of a new one, cancelling one."""

from collections.abc import Collection
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
from tenants.access import Actor
from tenants.models import Project, Tenant
from tenants.selectors import places
from tenants.selectors import reservations as selectors
from tenants.services import reservations
from tenants.web.reservation_forms import ReservationForm


@page("GET", "HEAD", "POST")
def reservation_list(request: HttpRequest) -> HttpResponse:
    """The list, and for those who may set quotas the form of a new one; 422 with that when there
    can't be such a one. Raises NotAllowed for others who post."""
    actor = actor_of(request)
    owners = places.quota_owners(actor=actor)
    flavors = list(Flavor.objects.exclude(kind=FlavorKind.MODEL).order_by("name"))
    if request.method != "POST":
        return _page(request, actor, ReservationForm(owners=owners, flavors=flavors), owners)
    if not owners:
        raise NotAllowed("To reserve takes a role that may set quotas.")
    form = ReservationForm(request.POST, request.FILES, owners=owners, flavors=flavors)

    def make() -> None:
        flavor = next(f for f in flavors if f.name == form.cleaned_data["flavor"])
        made = reservations.make(
            actor=actor,
            of=form.owner,
            flavor=flavor,
            amount_milli=form.amount_milli,
            starts_at=form.cleaned_data["starts_at"],
            ends_at=form.cleaned_data["ends_at"],
            note=form.cleaned_data["note"],
            weekly=form.weekly,
            there_milli=capacity.there_milli(flavor=flavor),
            at=clock.now(),
        )
        messages.success(request, f"Reserved {made.flavor.name} for {made.owner.name}.")

    status = refusal(form, make)
    if status is not None:
        return _page(request, actor, form, owners, status=status)
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
        messages.success(request, f"Nothing is kept for {found.owner.name} by it any more.")
    return go(request, reverse("reservation-list"))


def _page(
    request: HttpRequest,
    actor: Actor,
    form: ReservationForm,
    owners: Collection[Project | Tenant],
    *,
    status: int = 200,
) -> HttpResponse:
    at = clock.now()
    may_cancel = {owner.id for owner in owners}
    context = {
        "form": form if form.may_make else None,
        "at": at,
        "reservations": [
            (row, window, row.owner.id in may_cancel)
            for row, window in selectors.upcoming(actor=actor, at=at)
        ],
    }
    return render(request, "tenants/reservation_list.html", context, status=status)
