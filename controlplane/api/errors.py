"""The one map from errors to answers: RFC 9457 problem documents. No view catches what this
maps."""

import logging
from collections.abc import Iterator, Mapping
from typing import Any

from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.db import Error as DatabaseFailed
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from psycopg.errors import ReadOnlySqlTransaction
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import set_rollback

from controlplane.api import problems
from controlplane.api.render import dumps
from controlplane.kernel.errors import (
    AppError,
    Conflict,
    Invalid,
    NotAllowed,
    NotFound,
    Problem,
    Unavailable,
)

logger = logging.getLogger(__name__)

PREFIX = "/api/"
"""What each path that is answered by these documents begins with; all others are pages."""
MEDIA_TYPE = "application/problem+json"
_STATUS: Mapping[type[AppError], int] = {
    Invalid: 400,
    NotAllowed: 403,
    NotFound: 404,
    Conflict: 409,
    Unavailable: 503,
}


def problem(exc: Exception, context: Mapping[str, Any]) -> Response:  # Any: DRF's context
    """DRF's exception handler. Nothing of an unexpected error reaches the caller; the log has
    it."""
    request = context["request"]
    translated = _translate(exc)
    if translated is None:
        logger.exception("unexpected error at %s %s", request.method, request.path)
        translated = AppError("An error in Berth; its log says more.", code="internal"), 500
    error, status = translated
    set_rollback()
    headers = _headers(exc)
    return Response(
        document(error, status=status, instance=request.path),
        status=status,
        headers=headers,
        content_type=MEDIA_TYPE,
    )


def document(error: AppError, *, status: int, instance: str) -> dict[str, Any]:  # Any: JSON
    """The body of an answer to `error`."""
    found = error.problems if isinstance(error, Invalid) else ()
    if not found and error.pointer:
        found = (Problem(pointer=error.pointer, code=error.code, message=error.message),)
    return {
        "type": problems.type_of(error.code),
        "title": problems.title_of(error.code, status=status),
        "status": status,
        "detail": error.message,
        "instance": instance,
        "code": error.code,
        "errors": [
            {"pointer": each.pointer, "code": each.code, "message": each.message}
            for each in found
            if each.pointer or len(found) > 1
        ],
        **error.extra,
    }


def answer(error: AppError, *, status: int, request: HttpRequest) -> HttpResponse:
    """The same document outside DRF: for middleware, health and unknown API paths."""
    body = document(error, status=status, instance=request.path)
    return HttpResponse(dumps(body), status=status, content_type=MEDIA_TYPE)


def too_large() -> AppError:
    """Of a body over the limit, whoever notices first."""
    return AppError("The body is larger than 1 MiB.", code="too-large")


def _headers(exc: Exception) -> dict[str, str]:
    headers = {}
    if getattr(exc, "auth_header", None):
        headers["WWW-Authenticate"] = exc.auth_header  # type: ignore[attr-defined]  # set by DRF
    if getattr(exc, "wait", None):
        headers["Retry-After"] = f"{exc.wait:.0f}"  # type: ignore[attr-defined]  # Throttled's
    return headers


def _translate(exc: Exception) -> tuple[AppError, int] | None:
    """The error to tell and its HTTP status; None for what nobody expected."""
    match exc:
        case AppError():
            return exc, _status(exc)
        case exceptions.ValidationError():
            found = tuple(flatten(exc.get_full_details()))
            return Invalid(_summary(found), problems=found), 400
        case exceptions.APIException():
            return _from_drf(exc)
        case Http404():
            return NotFound("There is nothing at this path."), 404
        case PermissionDenied():
            return NotAllowed("This is not permitted."), 403
        case RequestDataTooBig():
            return too_large(), 413
        case SuspiciousOperation():
            return Invalid("The request is malformed.", code="malformed"), 400
        case OperationalError() | InterfaceError():
            logger.error("the database does not answer", exc_info=exc)
            return Unavailable("The database does not answer; try again."), 503
        case DatabaseFailed(__cause__=ReadOnlySqlTransaction()):  # a standby, after a failover
            logger.error("the database takes no writes", exc_info=exc)
            return Unavailable("The database takes no writes; try again."), 503
    return None


def _status(error: AppError) -> int:
    own = problems.status_of(error.code)
    if own is not None:
        return own
    return next((code for kind, code in _STATUS.items() if isinstance(error, kind)), 400)


def _from_drf(exc: exceptions.APIException) -> tuple[AppError, int]:
    detail = str(exc.detail)
    match exc:
        case exceptions.ParseError():
            return Invalid(detail, code="malformed"), 400
        case exceptions.NotAuthenticated():
            message = "Sign in, or send a token: Authorization: Bearer berth_…"
            return AppError(message, code="not-signed-in"), exc.status_code
        case exceptions.AuthenticationFailed():
            return AppError(detail, code="bad-token"), exc.status_code
        case exceptions.PermissionDenied():
            return NotAllowed(detail), 403
        case exceptions.NotFound():
            return NotFound("There is nothing at this path."), 404
    code = str(exc.default_code).replace("_", "-")
    return AppError(detail, code=code), exc.status_code


def flatten(
    details: Any, pointer: str = ""
) -> Iterator[Problem]:  # Any: DRF nests lists and dicts
    """DRF's nested details as one Problem a field at fault, with JSON pointers."""
    match details:
        case {"message": str(message), "code": str(code)}:
            yield Problem(pointer=pointer, code=code.replace("_", "-"), message=str(message))
        case dict():
            for name, nested in details.items():
                own = name == "non_field_errors"
                yield from flatten(nested, pointer if own else f"{pointer}/{escape(str(name))}")
        case list():
            leaves = all(
                isinstance(item, dict) and set(item) == {"message", "code"} for item in details
            )
            for index, nested in enumerate(details):
                yield from flatten(nested, pointer if leaves else f"{pointer}/{index}")


def escape(name: str) -> str:
    """A member name as one step of a JSON pointer (RFC 6901)."""
    return name.replace("~", "~0").replace("/", "~1")


def _summary(found: tuple[Problem, ...]) -> str:
    first = found[0]
    where = f"{first.pointer}: " if first.pointer else ""
    rest = f" And {len(found) - 1} more." if len(found) > 1 else ""
    return f"{where}{first.message}{rest}"
