"""Accounts, for who operates or owns the fleet: who can sign in, and ending all their sessions."""

from uuid import UUID

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from controlplane.api.auth import actor_of
from controlplane.kernel import clock
from controlplane.kernel.errors import NotFound
from controlplane.kernel.forms import no_fields
from controlplane.kernel.htmx import go, page
from tenants.selectors import sessions as selectors
from tenants.services import sessions

_SHOWN = 50


@page("GET", "HEAD")
def account_list(request: HttpRequest) -> HttpResponse:
    """Fifty a page."""
    accounts = selectors.accounts(actor=actor_of(request), at=clock.now())
    shown = Paginator(accounts, _SHOWN).get_page(request.GET.get("page"))
    context = {
        "page": shown,
        "newer_url": f"?page={shown.number - 1}" if shown.has_previous() else "",
        "older_url": f"?page={shown.number + 1}" if shown.has_next() else "",
    }
    return render(request, "tenants/account_list.html", context)


@page("POST")
def account_sign_out(request: HttpRequest, id: UUID) -> HttpResponse:
    actor, at = actor_of(request), clock.now()
    user = selectors.accounts(actor=actor, at=at).filter(pk=id).first()
    if user is None:
        raise NotFound("There is no such account.")
    no_fields(request)
    count = sessions.end_all(actor=actor, user=user, at=at)
    messages.success(request, f"{user.username} is signed out everywhere: {count} sessions.")
    return go(request, reverse("account-list"))
