"""How the MIG devices of each model had better be cut: for those with a fleet-wide role, as it
tells what all tenants together ask for."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from controlplane.api.auth import actor_of
from controlplane.kernel import clock
from controlplane.kernel.htmx import page
from scheduler.selectors import layouts
from tenants import access
from tenants.access import Action


@page("GET", "HEAD")
def layout_list(request: HttpRequest) -> HttpResponse:
    """Worked out when asked. Raises NotAllowed."""
    access.authorize_fleet(actor_of(request), Action.VIEW)
    context = {"advice": layouts.advice(at=clock.now()), "days": layouts.LOOKS_BACK.days}
    return render(request, "clusters/layout_list.html", context)
