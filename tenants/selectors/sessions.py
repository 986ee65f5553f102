"""Reading who is signed in where: one's own sessions, and everybody's account."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Count, F, Max, Q, QuerySet

from controlplane.kernel.errors import NotAllowed, NotFound
from tenants.access import Action, Actor
from tenants.models import User, UserSession

_BROWSERS = (
    ("Edg/", "Edge"), ("Firefox/", "Firefox"), ("Chrome/", "Chrome"), ("Safari/", "Safari"),
)  # fmt: skip
_SYSTEMS = (
    ("Windows", "Windows"), ("iPhone", "iPhone"), ("iPad", "iPad"), ("Android", "Android"),
    ("Mac OS", "macOS"), ("Linux", "Linux"),
)  # fmt: skip
"""What a browser's name for itself has in it, the narrower first, as it imitates others."""


@dataclass(frozen=True, slots=True)
class SessionLine:
    """`is_this` is the one that asks."""

    session: UserSession
    device: str
    is_this: bool


def own(*, actor: Actor, key: str | None, at: datetime) -> list[SessionLine]:
    """Those of the actor that are open, the last seen first; `key` is the asking one's."""
    rows = UserSession.objects.filter(user=actor.user, session__expire_date__gt=at)
    return [
        SessionLine(session=row, device=device(row.agent), is_this=row.session_id == key)
        for row in rows.order_by("-seen_at", "-id")
    ]


def one(*, actor: Actor, id: UUID) -> UserSession:
    """One of the actor's own. Raises NotFound."""
    found = UserSession.objects.filter(user=actor.user, pk=id).first()
    if found is None:
        raise NotFound("There is no such session.")
    return found


def may_see_accounts(actor: Actor) -> bool:
    """Whether they operate or own the fleet, and are no token."""
    fleet = (Action.OPERATE, Action.MANAGE_MEMBERS)
    return actor.token is None and any(map(actor.permits_everywhere, fleet))


def accounts(*, actor: Actor, at: datetime) -> QuerySet[User]:
    """Everybody who may sign in or once did, the last seen first, with `open_sessions` and
    `last_seen_at`. Raises NotAllowed for who may not see them."""
    if not may_see_accounts(actor):
        raise NotAllowed("Accounts are for who operates or owns the fleet.")
    is_open = Q(sessions__session__expire_date__gt=at)
    seen = Max("sessions__seen_at")
    rows = User.objects.exclude(username__contains=":").annotate(
        open_sessions=Count("sessions", filter=is_open), last_seen_at=seen
    )
    return rows.order_by(F("last_seen_at").desc(nulls_last=True), "username")


def device(agent: str) -> str:
    """A browser and its system in words, as far as its name for itself tells."""
    browser = next((name for sign, name in _BROWSERS if sign in agent), "A browser")
    system = next((name for sign, name in _SYSTEMS if sign in agent), "")
    return f"{browser} on {system}" if system else browser
