"""Live tokens that reach into a tenant, a project or the fleet, for who owns it; ending one."""

from uuid import UUID

from django import forms
from django.contrib import messages
from django.core.exceptions import BadRequest
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from controlplane.api.auth import actor_of
from controlplane.kernel import clock
from controlplane.kernel.forms import StrictForm
from controlplane.kernel.htmx import go, page
from tenants import access
from tenants.access import Place
from tenants.models import Project
from tenants.selectors import people, reach
from tenants.services import tokens

_SHOWN = 50


class _RevokeForm(StrictForm):
    token = forms.UUIDField()


@page("GET", "HEAD", "POST")
def fleet_tokens(request: HttpRequest) -> HttpResponse:
    return _tokens(request, None)


@page("GET", "HEAD", "POST")
def tenant_tokens(request: HttpRequest, id: UUID) -> HttpResponse:
    return _tokens(request, access.tenant_or_404(actor_of(request), id))


@page("GET", "HEAD", "POST")
def project_tokens(request: HttpRequest, id: UUID) -> HttpResponse:
    return _tokens(request, people.project(actor=actor_of(request), id=id))


def _tokens(request: HttpRequest, place: Place) -> HttpResponse:
    """Fifty a page; a POST ends the one that it names at once."""
    actor, at = actor_of(request), clock.now()
    rows = reach.tokens(actor=actor, place=place, at=at)
    if request.method == "POST":
        form = _RevokeForm(request.POST, request.FILES)
        if not form.is_valid():
            raise BadRequest(form.fault)
        found = reach.token(actor=actor, place=place, id=form.cleaned_data["token"], at=at)
        tokens.revoke_in(actor=actor, token=found, place=place, at=at)
        told = f"{found.name} of {found.user.username} is revoked: nobody gets in by it any more."
        messages.success(request, told)
        return go(request, request.path)
    shown = Paginator(rows.order_by("-id"), _SHOWN).get_page(request.GET.get("page"))
    context = {
        "place": place,
        "is_project": isinstance(place, Project),
        "page": shown,
        "newer_url": f"?page={shown.number - 1}" if shown.has_previous() else "",
        "older_url": f"?page={shown.number + 1}" if shown.has_next() else "",
    }
    return render(request, "tenants/reach.html", context)
