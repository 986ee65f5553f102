"""API tokens: made, shown once, revoked. Only the SHA-256 of the secret is kept."""

import hashlib
import secrets
from collections.abc import Collection
from datetime import datetime, timedelta

from django.db import transaction

from controlplane.audit import services as audit
from controlplane.audit.services import Entry
from controlplane.kernel import text
from controlplane.kernel.errors import Invalid, NotAllowed, NotFound
from tenants import access
from tenants.access import Action, Actor, Place
from tenants.models import Project, Scope, Token, User
from tenants.selectors import reach
from tenants.services import trail

PREFIX = "berth_"
"""Secret scanners find it by this."""
SECRET_BYTES = 32
SERVICE_SCOPES = (Scope.READ, Scope.SUBMIT)
"""What tokens of service accounts may be for."""
MAX_AGE = timedelta(days=90)
MAX_LIVE = 50
"""Live tokens a user may have."""


def issue(
    *,
    actor: Actor,
    name: str,
    scopes: Collection[Scope],
    at: datetime,
    project: Project | None = None,
    lifetime: timedelta = MAX_AGE,
    account: User | None = None,
) -> tuple[Token, str]:
    """A new token of the actor, or of a service account of theirs, and its text, which can't be
    had again.

    It may never do more than its user, and only what `scopes` name; `project`, which the caller
    has checked the actor sees, narrows it to that one. Raises NotAllowed for an actor who is a
    token themselves, NotFound and NotAllowed for an account of a place that they do not own,
    Invalid for a name, scope or lifetime that is none, and of an account for one that is closed,
    a scope that none has, or a project that is not its own.
    """
    if actor.token is not None:
        raise NotAllowed("A token can't issue tokens; sign in on the portal.")
    if account is not None:
        _check_account(actor, account, scopes, project)
    user = account or actor.user
    name = name.strip()
    fault = text.fault(name)
    if fault or not 1 <= len(name) <= 100:
        raise Invalid(
            f"{fault}: not accepted in a name." if fault else "A name has 1 to 100 characters.",
            pointer="/name",
            code="bad-character" if fault else "invalid",
        )
    if not scopes:
        raise Invalid("At least one scope is wanted.", pointer="/scopes", code="required")
    if not timedelta(minutes=1) <= lifetime <= MAX_AGE:
        raise Invalid(
            f"A token lives up to {MAX_AGE.days} days.",
            pointer="/expires_in_s",
            code="out-of-range",
        )
    if Token.objects.filter(user=user, revoked_at=None, expires_at__gt=at).count() >= MAX_LIVE:
        has = "It has" if account else "You have"
        raise Invalid(f"{has} {MAX_LIVE} live tokens; revoke one first.")
    secret = secrets.token_hex(SECRET_BYTES)
    with transaction.atomic():
        token = Token.objects.create(
            user=user,
            project=project,
            made_by=actor.user if account else None,
            name=name,
            digest=digest_of(secret),
            scopes=sorted({Scope(scope).value for scope in scopes}),
            created_at=at,
            expires_at=at + lifetime,
        )
        trail.record(_entry(token, "token.issue"), actor=actor, at=at)
    return token, f"{PREFIX}{token.id.hex}_{secret}"


def _check_account(
    actor: Actor, account: User, scopes: Collection[Scope], project: Project | None
) -> None:
    access.authorize_at(actor, Action.MANAGE_MEMBERS, place=account.service_place)
    if not account.is_active:
        raise Invalid("The account is closed: it gets no tokens any more.")
    if others := sorted(set(scopes) - set(SERVICE_SCOPES)):
        raise Invalid(
            f"{others[0]!r} is for people: a service account reads and submits.",
            pointer="/scopes",
            code="invalid-choice",
        )
    by_itself = access.actor_for(user=account)
    if project is not None and not access.allowed(by_itself, Action.VIEW, project=project):
        raise NotFound("There is no such project.")


def revoke(*, actor: Actor, token: Token, at: datetime) -> None:
    """End it at once; ending it twice changes nothing. Raises NotFound for somebody else's token
    but that of a service account whose place the actor owns, NotAllowed for an actor who is a
    token themselves."""
    place = token.user.service_place
    owns = place is not None and access.allowed_at(actor, Action.MANAGE_MEMBERS, place=place)
    if token.user_id != actor.user.id and not owns:
        raise NotFound("There is no such token.")
    if actor.token is not None:
        raise NotAllowed("A token can't revoke tokens; sign in on the portal.")
    _end(actor, token, at)


def revoke_in(*, actor: Actor, token: Token, place: Place, at: datetime) -> None:
    """End at once one that reaches into a place whose owner the actor is, whoever it is of; it is
    ended elsewhere too, and whose it is sees by whom. Raises NotFound for one that does not reach
    there, NotFound and NotAllowed for the place, NotAllowed for an actor who is a token."""
    if actor.token is not None:
        raise NotAllowed("A token can't revoke tokens; sign in on the portal.")
    _end(actor, reach.token(actor=actor, place=place, id=token.id, at=at), at, place)


def _end(actor: Actor, token: Token, at: datetime, place: Place = None) -> None:
    with transaction.atomic():
        live = Token.objects.filter(id=token.id, revoked_at=None)
        if live.update(revoked_at=at, revoked_by=actor.name):
            trail.record(_entry(token, "token.revoke", place), actor=actor, at=at)


def revoke_of(*, user: User, by: str, name: str, at: datetime) -> int:
    """End all live ones of somebody whose access ends, in the caller's transaction; how many. `by`
    and `name` are how the audit calls what ended it."""
    live = list(Token.objects.filter(user=user, revoked_at=None).select_related("project", "user"))
    Token.objects.filter(id__in=[token.id for token in live]).update(
        revoked_at=at, revoked_by=name
    )
    entries = [_entry(token, "token.revoke") for token in live]
    audit.record(actor=by, actor_name=name, entries=entries, at=at)
    return len(live)


def digest_of(secret: str) -> str:
    """As it is stored. The secret has 256 random bits, so one round of SHA-256 is enough."""
    return hashlib.sha256(secret.encode()).hexdigest()


def _entry(token: Token, action: str, place: Place = None) -> Entry:
    """Where it is told: in the project that it is narrowed to, else where its account belongs,
    else at the place whose owner did it."""
    of = token.project or token.user.service_place or place
    tenant_id, project_id = access.ids_at(of)
    return Entry(
        action=action,
        target_type="token",
        target_id=token.id,
        tenant_id=tenant_id,
        project_id=project_id,
        after={"name": token.name, "scopes": token.scopes, "user": str(token.user_id)},
    )
