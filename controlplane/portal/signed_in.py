"""Keeps the list of sessions: each is in it from the response that signed somebody in, and told as
seen once a minute by each process."""

from collections.abc import Callable
from datetime import datetime, timedelta

from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse

from controlplane.kernel import clock
from tenants.models import User
from tenants.services import sessions

_EVERY = timedelta(minutes=1)
_MOST = 10_000
_noted: dict[str, datetime] = {}
"""By a session's key, when this process last told it. Not in the session itself: to be written
would make that last longer."""

type Respond = Callable[[HttpRequest], HttpResponse]


def listed(respond: Respond) -> Respond:
    """A middleware. It reads nothing for a request that did not ask who is signed in."""

    def responded(request: HttpRequest) -> HttpResponse:
        response = respond(request)
        key = request.session.session_key
        if request.session.accessed and key and isinstance(request.user, User):
            _note(request, request.user, key)
        return response

    return responded


def _note(request: HttpRequest, user: User, key: str) -> None:
    at = clock.now()
    if key in _noted and at - _noted[key] < _EVERY:
        return
    if len(_noted) >= _MOST:
        _noted.clear()
    _noted[key] = at
    try:
        sessions.seen(
            user=user,
            key=key,
            address=request.META.get("REMOTE_ADDR", ""),
            agent="".join(filter(str.isprintable, request.headers.get("User-Agent", ""))),
            at=at,
        )
    except DatabaseError:  # such as one that takes no writes: what was asked is answered
        _noted.pop(key, None)
