"""The rows of requests for quota, of the API and of pages."""

from datetime import UTC, datetime, timedelta
from typing import Any

from tests.api.row import TENANTS, Row
from tests.api.world import World

_DECIDES = "403 200 403 403 403 403 403 200 404 401 401 403 403 403"
_WHO_ASKED = "403 403 403 200 403 403 403 403 404 401 401 403 404 403"
_REQUEST = {"id": "request"}
_GIVEN = {"id": "granted request"}


def _asked(world: World) -> dict[str, Any]:  # Any: JSON values
    return {
        "project": str(world.project.id),
        "flavor": "h100-80gb",
        "nominal_milli": 9000,
        "reason": "More.",
    }


REQUESTS = {
    ("GET", "quota-requests"): Row(TENANTS, query=lambda world: f"?project={world.project.id}"),
    ("POST", "quota-requests"): Row(
        "201 403 403 201 403 201 403 403 404 401 401 403 404 201", body=_asked
    ),
    ("GET", "quota-requests/<uuid:id>"): Row(TENANTS, _REQUEST),
    ("POST", "quota-requests/<uuid:id>/amend"): Row(
        _WHO_ASKED,
        _REQUEST,
        body=lambda world: {"nominal_milli": 9000, "reason": "Less.", "version": 1},
    ),
    ("POST", "quota-requests/<uuid:id>/withdraw"): Row(_WHO_ASKED, _REQUEST),
    ("POST", "quota-requests/<uuid:id>/grant"): Row(
        _DECIDES, _REQUEST, body=lambda world: {"version": 1, "quota_version": 1}
    ),
    ("GET", "quota-requests/<uuid:id>/impact"): Row(
        # Whose turn it is, who is no token.
        "403 200 403 403 403 403 403 200 404 401 401 403 404 403",
        _REQUEST,
    ),
    ("POST", "quota-requests/<uuid:id>/deny"): Row(
        _DECIDES, _REQUEST, body=lambda world: {"note": "No.", "version": 1}
    ),
    ("POST", "quota-requests/<uuid:id>/end"): Row(_DECIDES, _GIVEN),
    ("POST", "quota-requests/decide"): Row(
        # Each request is answered for itself, in the body.
        "200 200 200 200 200 200 200 200 200 401 401 403 403 403",
        body=lambda world: {
            "answer": "grant",
            "requests": [{"id": str(world.ids["request"]), "version": 1, "quota_version": 1}],
        },
    ),
}

_RULES = {"id": "approval rule"}


def _rule(world: World) -> dict[str, Any]:  # Any: JSON values
    return {"tenant": str(world.tenant.id), "level": "tenant", "from_milli": 10**12}


REQUESTS |= {
    ("GET", "approval-rules"): Row("200 200 200 200 200 200 200 200 200 401 401 200 200 200"),
    ("POST", "approval-rules"): Row(
        "200 403 403 403 403 200 403 403 404 401 401 403 403 403", body=_rule
    ),
    ("DELETE", "approval-rules/<uuid:id>"): Row(
        "204 403 403 403 403 204 403 403 404 401 401 403 403 403", _RULES
    ),
}

_DELEGATION = {"id": "delegation"}


def _until() -> str:
    return f"{datetime.now(UTC) + timedelta(days=1):%FT%R}"


REQUESTS |= {
    ("GET", "delegations"): Row("200 200 200 200 200 200 200 200 200 401 401 200 200 200"),
    ("POST", "delegations"): Row(
        "403 201 403 403 403 403 403 400 403 401 401 403 403 403",
        body=lambda world: {"delegate": "vik", "until_at": _until() + "Z"},
    ),
    ("POST", "delegations/<uuid:id>/withdraw"): Row(
        "404 404 404 404 404 404 404 200 404 401 401 403 403 403", _DELEGATION
    ),
}

PAGES = {
    ("GET", "delegations"): Row("200 200 200 200 200 200 200 200 200 302 302 302 302 302"),
    ("POST", "delegations"): Row(
        "403 303 403 403 403 403 403 422 403 302 302 302 302 302",
        body=lambda world: {"delegate": "vik", "until_at": _until()},
        form=True,
    ),
    ("POST", "delegations/<uuid:id>/withdraw"): Row(
        "404 404 404 404 404 404 404 303 404 302 302 302 302 302", _DELEGATION, form=True
    ),
    ("GET", "approval-rules"): Row("200 200 200 200 200 200 200 200 200 302 302 302 302 302"),
    ("POST", "approval-rules"): Row(
        "303 403 403 403 403 303 422 403 403 302 302 302 302 302",
        body=lambda world: {"place": str(world.tenant.id), "level": "tenant", "from_gpus": "8"},
        form=True,
    ),
    ("POST", "approval-rules/<uuid:id>/remove"): Row(
        "303 403 403 403 403 303 403 403 404 302 302 302 302 302", _RULES, form=True
    ),
    ("GET", "requests/<uuid:id>/impact"): Row(
        "403 200 403 403 403 403 403 200 404 302 302 302 302 302", _REQUEST
    ),
    ("POST", "requests/<uuid:id>/decision"): Row(
        "403 303 403 403 403 403 403 303 404 302 302 302 302 302",
        _REQUEST,
        body=lambda world: {
            "decision": "grant",
            "note": "Fine.",
            "version": 1,
            "quota_version": 1,
        },
        form=True,
    ),
    ("POST", "requests/decisions"): Row(
        "303 303 303 303 303 303 303 303 303 302 302 302 302 302",
        body=lambda world: {"decision": "grant", "chosen": [f"{world.ids['request']} 1 1 1"]},
        form=True,
    ),
    ("GET", "requests/<uuid:id>/amend"): Row(
        "403 403 403 200 403 403 403 403 404 302 302 302 302 302", _REQUEST
    ),
    ("POST", "requests/<uuid:id>/amend"): Row(
        "403 403 403 303 403 403 403 403 404 302 302 302 302 302",
        _REQUEST,
        body=lambda world: {"amount": "9", "reason": "Less.", "version": 1},
        form=True,
    ),
    ("POST", "requests/<uuid:id>/withdraw"): Row(
        "403 403 403 303 403 403 403 403 404 302 302 302 302 302", _REQUEST, form=True
    ),
    ("POST", "requests/<uuid:id>/end"): Row(
        "403 303 403 403 403 403 403 303 404 302 302 302 302 302", _GIVEN, form=True
    ),
}
