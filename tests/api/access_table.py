"""Who may do what, route by route: the table that the access matrix is checked against, of the
API; that of pages is page_access_table.py.

A row is (method, route) → the statuses of world.COLUMNS, in their order. A route of the URLconf
without a row fails the suite, and so does a method that a route answers without having a row.
"""

from typing import Any

from tenants.models import CAPS, Project
from tests import factories
from tests.api.channel_access import CHANNELS
from tests.api.cluster_access import CLUSTERS
from tests.api.place_access import PLACES
from tests.api.policy_access import POLICIES
from tests.api.request_access import REQUESTS
from tests.api.row import TENANTS, Row
from tests.api.token_access import TOKENS
from tests.api.world import World


def _project(world: World) -> str:
    return f"?project={world.project.id}"


def _quota(world: World) -> dict[str, Any]:  # Any: JSON values
    return {
        "project": str(world.project.id),
        "flavor": "h100-80gb",
        "nominal_milli": 9000,
        "borrowing_limit_milli": None,
        "lending_limit_milli": None,
        "version": 1,
    }


def _tenant_quota(world: World) -> dict[str, Any]:  # Any: JSON values
    return {
        "tenant": str(world.tenant.id),
        "flavor": "h100-80gb",
        "nominal_milli": 9000,
        "borrowing_limit_milli": None,
        "lending_limit_milli": None,
        "version": 0,
    }


def _weighed(world: World) -> dict[str, Any]:  # Any: JSON values
    return {"project": str(world.project.id), "weight": 2}


def _budget(world: World) -> dict[str, Any]:  # Any: JSON values
    return {
        "project": str(world.project.id),
        "period": "month",
        "limit_h": 100,
        "mode": "soft",
        "version": 0,
    }


def reserved(project: Project) -> dict[str, Any]:  # Any: JSON values
    return {
        "project": str(project.id),
        "flavor": "h100-80gb",
        "amount_milli": 1000,
        "starts_at": "2100-01-01T00:00:00Z",
        "ends_at": "2100-01-02T00:00:00Z",
    }


def _batch(world: World) -> dict[str, Any]:  # Any: JSON values
    one = factories.submission(world.project)
    del one["project"]
    return {"project": str(world.project.id), "workloads": [one, one]}


def _member(world: World) -> dict[str, Any]:  # Any: JSON values
    return {"user": "cleo", "role": "viewer", "project": str(world.project.id)}


def _price(world: World) -> dict[str, Any]:  # Any: JSON values
    return {"flavor": "h100-80gb", "cluster": None, "price_per_hour": "3.10", "currency": "EUR"}


_EVERYBODY = "200 200 200 200 200 200 200 200 200 401 401 200 200 200"
_SPEND = "200 200 200 200 403 200 200 200 404 401 401 200 404 200"
_AUDIT = "200 200 200 403 403 200 200 200 404 401 401 200 404 200"
_OPEN = "200 200 200 200 200 200 200 200 200 200 401 200 200 200"
_SETS_QUOTA = "403 403 200 403 403 403 200 403 404 401 401 403 404 403"
_MANAGE_QUEUE = "200 403 200 403 403 200 200 403 404 401 401 403 404 200"
_EDIT_QUOTA = "403 403 200 403 403 403 200 403 404 401 401 403 404 403"
_MANAGE_QUEUE_OF_TENANT = "200 403 200 403 403 200 200 403 404 401 401 403 403 200"
_EDIT_QUOTA_OF_TENANT = "403 403 200 403 403 403 200 403 404 401 401 403 403 403"
_EDIT_TENANTS = "403 403 403 403 403 403 200 403 404 401 401 403 403 403"
_REORDERS = "200 403 200 200 403 200 200 403 404 401 401 403 404 200"
_DECIDES_GATE = "200 403 403 200 403 200 403 403 404 401 401 403 404 200"
"""ben, the member, owns the gates."""
OPENED = {"state": "open", "note": "Copied."}
_IDLE_LIMIT = {"idle_timeout_s": 3600, "idle_warning_s": 600}
WORKLOAD = {"id": "workload"}
ARRAY = {"id": "array"}
_INSPECTED = {"id": "workload", "placement": "placement"}

API: dict[tuple[str, str], Row] = {
    ("GET", "schema"): Row(_OPEN),
    ("GET", "docs"): Row(_OPEN),
    ("GET", "problems/<slug:code>"): Row(_OPEN, {"code": "=not-found"}),
    ("GET", "me"): Row(_EVERYBODY),
    ("POST", "me/mail"): Row(
        "200 200 200 200 200 200 200 200 200 401 401 403 403 403",
        body=lambda world: {"mailed_of": ["work.ended"]},
    ),
    ("GET", "tenants"): Row(_EVERYBODY),
    ("GET", "tenants/<uuid:id>"): Row(
        # A token of a project sees the tenants above it.
        "200 200 200 200 200 200 200 200 404 401 401 200 200 200",
        {"id": "tenant"},
    ),
    ("GET", "projects"): Row(_EVERYBODY),
    ("POST", "projects"): Row(
        "201 403 403 403 403 201 403 403 404 401 401 403 403 403",
        body=lambda world: {"tenant": str(world.tenant.id), "name": "New", "slug": "new"},
    ),
    ("GET", "projects/<uuid:id>"): Row(TENANTS, {"id": "project"}),
    ("POST", "projects/<uuid:id>/queue"): Row(
        _MANAGE_QUEUE, {"id": "project"}, body=lambda world: {"state": "held", "note": "Why."}
    ),
    ("POST", "projects/<uuid:id>/confirm-quota"): Row(_MANAGE_QUEUE, {"id": "project"}),
    ("POST", "tenants/<uuid:id>/queue"): Row(
        _MANAGE_QUEUE_OF_TENANT,
        {"id": "tenant"},
        body=lambda world: {"state": "held", "note": "Why."},
    ),
    ("POST", "projects/<uuid:id>/caps"): Row(
        _MANAGE_QUEUE, {"id": "project"}, body=lambda world: dict.fromkeys(CAPS)
    ),
    ("POST", "projects/<uuid:id>/least-isolation"): Row(
        _MANAGE_QUEUE, {"id": "project"}, body=lambda world: {"least_isolation": "memory"}
    ),
    ("POST", "projects/<uuid:id>/preferred-flavors"): Row(
        _MANAGE_QUEUE, {"id": "project"}, body=lambda world: {"preferred_flavors": []}
    ),
    ("POST", "projects/<uuid:id>/idle-limit"): Row(
        _EDIT_QUOTA, {"id": "project"}, body=lambda world: _IDLE_LIMIT
    ),
    ("POST", "tenants/<uuid:id>/idle-limit"): Row(
        _EDIT_QUOTA_OF_TENANT, {"id": "tenant"}, body=lambda world: _IDLE_LIMIT
    ),
    ("POST", "projects/<uuid:id>/weight"): Row(
        _EDIT_QUOTA, {"id": "project"}, body=lambda world: {"weight": 2}
    ),
    ("POST", "tenants/<uuid:id>/weight"): Row(
        "403 403 403 403 403 403 200 403 404 401 401 403 403 403",
        {"id": "tenant"},
        body=lambda world: {"weight": 2},
    ),
    ("POST", "replays"): Row(_EDIT_QUOTA, body=_weighed),
    ("POST", "projects/<uuid:id>/min-run-time"): Row(
        _EDIT_QUOTA, {"id": "project"}, body=lambda world: {"min_run_time_s": 60}
    ),
    ("POST", "tenants/<uuid:id>/min-run-time"): Row(
        _EDIT_QUOTA_OF_TENANT, {"id": "tenant"}, body=lambda world: {"min_run_time_s": 60}
    ),
    ("GET", "reservations"): Row(TENANTS, query=_project),
    ("POST", "reservations"): Row(
        _SETS_QUOTA.replace("200", "201"), body=lambda world: reserved(world.project)
    ),
    ("DELETE", "reservations/<uuid:id>"): Row(
        _SETS_QUOTA.replace("200", "204"), {"id": "reservation"}
    ),
    ("GET", "group-roles"): Row("200 200 200 200 200 200 200 200 200 401 401 403 403 403"),
    ("POST", "group-roles"): Row(
        # The owner is told that no provider is called so.
        "400 403 403 403 403 400 403 403 404 401 401 403 403 403",
        body=lambda world: {
            "provider": "acme",
            "group": "g",
            "role": "viewer",
            "project": str(world.project.id),
        },
    ),
    ("DELETE", "group-roles/<uuid:id>"): Row(
        "204 404 404 404 404 204 404 404 404 401 401 403 403 403", {"id": "group role"}
    ),
    ("GET", "members"): Row(TENANTS, query=_project),
    ("POST", "members"): Row(
        "201 403 403 403 403 201 403 403 404 401 401 403 404 403", body=_member
    ),
    ("DELETE", "members/<uuid:id>"): Row(
        "204 403 403 403 403 204 403 403 404 401 401 403 404 403", {"id": "member"}
    ),
    ("GET", "tokens"): Row(_EVERYBODY),
    ("POST", "tokens"): Row(
        # By session only, and only for oneself.
        "201 201 201 201 201 201 201 201 201 401 401 403 403 403",
        body=lambda world: {"name": "ci", "scopes": ["read"]},
    ),
    ("DELETE", "tokens/<uuid:id>"): Row(
        "204 404 404 404 404 404 404 404 404 401 401 403 403 403", {"id": "token"}
    ),
    ("GET", "quotas"): Row(TENANTS, query=_project),
    ("POST", "quotas"): Row(
        # It raises a nominal quota, which only who operates the whole fleet does.
        "403 403 403 403 403 403 200 403 404 401 401 403 404 403",
        body=_quota,
    ),
    ("POST", "quotas/dry-run"): Row(_SETS_QUOTA, body=_quota),
    ("POST", "tenant-quotas/dry-run"): Row(_EDIT_TENANTS, body=_tenant_quota),
    ("GET", "budgets"): Row(TENANTS, query=_project),
    ("POST", "budgets"): Row(_SETS_QUOTA, body=_budget),
    ("POST", "budgets/dry-run"): Row(_SETS_QUOTA, body=_budget),
    ("DELETE", "budgets/<uuid:id>"): Row(_SETS_QUOTA.replace("200", "204"), {"id": "budget"}),
    ("GET", "tenant-quotas"): Row(
        # A token of a project sees the tenants above it.
        "200 200 200 200 200 200 200 200 404 401 401 200 200 200",
        query=lambda world: f"?tenant={world.tenant.id}",
    ),
    ("POST", "tenant-quotas"): Row(
        "403 403 403 403 403 403 200 403 404 401 401 403 403 403", body=_tenant_quota
    ),
    **CHANNELS,
    **PLACES,
    **POLICIES,
    **REQUESTS,
    **TOKENS,
    ("GET", "rates"): Row(_EVERYBODY),
    ("POST", "rates"): Row("403 403 403 403 403 403 201 403 403 401 401 403 403 403", body=_price),
    ("GET", "usage"): Row(_SPEND, query=_project),
    ("GET", "charges"): Row(_SPEND, query=_project),
    ("GET", "audit-events"): Row(_AUDIT, query=_project),
    ("GET", "audit-events.csv"): Row(_AUDIT, query=_project),
    ("GET", "audit-events.json"): Row(_AUDIT, query=_project),
    **CLUSTERS,
    ("GET", "workloads"): Row(TENANTS, query=_project),
    ("POST", "workloads"): Row(
        "201 403 403 201 403 201 403 403 404 401 401 403 404 201",
        body=lambda world: factories.submission(world.project),
    ),
    ("POST", "workloads/batch"): Row(
        "201 403 403 201 403 201 403 403 404 401 401 403 404 201", body=_batch
    ),
    ("POST", "workloads/dry-run"): Row(
        "200 403 403 200 403 200 403 403 404 401 401 403 404 200",
        body=lambda world: factories.submission(world.project),
    ),
    ("POST", "workloads/modes"): Row(
        "200 403 403 200 403 200 403 403 404 401 401 403 404 200",
        body=lambda world: factories.submission(world.project),
    ),
    ("GET", "workloads/<uuid:id>"): Row(TENANTS, WORKLOAD),
    ("GET", "workloads/<uuid:id>/explanation"): Row(TENANTS, {"id": "waiting workload"}),
    ("GET", "workloads/<uuid:id>/events"): Row(TENANTS, WORKLOAD),
    ("POST", "workloads/<uuid:id>/cancel"): Row(
        "200 403 200 200 403 200 200 403 404 401 401 403 404 200", WORKLOAD
    ),
    ("POST", "workloads/<uuid:id>/release"): Row(
        "409 403 409 409 403 409 409 403 404 401 401 403 404 409", WORKLOAD
    ),
    ("POST", "workloads/<uuid:id>/priority"): Row(
        _REORDERS, {"id": "waiting workload"}, body=lambda world: {"to": "first"}
    ),
    ("POST", "arrays/<uuid:id>/priority"): Row(
        _REORDERS, ARRAY, body=lambda world: {"priority_class": "high"}
    ),
    ("POST", "workloads/<uuid:id>/checkpoint"): Row(
        "200 403 200 200 403 200 200 403 404 401 401 403 404 200", WORKLOAD
    ),
    ("GET", "workloads/<uuid:id>/placements/<uuid:placement>/inspection"): Row(
        "200 200 200 200 200 200 200 200 404 401 401 200 404 200", _INSPECTED
    ),
    ("POST", "workloads/<uuid:id>/placements/<uuid:placement>/inspection"): Row(
        "202 202 202 202 202 202 202 202 404 401 401 202 404 202", _INSPECTED
    ),
    ("GET", "gates"): Row(_EVERYBODY),
    ("POST", "workloads/<uuid:id>/gates/<slug:name>"): Row(
        _DECIDES_GATE, {"id": "waiting workload", "name": "=data"}, body=lambda world: OPENED
    ),
    ("POST", "arrays/<uuid:id>/gates/<slug:name>"): Row(
        _DECIDES_GATE, {"id": "array", "name": "=data"}, body=lambda world: OPENED
    ),
    ("GET", "projects/<uuid:id>/gates"): Row(TENANTS, {"id": "project"}),
    ("POST", "projects/<uuid:id>/gates"): Row(
        _SETS_QUOTA.replace("200", "201"),
        {"id": "project"},
        body=lambda world: {"name": "paid", "kind": "budget", "owner": "ada"},
    ),
    ("DELETE", "projects/<uuid:id>/gates/<slug:name>"): Row(
        _SETS_QUOTA.replace("200", "204"), {"id": "project", "name": "=data"}
    ),
    ("POST", "arrays"): Row(
        "201 403 403 201 403 201 403 403 404 401 401 403 404 201",
        body=lambda world: factories.submission(world.project, size=2),
    ),
    ("GET", "arrays/<uuid:id>"): Row(TENANTS, ARRAY),
    ("POST", "arrays/<uuid:id>/cancel"): Row(
        "200 403 200 200 403 200 200 403 404 401 401 403 404 200", ARRAY
    ),
    ("POST", "arrays/<uuid:id>/release"): Row(
        "409 403 409 409 403 409 409 403 404 401 401 403 404 409", ARRAY
    ),
    ("GET", "losses"): Row(TENANTS, query=_project),
    ("GET", "queues/<uuid:project_id>"): Row(TENANTS, {"project_id": "project"}),
}
