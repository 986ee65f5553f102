"""How the MIG devices of each pool had better be cut: for those with a fleet-wide role, as it
tells what all tenants together ask for."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from controlplane.api.auth import actor_of
from controlplane.kernel import clock
from controlplane.kernel.htmx import page
from controlplane.kernel.throttle import TooOften
from scheduler.selectors import cuttable, layouts
from scheduler.services import asking
from tenants import access
from tenants.access import Action


@page("GET", "HEAD")
def layout_list(request: HttpRequest) -> HttpResponse:
    """Worked out when asked; 429 when it was asked for too often. Raises NotAllowed."""
    actor, at = actor_of(request), clock.now()
    access.authorize_fleet(actor, Action.VIEW)
    context: dict[str, object] = {"days": layouts.LOOKS_BACK.days}
    try:
        with asking.turn(actor=actor, at=at):
            there = cuttable.clusters() if actor.permits_everywhere(Action.OPERATE) else {}
            context["advice"] = [
                (pool.cluster, pool.advice, pool.cluster in there.get(pool.advice.model, ()))
                for pool in layouts.advice(at=at)
            ]
    except TooOften as error:
        context["refusal"] = error.message
        answer = render(request, "clusters/layout_list.html", context, status=429)
        answer.headers["Retry-After"] = str(error.wait)
        return answer
    return render(request, "clusters/layout_list.html", context)
