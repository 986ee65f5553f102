"""Who decides requests for the one who is signed in, and for whom they do."""

from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from controlplane.api.auth import actor_of
from controlplane.kernel import clock
from controlplane.kernel.errors import Conflict
from controlplane.kernel.forms import StrictForm, moment, no_fields
from controlplane.kernel.htmx import go, page, partial, refusal
from tenants.access import Actor
from tenants.selectors import deciders
from tenants.selectors import delegations as selectors
from tenants.services import delegations

SHOWN = 50


class DelegationForm(StrictForm):
    """Who, and how long."""

    delegate = forms.CharField(
        max_length=150, help_text="User name, of somebody who sees already where you decide."
    )
    from_at = moment("From", "Empty: at once.", required=False)
    until_at = moment("Until", "At most 90 days after it begins.")


@page("GET", "HEAD", "POST")
def delegation_list(request: HttpRequest) -> HttpResponse:
    """Both ways, with the form of who decides by a role of their own; 422 with it for a delegation
    that can't be."""
    actor = actor_of(request)
    if request.method != "POST":
        return _page(request, actor, DelegationForm())
    form = DelegationForm(request.POST, request.FILES)

    def make() -> None:
        made = delegations.make(
            actor=actor,
            delegate=form.cleaned_data["delegate"],
            from_at=form.cleaned_data["from_at"],
            until_at=form.cleaned_data["until_at"],
            at=clock.now(),
        )
        messages.success(request, f"{made.delegate.get_username()} decides for you.")

    status = refusal(form, make)
    if status is not None:
        return _page(request, actor, form, status=status)
    return go(request, reverse("delegation-list"))


@page("POST")
def delegation_withdraw(request: HttpRequest, id: UUID) -> HttpResponse:
    """At once. What is over already is told."""
    no_fields(request)
    actor = actor_of(request)
    given = selectors.given(actor=actor, id=id)
    try:
        delegations.withdraw(actor=actor, delegation=given, at=clock.now())
    except Conflict as error:
        messages.warning(request, error.message)
    else:
        messages.success(request, f"{given.delegate.get_username()} decides for you no more.")
    return go(request, reverse("delegation-list"))


def _page(
    request: HttpRequest, actor: Actor, form: DelegationForm, *, status: int = 200
) -> HttpResponse:
    at = clock.now()
    rows = selectors.own(actor=actor).order_by("-id")[:SHOWN]
    context = {
        "form": form,
        "delegations": [(row, row.state(at=at), row.approver_id == actor.user.id) for row in rows],
        "may_name": any(m.role in deciders.DECIDING for m in actor.memberships),
    }
    return partial(request, "tenants/delegation_list.html", "list", context, status=status)
