"""Status objects as a real API server words them. No state."""

from typing import Any, NoReturn

import orjson

type Json = dict[str, Any]  # Any: an object of the API

USER = "system:serviceaccount:berth-system:berth"
"""Whose the token is."""


class Refusal(Exception):
    """A request is answered with an error; `body` is its Status object."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: Json | None = None,
        retry_after_s: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.retry_after_s = retry_after_s

    @property
    def body(self) -> bytes:
        return orjson.dumps(status(self.code, self.reason, self.message, self.details))


def status(code: int, reason: str, message: str, details: Json | None = None) -> Json:
    body: Json = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }
    if details:
        body["details"] = details
    return body


def expired(requested: int, oldest: int) -> Json:
    """What a watch from before the kept history is told."""
    return status(410, "Expired", f"too old resource version: {requested} ({oldest})")


def not_found(resource: str, name: str) -> NoReturn:
    raise Refusal(
        404,
        "NotFound",
        f'{resource} "{name}" not found',
        details={"name": name, "kind": resource},
    )


def already_exists(resource: str, name: str) -> NoReturn:
    raise Refusal(
        409,
        "AlreadyExists",
        f'{resource} "{name}" already exists',
        details={"name": name, "kind": resource},
    )


def modified(resource: str, name: str) -> NoReturn:
    raise Refusal(
        409,
        "Conflict",
        f'Operation cannot be fulfilled on {resource} "{name}": the object has been modified; '
        "please apply your changes to the latest version and try again",
        details={"name": name, "kind": resource},
    )


def check_preconditions(resource: str, metadata: Json, options: Json) -> None:
    """Raises Refusal (409) for an object that is not the one that a deletion means."""
    preconditions = options.get("preconditions") or {}
    for field, name, may_be in (
        ("uid", "UID", "deleted and then recreated"),
        ("resourceVersion", "ResourceVersion", "modified"),
    ):
        asked, found = preconditions.get(field), metadata[field]
        if asked is not None and asked != found:
            raise Refusal(
                409,
                "Conflict",
                f'Operation cannot be fulfilled on {resource} "{metadata["name"]}": the {name} in '
                f"the precondition ({asked}) does not match the {name} in record ({found}). The "
                f"object might have been {may_be}",
                details={"name": metadata["name"], "kind": resource},
            )


def invalid(kind: str, name: str, field: str, problem: str) -> NoReturn:
    """`problem` begins with its class: "Required value", "Invalid value: ...", "Forbidden: "."""
    raise Refusal(
        422,
        "Invalid",
        f'{kind} "{name}" is invalid: {field}: {problem}',
        details={
            "name": name,
            "kind": kind,
            "causes": [
                {
                    "reason": "FieldValue" + problem.split(":")[0].title().replace(" ", ""),
                    "message": problem,
                    "field": field,
                }
            ],
        },
    )


def bad_request(message: str) -> NoReturn:
    raise Refusal(400, "BadRequest", message)


def forbidden(verb: str, resource: str, namespace: str) -> Refusal:
    where = f' in the namespace "{namespace}"' if namespace else " at the cluster scope"
    return Refusal(
        403,
        "Forbidden",
        f'{resource} is forbidden: User "{USER}" cannot {verb} resource "{resource}" '
        f'in API group ""{where}',
        details={"kind": resource},
    )
