"""Rates: what an hour costs, cost and will cost, and the form of a new price."""

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from clusters.models import Cluster, Flavor, FlavorKind
from controlplane.api.auth import actor_of
from controlplane.kernel import clock
from controlplane.kernel.htmx import go, page, refusal
from tenants import access
from tenants.access import Action
from tenants.selectors import rates as selectors
from tenants.services import rates
from tenants.web.rate_forms import RateForm


@page("GET", "HEAD", "POST")
def rate_list(request: HttpRequest) -> HttpResponse:
    """For everybody the list, for who operates the fleet the form too: 422 with it when there
    can't be such a price, 409 when a later one is set. Raises NotAllowed for others who post."""
    actor = actor_of(request)
    may_set = access.allowed_at(actor, Action.OPERATE, place=None)
    if request.method != "POST":
        return _page(request, _form() if may_set else None)
    access.authorize_fleet(actor, Action.OPERATE)
    form = _form(request)

    def save() -> None:
        said = form.cleaned_data
        made = rates.set_rate(
            actor=actor,
            flavor=Flavor.objects.get(name=said["flavor"]),
            cluster=Cluster.objects.get(name=said["cluster"]) if said["cluster"] else None,
            price_per_hour=said["price_per_hour"],
            currency=settings.BERTH_CURRENCY,
            start=said["starts_at"],
            at=clock.now(),
        )
        messages.success(request, f"The price of {made.flavor.name} is set.")

    status = refusal(form, save)
    if status is not None:
        return _page(request, form, status=status)
    return go(request, reverse("rate-list"))


def _form(request: HttpRequest | None = None) -> RateForm:
    flavors = Flavor.objects.exclude(kind=FlavorKind.MODEL).order_by("name")
    clusters = Cluster.objects.order_by("name")
    if request is None:
        return RateForm(flavors=flavors, clusters=clusters)
    return RateForm(request.POST, request.FILES, flavors=flavors, clusters=clusters)


def _page(request: HttpRequest, form: RateForm | None, *, status: int = 200) -> HttpResponse:
    at = clock.now()
    context = {
        "form": form,
        "in_force": selectors.in_force(at=at),
        "to_come": selectors.to_come(at=at),
        "over": selectors.over(at=at),
    }
    return render(request, "tenants/rate_list.html", context, status=status)
