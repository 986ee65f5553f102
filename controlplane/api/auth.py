"""Who asks, and about which project: bearer tokens, the Actor behind any request, the project that
a page is asked for. What they may do is access.py's."""

import hmac
from datetime import timedelta
from uuid import UUID

from django.db.models import Q
from django.http import HttpRequest
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed, NotAuthenticated
from rest_framework.request import Request

from controlplane.kernel import clock, statements
from controlplane.kernel.htmx import id_in
from tenants import access
from tenants.models import Project, Token, User
from tenants.services.tokens import PREFIX, digest_of

_USED_EVERY = timedelta(minutes=1)
# One message for every way to fail: which one it was would tell a thief something.
_REFUSED = "The token is unknown, expired or revoked."
_NO_DIGEST = "0" * 64


class TokenAuthentication(BaseAuthentication):
    """`Authorization: Bearer berth_<id>_<secret>`. Never from the URL, never from a cookie."""

    def authenticate(self, request: Request) -> tuple[User, Token] | None:
        scheme, _, credential = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return None
        token = token_of(credential.strip())
        if token is None:
            raise AuthenticationFailed(_REFUSED)
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="berth"'


def token_of(credential: str) -> Token | None:
    """The live token that `credential` opens, with its user; None when there is none."""
    head, _, secret = credential.removeprefix(PREFIX).partition("_")
    try:
        token_id = UUID(hex=head) if credential.startswith(PREFIX) else None
    except ValueError:
        token_id = None
    found = statements.read(Token, "id = %s", [token_id]) if token_id else []
    token = found[0] if found else None
    matches = hmac.compare_digest(digest_of(secret), token.digest if token else _NO_DIGEST)
    at = clock.now()
    if token is None or not matches:
        return None
    [token.user] = statements.read(User, "id = %s", [token.user_id])
    if not token.user.is_active or token.revoked_at is not None or token.expires_at <= at:
        return None
    if token.last_used_at is None or token.last_used_at < at - _USED_EVERY:
        stale = Q(last_used_at__isnull=True) | Q(last_used_at__lt=at - _USED_EVERY)
        Token.objects.filter(stale, id=token.id).update(last_used_at=at)
    return token


def actor_of(request: Request | HttpRequest) -> access.Actor:
    """The actor behind a request of the API (token or session) or of a page (session only).

    Read once a request. Raises NotAuthenticated when nobody is signed in.
    """
    plain = request._request if isinstance(request, Request) else request
    user = request.user
    auth: object = request.auth if isinstance(request, Request) else None
    token = auth if isinstance(auth, Token) else None
    known = getattr(plain, "_berth_actor", None)
    if isinstance(known, access.Actor) and known.user == user and known.token == token:
        return known
    if not isinstance(user, User):
        raise NotAuthenticated
    actor = access.actor_for(user=user, token=token)
    plain._berth_actor = actor  # type: ignore[attr-defined]  # kept for the rest of this request
    return actor


def operator_of(request: HttpRequest) -> access.Actor:
    """The actor of a page for operators of the fleet. Raises as actor_of does, and NotAllowed."""
    actor = actor_of(request)
    access.authorize_fleet(actor, access.Action.OPERATE)
    return actor


def named_project(request: HttpRequest) -> Project | None:
    """The project that a page's address, or the form posted to it, names; None when it names none.

    Raises NotFound, the same for foreign and missing ids. What is no id is NotFound in an address;
    in a form it counts as none, as the form itself says more about it.
    """
    if request.method != "POST":
        id = id_in(request.GET, "project")
    else:
        try:
            id = UUID(request.POST.get("project", ""))
        except ValueError:
            id = None
    return access.project_or_404(actor_of(request), id) if id else None
