"""A second factor: an app that makes codes, and security keys; who has to have one.

allauth keeps the secrets and asks where somebody signs in. What must not live here: the page of
one's own (`factor_pages`), and what a key answers (`security_keys`).
"""

import base64
import hashlib
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP
from cryptography.fernet import Fernet
from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from controlplane.api import errors
from controlplane.api.auth import actor_of
from controlplane.audit.services import Entry
from controlplane.kernel import clock
from controlplane.kernel.errors import Conflict, NotAllowed, NotFound
from controlplane.portal.security_keys import NewKey
from tenants.access import Actor
from tenants.models import Member, User
from tenants.services import sessions, tokens, trail

APP, KEY = Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN
_CODES = Authenticator.Type.RECOVERY_CODES
_WITHOUT = {"second-factor", "second-factor-key", "logout"}
"""Addresses for who has none yet and has to."""

type Facts = Mapping[str, str]
type Respond = Callable[[HttpRequest], HttpResponse]


class Factors(DefaultMFAAdapter):
    """Secrets lie in the database under a key that only BERTH_SECRET_KEY makes."""

    def encrypt(self, text: str) -> str:
        return _box().encrypt(text.encode()).decode()

    def decrypt(self, encrypted_text: str) -> str:
        return _box().decrypt(encrypted_text.encode()).decode()

    def get_totp_label(self, user: User) -> str:
        return user.get_username()

    def get_public_key_credential_rp_entity(self) -> dict[str, str]:
        """A key is good at the host by which Berth was reached when it was added."""
        return {**super().get_public_key_credential_rp_entity(), "name": "Berth"}

    def get_public_key_credential_user_entity(self, user: User) -> dict[str, Any]:
        """Any: as allauth has it."""
        found: dict[str, Any] = super().get_public_key_credential_user_entity(user)
        return {**found, "name": user.get_username()}


def _box() -> Fernet:
    key = hashlib.sha256(b"berth second factor " + settings.SECRET_KEY.encode()).digest()
    return Fernet(base64.urlsafe_b64encode(key))


def is_required(actor: Actor) -> bool:
    """Whether a role of theirs asks for one, wherever they have it, or one of somebody for whom
    they decide now. Not of the break-glass user, who comes when apps and phones are what failed.
    At most one query."""
    if actor.user.is_break_glass or not settings.BERTH_MFA_ROLES:
        return False
    if _ask_for_one(actor.memberships):
        return True
    return any(map(_ask_for_one, actor.lent(at=clock.now()).values()))


def _ask_for_one(memberships: Iterable[Member]) -> bool:
    return any(member.role in settings.BERTH_MFA_ROLES for member in memberships)


def has_one(user: User) -> bool:
    return _factors(user).exists()


def required(respond: Respond) -> Respond:
    """A middleware: who has to have a second factor and has none does nothing before that, by
    pages and by the API alike. A token has none: it is made in such a session, decides nothing,
    and those from before there was a second factor end as it comes (`_added`)."""

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
        if has_one(request.user) or not is_required(actor_of(request)):
            return None
        if request.path.startswith(errors.PREFIX):
            refused = NotAllowed("Your role asks for a second factor: set one up on the portal.")
            return errors.answer(refused, status=403, request=request)
        return redirect("second-factor")

    responded.process_view = process_view  # type: ignore[attr-defined]  # Django's
    return responded


def held(user: User) -> list[Authenticator]:
    """Theirs, the oldest first; the codes for the day on which those are lost are none."""
    return list(_factors(user).order_by("id"))


def add_app(*, actor: Actor, secret: str, key: str, at: datetime) -> list[str]:
    """Theirs shows codes of that secret from now on. Where it is their first second factor: the
    codes for the day on which it is lost, and the sessions end that a password alone opened, all
    but the one of that key. Raises Conflict when there is an app."""
    with transaction.atomic():
        _lock(actor)
        if any(each.type == APP for each in held(actor.user)):
            raise Conflict("You have an app already; remove it before you set up another.")
        made = TOTP.activate(actor.user, secret).instance
        return _added(made, actor=actor, key=key, at=at)


def add_key(*, actor: Actor, form: NewKey, key: str, at: datetime) -> list[str]:
    """What that form was valid for is one of theirs from now on; else as `add_app`."""
    with transaction.atomic():
        _lock(actor)
        return _added(form.save(), actor=actor, key=key, at=at)


def renew_codes(*, actor: Actor, at: datetime) -> list[str]:
    """New ones instead of the old. Raises Conflict for who has no second factor."""
    with transaction.atomic():
        _lock(actor)
        if not has_one(actor.user):
            raise Conflict("You have no second factor that codes could stand in for.")
        _codes(actor.user).delete()
        codes = _new_codes(actor.user)
        _record(actor, "second-factor.codes", at=at)
    return codes


def remove(*, actor: Actor, id: int, at: datetime) -> bool:
    """One of theirs; the codes go with the last. Whether there is another one.

    Raises NotFound, and NotAllowed for the last one of somebody who has to have one.
    """
    with transaction.atomic():
        _lock(actor)
        all_of_them = held(actor.user)
        found = next((each for each in all_of_them if each.pk == id), None)
        if found is None:
            raise NotFound("You have no such second factor.")
        is_last = len(all_of_them) == 1
        if is_last and is_required(actor):
            raise NotAllowed("Your role asks for a second factor, and this is the last you have.")
        _record(actor, "second-factor.remove", before=_facts(found), at=at)
        found.delete()
        if is_last:
            _codes(actor.user).delete()
    return not is_last


def _factors(user: User) -> QuerySet[Authenticator]:
    found: QuerySet[Authenticator] = Authenticator.objects.filter(user=user)
    return found.exclude(type=_CODES)


def _codes(user: User) -> QuerySet[Authenticator]:
    found: QuerySet[Authenticator] = Authenticator.objects.filter(user=user)
    return found.filter(type=_CODES)


def _new_codes(user: User) -> list[str]:
    codes: list[str] = RecoveryCodes.activate(user).get_unused_codes()
    return codes


def _lock(actor: Actor) -> None:
    """One change at a time: two that each leave another factor would leave none."""
    User.objects.select_for_update().get(id=actor.user.id)


def _added(made: Authenticator, *, actor: Actor, key: str, at: datetime) -> list[str]:
    _record(actor, "second-factor.add", after=_facts(made), at=at)
    if _codes(actor.user).exists():
        return []
    sessions.end_others(actor=actor, key=key, at=at)
    if is_required(actor):
        tokens.revoke_of(user=actor.user, by=actor.label, name=actor.name, at=at)
    return _new_codes(actor.user)


def _facts(of: Authenticator) -> Facts:
    return {"kind": "app"} if of.type == APP else {"kind": "key", "name": str(of)}


def _record(
    actor: Actor,
    action: str,
    *,
    at: datetime,
    before: Facts | None = None,
    after: Facts | None = None,
) -> None:
    entry = Entry(action, "user", actor.user.id, before=before or {}, after=after or {})
    trail.record(entry, actor=actor, at=at)
