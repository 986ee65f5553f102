"""What machines ask: is the process up, can it serve, what are its numbers. Names of Kubernetes
probes."""

from datetime import timedelta

import redis
from django.conf import settings
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from rest_framework.exceptions import AuthenticationFailed, NotAuthenticated

from controlplane.api import errors
from controlplane.api.auth import actor_of, token_of
from controlplane.counts import Counts
from controlplane.kernel import clock
from controlplane.kernel.errors import AppError, NotAllowed
from scheduler.selectors import (
    checks,
)
from tenants import access
from tenants.access import Action


@never_cache
@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    """The process answers. Nothing it depends on is asked: a restart would not cure that."""
    return HttpResponse("ok\n", content_type="text/plain")


@never_cache
@require_safe
def readyz(request: HttpRequest) -> HttpResponse:
    """503 while the database does not answer. The rest is told but decides nothing: without Redis
    Berth is only slower, and while admission is stopped all but that goes on."""
    database = _database_answers()
    body = {"database": _word(database), "redis": _word(_redis_answers())}
    if database:
        body["admission"] = _admission()
    return JsonResponse(body, status=200 if database else 503)


def _admission() -> str:
    """A check that takes too long, or that nobody makes, leaves admission as it was: then this
    tells that the promises are unchecked."""
    newest, late = checks.newest(), timedelta(seconds=3 * settings.BERTH_INVARIANTS_S)
    if checks.stopped_by(newest):
        return "stopped"
    return "ok" if newest is not None and clock.now() - newest.at < late else "unchecked"


def _word(answers: bool) -> str:
    return "ok" if answers else "no answer"


def _database_answers() -> bool:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return False
    return True


def _redis_answers() -> bool:
    try:
        client = redis.Redis.from_url(
            settings.REDIS_URL, socket_timeout=1, socket_connect_timeout=1
        )
        with client:
            client.ping()
    except (redis.RedisError, OSError):
        return False
    return True


_registry = CollectorRegistry(auto_describe=False)
_registry.register(Counts())


@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """For a token or session with a fleet-wide role: totals over all tenants are not for
    tenants."""
    try:
        access.authorize_fleet(_actor(request), Action.VIEW)
    except (AuthenticationFailed, NotAuthenticated):
        error = AppError("Send a token of a fleet-wide role.", code="not-signed-in")
        answer = errors.answer(error, status=401, request=request)
        answer["WWW-Authenticate"] = 'Bearer realm="berth"'
        return answer
    except AppError as error:
        return errors.answer(error, status=403, request=request)
    return HttpResponse(generate_latest(_registry), content_type=CONTENT_TYPE_LATEST)


def _actor(request: HttpRequest) -> access.Actor:
    scheme, _, credential = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer":
        return actor_of(request)
    token = token_of(credential.strip())
    if token is None:
        raise AuthenticationFailed
    actor = access.actor_for(user=token.user, token=token)
    if actor.for_gates_only:
        raise NotAllowed("This token sees and decides gates, and nothing else.")
    return actor
