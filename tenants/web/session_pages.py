"""One's own sessions: where one is signed in, ending one, and all others."""

from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from controlplane.api.auth import actor_of
from controlplane.kernel import clock
from controlplane.kernel.forms import no_fields
from controlplane.kernel.htmx import go, page
from tenants.selectors import sessions as selectors
from tenants.services import sessions


@page("GET", "HEAD")
def session_list(request: HttpRequest) -> HttpResponse:
    actor, key = actor_of(request), request.session.session_key
    lines = selectors.own(actor=actor, key=key, at=clock.now())
    return render(request, "tenants/session_list.html", {"lines": lines})


@page("POST")
def session_end(request: HttpRequest, id: UUID) -> HttpResponse:
    """The one that asks may end itself: the next page is that of signing in."""
    actor = actor_of(request)
    session = selectors.one(actor=actor, id=id)
    no_fields(request)
    is_this = session.session_id == request.session.session_key
    sessions.end(actor=actor, session=session, at=clock.now())
    if is_this:
        request.session.flush()
    else:
        messages.success(request, f"{selectors.device(session.agent)} is signed out.")
    return go(request, reverse("session-list"))


@page("POST")
def session_end_others(request: HttpRequest) -> HttpResponse:
    no_fields(request)
    key = request.session.session_key or ""
    count = sessions.end_others(actor=actor_of(request), key=key, at=clock.now())
    messages.success(request, f"Signed out elsewhere: {count}.")
    return go(request, reverse("session-list"))
