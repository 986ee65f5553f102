"""The one account for the day on which nobody else gets in: it needs no provider and no second
factor, only a password that is made for it. Each use of it is told loudly."""

import logging
import secrets
from datetime import datetime

from allauth.mfa.models import Authenticator
from django.db import transaction

from controlplane.audit import services as audit
from controlplane.audit.services import Entry
from tenants.models import Member, Role, User
from tenants.services import sessions, users

logger = logging.getLogger(__name__)

ACTOR, _NAME = "system:break-glass", "break-glass"
ROLES = (Role.OWNER, Role.OPERATOR)
"""Of the fleet: it gives back roles, and keeps things running. It approves nothing."""


def make(*, username: str, at: datetime) -> str:
    """The password, told this once, of the account, which is made if there is none; else the
    old password and its sessions end. A username for a new one; the one there is keeps its name.

    Raises Invalid and Conflict for a username that can't be.
    """
    password = secrets.token_urlsafe(32)
    with transaction.atomic():
        user = User.objects.select_for_update().filter(is_break_glass=True).first()
        if user is None:
            users.check_name(username)
            users.check_unlike(username)
            user = User(username=username, is_break_glass=True)
        user.is_active, user.left_at = True, None
        user.set_password(password)
        user.save()
        for role in ROLES:
            Member.objects.get_or_create(
                user=user, role=role, tenant=None, project=None, group_role=None
            )
        Authenticator.objects.filter(user=user).delete()
        sessions.end_of(user=user, by=ACTOR, name=_NAME, at=at)
        _record("break-glass.make", user, at)
    return password


def used(*, user: User, address: str, at: datetime) -> None:
    """Somebody signed in as it: in the audit, and in the log at its highest level."""
    with transaction.atomic():
        _record("break-glass.use", user, at)
    logger.critical("the break-glass account %s signed in from %s", user.username, address)


def _record(action: str, user: User, at: datetime) -> None:
    entry = Entry(action, "user", user.id, after={"username": user.username})
    audit.record(actor=ACTOR, actor_name=_NAME, entries=[entry], at=at)
