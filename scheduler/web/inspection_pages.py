"""The page of one pod: what its cluster says of it, once somebody asks."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from controlplane.api.auth import actor_of
from controlplane.kernel import clock
from controlplane.kernel.forms import no_fields
from controlplane.kernel.htmx import go, later, minute, page, partial, revision, unchanged
from controlplane.kernel.throttle import TooOften
from scheduler.models import Inspection, Placement
from scheduler.selectors import inspections as selectors
from scheduler.services import inspections


@page("GET", "HEAD")
def pod_inspection(request: HttpRequest, id: UUID, placement: UUID) -> HttpResponse:
    """Polls while one is under way."""
    row = selectors.placement(actor=actor_of(request), workload_id=id, id=placement)
    return _page(request, row)


def _page(request: HttpRequest, row: Placement, *, refusal: str = "") -> HttpResponse:
    found = selectors.newest(placement=row)
    rev = revision(found and (found.asked_at, found.ended_at), minute(clock.now()))
    same = unchanged(request, rev)
    if same is not None:
        return same
    context = {
        "placement": row,
        "inspection": found,
        "events": _shown(found) if found else (),
        "rev": rev,
        "refusal": refusal,
    }
    return partial(request, "scheduler/pod_inspection.html", "said", context)


@page("POST")
def pod_inspect(request: HttpRequest, id: UUID, placement: UUID) -> HttpResponse:
    """Have it fetched, anew where it was before; 429 when it was asked for too often."""
    actor = actor_of(request)
    row = selectors.placement(actor=actor, workload_id=id, id=placement)
    no_fields(request)
    try:
        inspections.ask(actor=actor, placement=row, at=clock.now())
    except TooOften as error:
        answer = _page(request, row, refusal=error.message)
        answer.status_code = 429
        return later(answer, error)
    return go(request, reverse("pod-inspection", args=[id, placement]))


def _shown(found: Inspection) -> list[dict[str, Any]]:  # Any: JSON values
    """Its events, their moments read."""
    return [
        one | {"at": datetime.fromisoformat(one["at"]) if one["at"] else None}
        for one in found.events
    ]
