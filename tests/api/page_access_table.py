"""Who may do what, page by page, and at what belongs to no app: as access_table.py has it."""

from tests.api.access_table import ARRAY, OPENED, WORKLOAD
from tests.api.channel_access import PAGES as CHANNEL_PAGES
from tests.api.cluster_access import OF_FLEET
from tests.api.place_access import PAGES as PLACE_PAGES
from tests.api.policy_access import PAGES as POLICY_PAGES
from tests.api.request_access import PAGES as REQUEST_PAGES
from tests.api.row import Row
from tests.api.token_access import PAGES as TOKEN_PAGES
from tests.clusters.test_hook import pod, review
from tests.web.test_request_new import form as request_form
from tests.web.test_workload_submit import form as submit_form

REVIEW = review(pod({"name": "main"}))

_PAGE = "200 200 200 200 200 200 200 200 200 302 302 302 302 302"
"""Pages know sessions only: a token is nobody there."""
_EMPTY_FORM = "422 422 422 422 422 422 422 422 422 302 302 302 302 302"
_MANAGE_QUEUE_PAGE = "303 403 303 403 403 303 303 403 404 302 302 302 302 302"
_MANAGE_TENANT_PAGE = "200 403 200 403 403 200 200 403 404 302 302 302 302 302"
_OPERATE_PAGE = "403 403 403 403 403 403 200 403 403 302 302 302 302 302"
_ENDS_SESSIONS = "403 403 403 403 403 200 200 403 403 302 302 302 302 302"
_SET_QUOTA_PAGE = "403 403 200 403 403 403 200 403 404 302 302 302 302 302"
_SET_TENANT_PAGE = "403 403 403 403 403 403 200 403 404 302 302 302 302 302"
_QUOTA_OF_PROJECT = {"id": "project", "flavor": "=h100-80gb"}
_QUOTA_OF_TENANT = {"id": "tenant", "flavor": "=h100-80gb"}
_REORDERS_PAGE = "303 403 303 303 403 303 303 403 404 302 302 302 302 302"
_DECIDES_GATE_PAGE = "303 403 403 303 403 303 403 403 404 302 302 302 302 302"
# Where somebody may not, the form does not offer the project.
_SUBMITS_PAGE = "303 422 422 303 422 303 422 422 404 302 302 302 302 302"
_TENANTS_PAGE = "200 200 200 200 200 200 200 200 404 302 302 302 302 302"


OTHERS: dict[tuple[str, str], Row] = {
    ("GET", "healthz"): Row("200 200 200 200 200 200 200 200 200 200 200 200 200 200"),
    ("GET", "readyz"): Row("200 200 200 200 200 200 200 200 200 200 200 200 200 200"),
    ("GET", "metrics"): Row(OF_FLEET),
    ("POST", "admission/pods"): Row(
        "200 200 200 200 200 200 200 200 200 200 200 200 200 200", body=lambda world: REVIEW
    ),
    ("GET", ""): Row(_PAGE),
    ("GET", "sign-in"): Row("302 302 302 302 302 302 302 302 302 200 200 200 200 200"),
    ("POST", "sign-in"): Row(
        "302 302 302 302 302 302 302 302 302 302 302 302 302 302",
        body=lambda world: {"username": "cleo", "password": "cleo"},
        form=True,
    ),
    ("POST", "sign-out"): Row(
        "302 302 302 302 302 302 302 302 302 302 302 302 302 302", form=True
    ),
    ("GET", "group-roles"): Row(_PAGE),
    ("POST", "group-roles"): Row(_EMPTY_FORM, form=True),
    ("POST", "group-roles/<uuid:id>/remove"): Row(
        "303 404 404 404 404 303 404 404 404 302 302 302 302 302", {"id": "group role"}, form=True
    ),
    ("GET", "sign-in/second-factor"): Row(
        "302 302 302 302 302 302 302 302 302 302 302 302 302 302"
    ),
    ("POST", "sign-in/second-factor"): Row(
        "302 302 302 302 302 302 302 302 302 302 302 302 302 302", form=True
    ),
    ("GET", "second-factor"): Row(_PAGE),
    # The owner has one, and would have to show it first.
    ("POST", "second-factor"): Row(_EMPTY_FORM.replace("422", "403", 1), form=True),
    ("POST", "second-factor/key"): Row(_EMPTY_FORM.replace("422", "403", 1), form=True),
    ("POST", "second-factor/proof"): Row(
        "422 409 409 409 409 409 409 409 409 302 302 302 302 302", form=True
    ),
    ("POST", "second-factor/codes"): Row(
        "403 409 409 409 409 409 409 409 409 302 302 302 302 302", form=True
    ),
    ("POST", "second-factor/<int:id>/remove"): Row(
        "403 404 404 404 404 404 404 404 404 302 302 302 302 302",
        {"id": "second factor"},
        form=True,
    ),
    ("GET", "sign-in/<slug:provider>"): Row(
        "302 302 302 302 302 302 302 302 302 404 404 404 404 404", {"provider": "=nobody"}
    ),
    ("GET", "sign-in/<slug:provider>/back"): Row(
        "404 404 404 404 404 404 404 404 404 404 404 404 404 404", {"provider": "=nobody"}
    ),
    ("POST", "sign-in/<slug:provider>/answer"): Row(
        "404 404 404 404 404 404 404 404 404 404 404 404 404 404",
        {"provider": "=nobody"},
        form=True,
    ),
    ("GET", "sign-in/<slug:provider>/metadata"): Row(
        "404 404 404 404 404 404 404 404 404 404 404 404 404 404", {"provider": "=nobody"}
    ),
    ("GET", "sessions"): Row(_PAGE),
    ("GET", "mail"): Row(_PAGE),
    ("POST", "mail"): Row(
        _PAGE.replace("200", "303"), body=lambda world: {"mailed_of": "work.ended"}, form=True
    ),
    ("POST", "sessions/others/end"): Row(_PAGE.replace("200", "303"), form=True),
    ("POST", "sessions/<uuid:id>/end"): Row(
        "303 404 404 404 404 404 404 404 404 302 302 302 302 302", {"id": "session"}, form=True
    ),
    ("GET", "accounts"): Row(_ENDS_SESSIONS),
    ("POST", "accounts/<uuid:id>/end-sessions"): Row(
        _ENDS_SESSIONS.replace("200", "303"), {"id": "user"}, form=True
    ),
    ("GET", "requests"): Row(_PAGE),
    **CHANNEL_PAGES,
    **PLACE_PAGES,
    **POLICY_PAGES,
    **REQUEST_PAGES,
    **TOKEN_PAGES,
    ("GET", "spend"): Row(_PAGE),
    ("GET", "audit"): Row(_PAGE),
    ("GET", "workloads"): Row(_PAGE),
    ("GET", "workloads/new"): Row(_PAGE),
    ("GET", "workloads/<uuid:id>"): Row(_TENANTS_PAGE, WORKLOAD),
    ("GET", "workloads/<uuid:id>/explanation"): Row(_TENANTS_PAGE, {"id": "waiting workload"}),
    ("POST", "workloads/new/check"): Row(
        _SUBMITS_PAGE.replace("303", "200"), body=lambda world: submit_form(world.cast), form=True
    ),
    ("POST", "workloads/new/modes"): Row(
        _SUBMITS_PAGE.replace("303", "200"), body=lambda world: submit_form(world.cast), form=True
    ),
    ("POST", "workloads/<uuid:id>/cancel"): Row(
        "303 403 303 303 403 303 303 403 404 302 302 302 302 302", WORKLOAD, form=True
    ),
    ("GET", "arrays/<uuid:id>"): Row(_TENANTS_PAGE, ARRAY),
    ("POST", "arrays/<uuid:id>/cancel"): Row(
        "303 403 303 303 403 303 303 403 404 302 302 302 302 302", ARRAY, form=True
    ),
    ("POST", "workloads/<uuid:id>/release"): Row(
        "409 403 409 409 403 409 409 403 404 302 302 302 302 302", WORKLOAD, form=True
    ),
    ("POST", "arrays/<uuid:id>/release"): Row(
        "409 403 409 409 403 409 409 403 404 302 302 302 302 302", ARRAY, form=True
    ),
    ("GET", "workloads/<uuid:id>/pods/<uuid:placement>"): Row(
        _TENANTS_PAGE, WORKLOAD | {"placement": "placement"}
    ),
    ("POST", "workloads/<uuid:id>/pods/<uuid:placement>/inspect"): Row(
        "303 303 303 303 303 303 303 303 404 302 302 302 302 302",
        WORKLOAD | {"placement": "placement"},
        form=True,
    ),
    ("POST", "workloads/<uuid:id>/priority"): Row(
        _REORDERS_PAGE,
        {"id": "waiting workload"},
        body=lambda world: {"to": "first", "version": 1},
        form=True,
    ),
    ("POST", "arrays/<uuid:id>/priority"): Row(
        _REORDERS_PAGE, ARRAY, body=lambda world: {"priority_class": "high"}, form=True
    ),
    ("POST", "workloads/<uuid:id>/gates/<slug:name>"): Row(
        _DECIDES_GATE_PAGE,
        {"id": "waiting workload", "name": "=data"},
        body=lambda world: OPENED,
        form=True,
    ),
    ("POST", "arrays/<uuid:id>/gates/<slug:name>"): Row(
        _DECIDES_GATE_PAGE, {"id": "array", "name": "=data"}, body=lambda world: OPENED, form=True
    ),
    ("POST", "projects/<uuid:id>/gates"): Row(
        "403 403 422 403 403 403 422 403 404 302 302 302 302 302", {"id": "project"}, form=True
    ),
    ("POST", "projects/<uuid:id>/gates/<slug:name>/remove"): Row(
        "403 403 303 403 403 403 303 403 404 302 302 302 302 302",
        {"id": "project", "name": "=data"},
        form=True,
    ),
    ("POST", "workloads/new"): Row(
        _SUBMITS_PAGE, body=lambda world: submit_form(world.cast), form=True
    ),
    ("GET", "queue"): Row(_PAGE),
    ("GET", "quota"): Row(_PAGE),
    ("GET", "projects/<uuid:id>"): Row(_TENANTS_PAGE, {"id": "project"}),
    ("POST", "projects/<uuid:id>/queue"): Row(
        _MANAGE_QUEUE_PAGE,
        {"id": "project"},
        body=lambda world: {"state": "held", "note": "Why."},
        form=True,
    ),
    ("POST", "projects/<uuid:id>/confirm-quota"): Row(
        _MANAGE_QUEUE_PAGE, {"id": "project"}, form=True
    ),
    ("POST", "projects/<uuid:id>/caps"): Row(_MANAGE_QUEUE_PAGE, {"id": "project"}, form=True),
    ("POST", "projects/<uuid:id>/least-isolation"): Row(
        _MANAGE_QUEUE_PAGE,
        {"id": "project"},
        body=lambda world: {"least_isolation": "memory"},
        form=True,
    ),
    ("POST", "projects/<uuid:id>/preferred-flavors"): Row(
        _MANAGE_QUEUE_PAGE, {"id": "project"}, form=True
    ),
    ("POST", "projects/<uuid:id>/idle-limit"): Row(
        "403 403 303 403 403 403 303 403 404 302 302 302 302 302", {"id": "project"}, form=True
    ),
    ("POST", "projects/<uuid:id>/weight"): Row(
        _SET_QUOTA_PAGE.replace("200", "422"), {"id": "project"}, form=True
    ),
    ("GET", "tenants/<uuid:id>/queue"): Row(_MANAGE_TENANT_PAGE, {"id": "tenant"}),
    ("POST", "tenants/<uuid:id>/queue"): Row(
        _MANAGE_TENANT_PAGE.replace("200", "422"), {"id": "tenant"}, form=True
    ),
    ("GET", "tenants/<uuid:id>/weight"): Row(_SET_TENANT_PAGE, {"id": "tenant"}),
    ("POST", "tenants/<uuid:id>/weight"): Row(
        _SET_TENANT_PAGE.replace("200", "422"), {"id": "tenant"}, form=True
    ),
    ("GET", "rates"): Row("200 200 200 200 200 200 200 200 200 302 302 302 302 302"),
    ("POST", "rates"): Row("403 403 403 403 403 403 422 403 403 302 302 302 302 302", form=True),
    ("GET", "projects/<uuid:id>/replay"): Row(_SET_QUOTA_PAGE, {"id": "project"}),
    ("POST", "projects/<uuid:id>/replay"): Row(
        _SET_QUOTA_PAGE.replace("200", "422"), {"id": "project"}, form=True
    ),
    ("GET", "tenants/<uuid:id>/replay"): Row(_SET_TENANT_PAGE, {"id": "tenant"}),
    ("POST", "tenants/<uuid:id>/replay"): Row(
        _SET_TENANT_PAGE.replace("200", "422"), {"id": "tenant"}, form=True
    ),
    ("POST", "projects/<uuid:id>/min-run-time"): Row(
        "403 403 303 403 403 403 303 403 404 302 302 302 302 302", {"id": "project"}, form=True
    ),
    ("GET", "projects/<uuid:id>/quotas/<str:flavor>"): Row(_SET_QUOTA_PAGE, _QUOTA_OF_PROJECT),
    ("POST", "projects/<uuid:id>/quotas/<str:flavor>"): Row(
        _SET_QUOTA_PAGE.replace("200", "422"), _QUOTA_OF_PROJECT, form=True
    ),
    ("GET", "tenants/<uuid:id>/quotas/<str:flavor>"): Row(_SET_TENANT_PAGE, _QUOTA_OF_TENANT),
    ("POST", "tenants/<uuid:id>/quotas/<str:flavor>"): Row(
        _SET_TENANT_PAGE.replace("200", "422"), _QUOTA_OF_TENANT, form=True
    ),
    ("GET", "budgets"): Row(_PAGE),
    ("POST", "budgets"): Row("403 403 422 403 403 403 422 403 403 302 302 302 302 302", form=True),
    ("GET", "budgets/<uuid:id>"): Row(_SET_QUOTA_PAGE, {"id": "budget"}),
    ("POST", "budgets/<uuid:id>"): Row(
        _SET_QUOTA_PAGE.replace("200", "422"), {"id": "budget"}, form=True
    ),
    ("POST", "budgets/<uuid:id>/remove"): Row(
        "403 403 303 403 403 403 303 403 404 302 302 302 302 302", {"id": "budget"}, form=True
    ),
    ("GET", "reservations"): Row(_PAGE),
    ("POST", "reservations"): Row(
        "403 403 422 403 403 403 422 403 403 302 302 302 302 302", form=True
    ),
    ("POST", "reservations/<uuid:id>/cancel"): Row(
        "403 403 303 403 403 403 303 403 404 302 302 302 302 302", {"id": "reservation"}, form=True
    ),
    ("GET", "requests/new"): Row(_PAGE),
    ("POST", "requests/new"): Row(
        "303 422 422 303 422 303 422 422 404 302 302 302 302 302",
        body=lambda world: request_form(world.cast),
        form=True,
    ),
    ("GET", "tokens"): Row(_PAGE),
    ("POST", "tokens"): Row(
        "201 201 201 201 201 201 201 201 201 302 302 302 302 302",
        body=lambda world: {"name": "ci", "scopes": "read", "days": "7"},
        form=True,
    ),
    ("POST", "tokens/<uuid:id>/revoke"): Row(
        "303 404 404 404 404 404 404 404 404 302 302 302 302 302", {"id": "token"}, form=True
    ),
    ("GET", "clusters"): Row(_PAGE),
    ("GET", "clusters/<slug:name>"): Row(_PAGE, {"name": "cluster name"}),
    ("GET", "register-cluster"): Row(_OPERATE_PAGE),
    ("POST", "register-cluster"): Row(_OPERATE_PAGE.replace("200", "422"), form=True),
    ("GET", "clusters/<slug:name>/manifest"): Row(_OPERATE_PAGE, {"name": "cluster name"}),
    ("GET", "clusters/<slug:name>/credential"): Row(_OPERATE_PAGE, {"name": "cluster name"}),
    ("POST", "clusters/<slug:name>/credential"): Row(
        _OPERATE_PAGE.replace("200", "422"), {"name": "cluster name"}, form=True
    ),
    ("GET", "clusters/<slug:name>/connection"): Row(_OPERATE_PAGE, {"name": "cluster name"}),
    ("POST", "clusters/<slug:name>/probe"): Row(
        _OPERATE_PAGE.replace("200", "303"), {"name": "cluster name"}, form=True
    ),
    ("POST", "clusters/<slug:name>/drift"): Row(
        _OPERATE_PAGE.replace("200", "400"), {"name": "cluster name"}, form=True
    ),
    ("GET", "clusters/<slug:name>/queues"): Row(_OPERATE_PAGE, {"name": "cluster name"}),
    ("POST", "clusters/<slug:name>/queues"): Row(
        _OPERATE_PAGE.replace("200", "422"), {"name": "cluster name"}, form=True
    ),
    ("GET", "clusters/<slug:name>/node-pools"): Row(_OPERATE_PAGE, {"name": "cluster name"}),
    ("POST", "clusters/<slug:name>/node-pools"): Row(
        _OPERATE_PAGE.replace("200", "422"), {"name": "cluster name"}, form=True
    ),
    ("GET", "clusters/<slug:name>/defragmentation"): Row(_OPERATE_PAGE, {"name": "cluster name"}),
    ("POST", "clusters/<slug:name>/defragmentation"): Row(
        _OPERATE_PAGE.replace("200", "422"), {"name": "cluster name"}, form=True
    ),
    ("POST", "clusters/<slug:name>/defragmentation/call-off"): Row(
        _OPERATE_PAGE.replace("200", "303"), {"name": "cluster name"}, form=True
    ),
    ("GET", "clusters/<slug:name>/recuts"): Row(_OPERATE_PAGE, {"name": "cluster name"}),
    ("POST", "clusters/<slug:name>/recuts"): Row(
        _OPERATE_PAGE.replace("200", "422"), {"name": "cluster name"}, form=True
    ),
    ("POST", "clusters/<slug:name>/recuts/<uuid:id>/call-off"): Row(
        _OPERATE_PAGE.replace("200", "303"),
        {"name": "other cluster name", "id": "recut"},
        form=True,
    ),
    ("GET", "layouts"): Row("403 403 403 403 403 200 200 200 403 302 302 302 302 302"),
}
