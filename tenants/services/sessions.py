"""Sessions of browsers: listed as they are used, and ended. One that is ended opens nothing from
the next request on."""

from datetime import datetime

from django.contrib.sessions.models import Session
from django.db import connection, transaction

from controlplane.audit import services as audit
from controlplane.audit.services import Entry
from controlplane.kernel.errors import NotAllowed
from controlplane.kernel.ids import uuid7
from tenants import access
from tenants.access import Action, Actor
from tenants.models import MAX_AGENT, User, UserSession

_SEEN = """
INSERT INTO tenants_usersession AS known
       (id, user_id, session_id, began_at, seen_at, address, agent)
SELECT %(id)s::uuid, %(user)s::uuid, session_key, %(at)s, %(at)s, %(address)s, %(agent)s
  FROM django_session WHERE session_key = %(key)s
ON CONFLICT (session_id) DO UPDATE
   SET seen_at = excluded.seen_at, address = excluded.address, agent = excluded.agent
 WHERE known.seen_at < excluded.seen_at
"""


def seen(*, user: User, key: str, address: str, agent: str, at: datetime) -> None:
    """List the session of that key as used just now; one that has ended meanwhile is not."""
    values: dict[str, str | datetime] = {
        "id": str(uuid7()),
        "user": str(user.id),
        "key": key,
        "at": at,
        "address": address[:45],
        "agent": agent[:MAX_AGENT],
    }
    with connection.cursor() as cursor:
        cursor.execute(_SEEN, values)


def end(*, actor: Actor, session: UserSession, at: datetime) -> None:
    """End one of the actor's own. Raises NotAllowed for a token."""
    _of_a_person(actor)
    _end([session], of=actor.user, by=actor.label, name=actor.name, at=at)


def end_others(*, actor: Actor, key: str, at: datetime) -> int:
    """End all of the actor's own but the one of that key; how many. Raises as `end`."""
    _of_a_person(actor)
    others = UserSession.objects.filter(user=actor.user).exclude(session_id=key)
    return _end(list(others), of=actor.user, by=actor.label, name=actor.name, at=at)


def end_all(*, actor: Actor, user: User, at: datetime) -> int:
    """End all of anybody, as an operator or an owner of the fleet may; how many.

    Raises NotAllowed for who is neither, and for a token.
    """
    _of_a_person(actor)
    if not actor.permits_everywhere(Action.MANAGE_MEMBERS):
        access.authorize_fleet(actor, Action.OPERATE)
    return end_of(user=user, by=actor.label, name=actor.name, at=at)


def end_of(*, user: User, by: str, name: str, at: datetime) -> int:
    """End all of somebody whose access the caller ends; how many. `by` and `name` are how the
    audit calls what ended them."""
    return _end(list(UserSession.objects.filter(user=user)), of=user, by=by, name=name, at=at)


def _of_a_person(actor: Actor) -> None:
    if actor.token is not None:
        raise NotAllowed("A token ends no sessions; sign in on the portal.")


def _end(sessions: list[UserSession], *, of: User, by: str, name: str, at: datetime) -> int:
    with transaction.atomic():
        keys = [session.session_id for session in sessions]
        _, by_model = Session.objects.filter(session_key__in=keys).delete()
        entries = [
            Entry("session.end", "session", session.id, after={"user": str(of.id)})
            for session in sessions
        ]
        audit.record(actor=by, actor_name=name, entries=entries, at=at)
    return by_model.get("sessions.Session", 0)
