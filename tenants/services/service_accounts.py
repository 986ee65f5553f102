"""Accounts of programs: they belong to a project or a tenant, and to nobody. Who owns that place
makes and closes them, and makes their tokens (ADR 0097)."""

import re
from datetime import datetime

from django.db import IntegrityError, transaction

from controlplane.audit.services import Entry
from controlplane.kernel.errors import Conflict, Invalid
from tenants import access
from tenants.access import Action, Actor
from tenants.models import SERVICE, Project, Role, Tenant, User
from tenants.services import members, tokens, trail

NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")
MAX_OPEN = 50
"""Accounts of a place that are not closed."""


def make(*, actor: Actor, place: Project | Tenant, name: str, role: Role, at: datetime) -> User:
    """A new one of the place with a role there, and without a token.

    Raises NotFound when the actor does not see the place, NotAllowed when they do not say who has
    a role there, or are a token, Invalid for a name or role that none has and for too many,
    Conflict for a name that is taken or reads like one that is.
    """
    access.authorize_at(actor, Action.MANAGE_MEMBERS, place=place)
    if not NAME.fullmatch(name):
        raise Invalid("1 to 40 of a-z, 0-9 and -, such as nightly-tests.", pointer="/name")
    project, tenant = access.project_and_tenant(place)
    account = User(
        username=f"{SERVICE}{_path(place)}:{name}",
        service_project=project,
        service_tenant=tenant,
        date_joined=at,
    )
    account.set_unusable_password()
    if place.service_accounts.filter(is_active=True).count() >= MAX_OPEN:
        raise Invalid(f"{place.name} has {MAX_OPEN} service accounts: close one first.")
    try:
        with transaction.atomic():
            account.save()
            _record(actor, "service-account.make", account, at)
            members.grant(actor=actor, user=account, role=role, place=place, at=at)
    except IntegrityError as error:
        raise Conflict(
            f"A service account is called {name!r} already, or reads like it: take another name.",
            pointer="/name",
        ) from error
    return account


def close(*, actor: Actor, account: User, at: datetime) -> int:
    """For good, with all its tokens; how many of those lived. Its work runs on. Closing it twice
    changes nothing. Raises NotFound and NotAllowed as `make`."""
    access.authorize_at(actor, Action.MANAGE_MEMBERS, place=account.service_place)
    with transaction.atomic():
        if not User.objects.filter(id=account.id, is_active=True).update(is_active=False):
            return 0
        ended = tokens.revoke_of(user=account, by=actor.label, name=actor.name, at=at)
        _record(actor, "service-account.close", account, at)
    return ended


def _path(place: Project | Tenant) -> str:
    """What of an account's name says where it belongs. It stays when the place moves."""
    return f"{place.tenant.slug}.{place.slug}" if isinstance(place, Project) else place.slug


def _record(actor: Actor, action: str, account: User, at: datetime) -> None:
    tenant_id, project_id = access.ids_at(account.service_place)
    entry = Entry(
        action,
        "user",
        account.id,
        tenant_id=tenant_id,
        project_id=project_id,
        after={"username": account.username},
    )
    trail.record(entry, actor=actor, at=at)
