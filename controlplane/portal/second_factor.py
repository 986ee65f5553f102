"""A second factor: setting up an app that makes codes, and who has to have one.

allauth keeps the secrets and asks for a code where somebody signs in. What must not live here: the
page that asks (that is allauth's view with our template).
"""

import base64
import hashlib
from collections.abc import Callable
from typing import Any

from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.base.forms import ReauthenticateForm
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.forms import ActivateTOTPForm
from allauth.mfa.totp.internal import auth as totp
from allauth.mfa.totp.internal.auth import TOTP
from cryptography.fernet import Fernet
from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.forms import Form
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from controlplane.api import errors
from controlplane.api.auth import actor_of
from controlplane.audit.services import Entry
from controlplane.kernel import clock
from controlplane.kernel.errors import NotAllowed
from controlplane.kernel.htmx import go, page
from tenants.access import Actor
from tenants.models import User
from tenants.services import sessions, trail

_WITHOUT = {"second-factor", "second-factor-codes", "second-factor-remove", "logout"}
"""Addresses for who has none yet and has to."""

type Respond = Callable[[HttpRequest], HttpResponse]


class Factors(DefaultMFAAdapter):
    """Secrets lie in the database under a key that only BERTH_SECRET_KEY makes."""

    def encrypt(self, text: str) -> str:
        return _box().encrypt(text.encode()).decode()

    def decrypt(self, encrypted_text: str) -> str:
        return _box().decrypt(encrypted_text.encode()).decode()

    def get_totp_label(self, user: User) -> str:
        return user.get_username()


def _box() -> Fernet:
    key = hashlib.sha256(b"berth second factor " + settings.SECRET_KEY.encode()).digest()
    return Fernet(base64.urlsafe_b64encode(key))


def is_required(actor: Actor) -> bool:
    """Whether a role of theirs asks for one, wherever they have it. Not of the break-glass user,
    who comes when apps and phones are what failed."""
    return not actor.user.is_break_glass and any(
        member.role in settings.BERTH_MFA_ROLES for member in actor.memberships
    )


def has_one(user: User) -> bool:
    found: bool = Authenticator.objects.filter(user=user, type=Authenticator.Type.TOTP).exists()
    return found


def required(respond: Respond) -> Respond:
    """A middleware: who has to have a second factor and has none does nothing before that, by
    pages and by the API alike. Tokens have none: what roles ask one for, no token may do."""

    def responded(request: HttpRequest) -> HttpResponse:
        return respond(request)

    def process_view(request: HttpRequest, *_: object) -> HttpResponse | None:
        match = request.resolver_match
        if (
            not settings.BERTH_MFA_ROLES
            or settings.SESSION_COOKIE_NAME not in request.COOKIES
            or (match is not None and match.url_name in _WITHOUT)
            or not isinstance(request.user, User)
        ):
            return None
        if not is_required(actor_of(request)) or has_one(request.user):
            return None
        if request.path.startswith(errors.PREFIX):
            refused = NotAllowed("Your role asks for a second factor: set one up on the portal.")
            return errors.answer(refused, status=403, request=request)
        return redirect("second-factor")

    responded.process_view = process_view  # type: ignore[attr-defined]  # Django's
    return responded


@page("GET", "HEAD", "POST")
def second_factor(request: HttpRequest) -> HttpResponse:
    """What there is; without one, a POST of a code from the app sets it up. Its answer, 201, is
    the one place that shows the codes for a lost app."""
    actor = actor_of(request)
    if has_one(actor.user):
        return _page(request, actor)
    form = ActivateTOTPForm(request.POST if request.method == "POST" else None, user=actor.user)
    if request.method != "POST" or not form.is_valid():
        return _page(request, actor, setup=form, status=422 if form.is_bound else 200)
    with transaction.atomic():
        TOTP.activate(actor.user, form.secret)
        codes = RecoveryCodes.activate(actor.user).get_unused_codes()
        _record(actor, "second-factor.add")
        # Those were opened by a password alone.
        sessions.end_others(actor=actor, key=request.session.session_key or "", at=clock.now())
    totp.clear_totp_secret(request)
    return _page(request, actor, codes=codes, status=201)


@page("POST")
def second_factor_codes(request: HttpRequest) -> HttpResponse:
    """New codes instead of the old, for who has a code."""
    actor = actor_of(request)
    form = ReauthenticateForm(request.POST, user=actor.user)
    if not form.is_valid():
        return _page(request, actor, proof=form, status=422)
    with transaction.atomic():
        kind = Authenticator.Type.RECOVERY_CODES
        Authenticator.objects.filter(user=actor.user, type=kind).delete()
        codes = RecoveryCodes.activate(actor.user).get_unused_codes()
        _record(actor, "second-factor.codes")
    return _page(request, actor, codes=codes, status=201)


@page("POST")
def second_factor_remove(request: HttpRequest) -> HttpResponse:
    """For who has a code, and no role that asks for one."""
    actor = actor_of(request)
    if is_required(actor):
        raise PermissionDenied("Your role asks for a second factor.")
    form = ReauthenticateForm(request.POST, user=actor.user)
    if not form.is_valid():
        return _page(request, actor, proof=form, status=422)
    with transaction.atomic():
        Authenticator.objects.filter(user=actor.user).delete()
        _record(actor, "second-factor.remove")
    messages.success(request, "A password is all that you need now to sign in.")
    return go(request, reverse("second-factor"))


def _page(
    request: HttpRequest,
    actor: Actor,
    *,
    setup: ActivateTOTPForm | None = None,
    proof: Form | None = None,
    codes: list[str] | None = None,
    status: int = 200,
) -> HttpResponse:
    context: dict[str, Any] = {  # Any: what a template shows
        "codes": codes,
        "is_required": is_required(actor),
        "setup": setup,
        "proof": proof or ReauthenticateForm(user=actor.user),
    }
    if setup is not None:
        adapter = Factors()
        url = adapter.build_totp_url(actor.user, setup.secret)
        svg = base64.b64encode(adapter.build_totp_svg(url).encode()).decode()
        context |= {"secret": setup.secret, "picture": f"data:image/svg+xml;base64,{svg}"}
    return render(request, "portal/second_factor.html", context, status=status)


def _record(actor: Actor, action: str) -> None:
    trail.record(Entry(action, "user", actor.user.id), actor=actor, at=clock.now())
