"""The page of one's own second factors: setting up an app or a key, removing one, new codes.

Whoever changes something here shows first that it is them: a session left open may be anybody's.
What must not live here: the rules (`second_factor`), and what a key answers (`security_keys`).
"""

import base64
import json
from typing import Any

from allauth.account.internal.flows.reauthentication import did_recently_reauthenticate
from allauth.mfa.base.forms import ReauthenticateForm
from allauth.mfa.totp.forms import ActivateTOTPForm
from allauth.mfa.totp.internal import auth as totp
from django.contrib import messages
from django.forms import Form
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from controlplane.api.auth import actor_of
from controlplane.kernel import clock
from controlplane.kernel.errors import Conflict, NotAllowed
from controlplane.kernel.forms import no_fields
from controlplane.kernel.htmx import go, page
from controlplane.portal import second_factor as factors
from controlplane.portal import security_keys
from tenants.access import Actor


@page("GET", "HEAD", "POST")
def second_factor(request: HttpRequest) -> HttpResponse:
    """What there is; a POST of a code from the app sets that up."""
    actor = actor_of(request)
    if request.method != "POST":
        return _page(request, actor)
    if not _may_change(request, actor):
        return _late(request, actor)
    form = ActivateTOTPForm(request.POST, user=actor.user)
    if not form.is_valid():
        return _page(request, actor, app=form, status=422)
    try:
        codes = factors.add_app(
            actor=actor, secret=form.secret, key=_session(request), at=clock.now()
        )
    except Conflict as error:
        return _page(request, actor, said=error.message, status=409)
    totp.clear_totp_secret(request)
    return _added(request, actor, codes, "The app is set up.")


@page("POST")
def second_factor_key(request: HttpRequest) -> HttpResponse:
    """A key that the browser has just asked."""
    actor = actor_of(request)
    if not _may_change(request, actor):
        return _late(request, actor)
    form = security_keys.NewKey(request.POST, user=actor.user)
    if not form.is_valid():
        return _page(request, actor, key=form, status=422)
    codes = factors.add_key(actor=actor, form=form, key=_session(request), at=clock.now())
    return _added(request, actor, codes, f"{form.cleaned_data['name']} is one of your keys.")


@page("POST")
def second_factor_proof(request: HttpRequest) -> HttpResponse:
    """A code, or a key: for five minutes its sender may change something here."""
    actor = actor_of(request)
    if not factors.has_one(actor.user):
        return _page(request, actor, said="You have no second factor to show.", status=409)
    # Any: allauth's, without types
    kind: type[Any] = ReauthenticateForm if "code" in request.POST else security_keys.ProofAgain
    form = kind(request.POST, user=actor.user)
    if not form.is_valid():
        return _page(request, actor, proof=form, status=422)
    form.save()
    return go(request, reverse("second-factor"))


@page("POST")
def second_factor_codes(request: HttpRequest) -> HttpResponse:
    """New codes instead of the old."""
    no_fields(request)
    actor = actor_of(request)
    if not _may_change(request, actor):
        return _late(request, actor)
    try:
        codes = factors.renew_codes(actor=actor, at=clock.now())
    except Conflict as error:
        return _page(request, actor, said=error.message, status=409)
    return _page(request, actor, codes=codes, status=201)


@page("POST")
def second_factor_remove(request: HttpRequest, id: int) -> HttpResponse:
    """One of one's own."""
    no_fields(request)
    actor = actor_of(request)
    if not _may_change(request, actor):
        return _late(request, actor)
    try:
        is_left = factors.remove(actor=actor, id=id, at=clock.now())
    except NotAllowed as error:
        return _page(request, actor, said=error.message, status=403)
    told = "It is removed." if is_left else "A password is all that you need now to sign in."
    messages.success(request, told)
    return go(request, reverse("second-factor"))


def _page(
    request: HttpRequest,
    actor: Actor,
    *,
    app: ActivateTOTPForm | None = None,
    key: security_keys.NewKey | None = None,
    proof: Form | None = None,
    codes: list[str] | None = None,
    said: str = "",
    status: int = 200,
) -> HttpResponse:
    """The page, with the form that was at fault; `said` is what is wrong with the whole of it."""
    held = factors.held(actor.user)
    context: dict[str, Any] = {  # Any: what a template shows
        "app_type": factors.APP,
        "codes": codes,
        "held": held,
        "is_required": factors.is_required(actor),
        "may_change": not held or did_recently_reauthenticate(request),
        "said": said,
    }
    kinds = {each.type for each in held}
    if codes:
        pass
    elif not context["may_change"]:
        context["proof"] = proof or ReauthenticateForm(user=actor.user)
        if factors.KEY in kinds:
            context["asked"] = json.dumps(security_keys.to_prove(actor.user))
    else:
        context["key"] = key or security_keys.NewKey(user=actor.user)
        context["asked"] = json.dumps(security_keys.to_add(actor.user))
        if factors.APP not in kinds:
            context |= _setup(actor, app or ActivateTOTPForm(user=actor.user))
    return render(request, "portal/second_factor.html", context, status=status)


def _setup(actor: Actor, form: ActivateTOTPForm) -> dict[str, Any]:  # Any: what a template shows
    adapter = factors.Factors()
    svg = adapter.build_totp_svg(adapter.build_totp_url(actor.user, form.secret))
    picture = f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"
    return {"app": form, "secret": form.secret, "picture": picture}


def _added(request: HttpRequest, actor: Actor, codes: list[str], told: str) -> HttpResponse:
    """Of the first the answer, 201, is the one place that shows the codes."""
    if codes:
        return _page(request, actor, codes=codes, status=201)
    messages.success(request, told)
    return go(request, reverse("second-factor"))


def _late(request: HttpRequest, actor: Actor) -> HttpResponse:
    return _page(request, actor, said="Show first that it is you; nothing is changed.", status=403)


def _may_change(request: HttpRequest, actor: Actor) -> bool:
    """Whether they have nothing to lose here, or gave a proof in the last five minutes."""
    return not factors.has_one(actor.user) or did_recently_reauthenticate(request)


def _session(request: HttpRequest) -> str:
    return request.session.session_key or ""
