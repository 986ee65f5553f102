"""Idempotency-Key: the answer to a POST is kept for a day, in the transaction that made the
object.

An error keeps nothing, so the same key may be used again once the request is right.
"""

import hashlib
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.models import IdempotencyKey
from controlplane.api.render import dumps
from controlplane.kernel import statements
from controlplane.kernel.errors import AppError, Conflict, Invalid
from controlplane.kernel.ids import uuid7

HEADER = "Idempotency-Key"
KEPT = timedelta(hours=24)
_MAX_KEY = 200
_SWEPT = 20
"""Expired rows that each keyed request takes away: more than it adds."""


class KeyReused(AppError):
    default_code = "key-reused"


class InFlight(Conflict):
    default_code = "in-flight"


def once(
    request: Request,
    *,
    principal: str,
    at: datetime,
    status: int,
    prepare: Callable[[], Callable[[], Any]],  # Any: JSON values
) -> Response:
    """Answer with what is made, or with what is kept under the request's key.

    `prepare` does what takes long and changes nothing, with no transaction open; what it returns
    makes the object and the answer, in the transaction that keeps it. Raises Invalid for a key
    that is none, InFlight while the first request with the key is still running, KeyReused when
    the key came with another body.
    """
    key = request.headers.get(HEADER)
    if key is None:
        return Response(prepare()(), status=status)
    if not 1 <= len(key) <= _MAX_KEY or not key.isascii() or not key.isprintable():
        raise Invalid(
            f"{HEADER} has to be 1 to {_MAX_KEY} printable ASCII characters.",
            pointer=f"#{HEADER}",
        )
    digest = hashlib.sha256(request._request.body).hexdigest()
    route = f"{request.method} {request.path}"
    kept = _kept(principal, route, key)
    if kept and kept.created_at > at - KEPT:
        return _replayed(kept, digest)
    make = prepare()
    with transaction.atomic():
        _lock(f"{principal}\0{route}\0{key}")
        if kept := _kept(principal, route, key):
            if kept.created_at > at - KEPT:  # made while this one was prepared
                return _replayed(kept, digest)
            kept.delete()
        answer = make()
        _keep(principal, route, key, digest, status, dumps(answer).decode(), at)
    return Response(answer, status=status)


def _replayed(kept: IdempotencyKey, digest: str) -> Response:
    if kept.digest != digest:
        raise KeyReused("This key came with another body before.", pointer=f"#{HEADER}")
    return Response(kept.answer, status=kept.status, headers={"Idempotency-Replayed": "true"})


def _lock(name: str) -> None:
    """Hold `name` until the transaction ends. Raises InFlight when another transaction holds
    it."""
    number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], signed=True)
    with statements.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [number])
        (held,) = cursor.fetchone()
    if not held:
        raise InFlight("The first request with this key is still being worked on.")


def _kept(principal: str, route: str, key: str) -> IdempotencyKey | None:
    found = statements.read(
        IdempotencyKey, "principal = %s AND route = %s AND key = %s", [principal, route, key]
    )
    return found[0] if found else None


_KEEP = """
WITH swept AS (
    DELETE FROM api_idempotencykey WHERE id IN (
        SELECT id FROM api_idempotencykey WHERE created_at <= %s ORDER BY created_at LIMIT %s
        FOR UPDATE SKIP LOCKED))
INSERT INTO api_idempotencykey (id, principal, route, key, digest, status, answer, created_at)
VALUES (%s, %s, %s, %s, %s, %s, %s::jsonb, %s)
"""


def _keep(
    principal: str, route: str, key: str, digest: str, status: int, answer: str, at: datetime
) -> None:
    """Keep the answer, JSON, and take away some that have expired."""
    row = (uuid7(), principal, route, key, digest, status, answer, at)
    with statements.cursor() as cursor:
        cursor.execute(_KEEP, (at - KEPT, _SWEPT, *row))
