"""The rows of making, naming and moving tenants and projects."""

from tests.api.row import Row

_OWNS = "200 403 403 403 403 200 403 403 404 401 401 403 403 403"
_OWNS_PROJECT = "200 403 403 403 403 200 403 403 404 401 401 403 404 403"
_TENANT, _PROJECT = {"id": "tenant"}, {"id": "project"}
_DEPARTMENT = {"id": "department"}
"""Of the tenant, without projects: who is of one alone does not see it."""

PLACES = {
    ("POST", "tenants"): Row(
        _OWNS.replace("200", "201"),
        body=lambda world: {"parent": str(world.tenant.id), "name": "Arms", "slug": "arms"},
    ),
    ("POST", "tenants/<uuid:id>/name"): Row(
        _OWNS, _TENANT, body=lambda world: {"name": "Visions"}
    ),
    ("POST", "tenants/<uuid:id>/parent"): Row(
        # To the top, which is who owns the fleet.
        "403 403 403 404 403 200 403 403 404 401 401 403 404 403",
        _DEPARTMENT,
        body=lambda world: {"parent": None},
    ),
    ("POST", "projects/<uuid:id>/name"): Row(
        _OWNS_PROJECT, _PROJECT, body=lambda world: {"name": "Finding"}
    ),
    ("POST", "projects/<uuid:id>/tenant"): Row(
        # It has live work: its owner may move it, and is told why it stays. To where it is.
        _OWNS_PROJECT,
        _PROJECT,
        body=lambda world: {"tenant": str(world.tenant.id)},
    ),
}

_PAGE_OF = "200 200 200 200 200 200 200 200 404 302 302 302 302 302"
_OWNS_PAGE = "303 403 403 403 403 303 403 403 404 302 302 302 302 302"
_GIVES = "303 403 403 403 403 303 403 403 404 302 302 302 302 302"

PAGES = {
    ("GET", "tenants"): Row("200 200 200 200 200 200 200 200 200 302 302 302 302 302"),
    ("POST", "tenants"): Row(
        "303 403 403 403 403 303 403 403 403 302 302 302 302 302",
        body=lambda world: {"parent": str(world.tenant.id), "name": "Arms", "slug": "arms"},
        form=True,
    ),
    ("GET", "tenants/<uuid:id>"): Row(_PAGE_OF, _TENANT),
    ("GET", "projects/<uuid:id>/people"): Row(_PAGE_OF, _PROJECT),
    ("POST", "tenants/<uuid:id>/name"): Row(
        _OWNS_PAGE, _TENANT, body=lambda world: {"name": "Visions"}, form=True
    ),
    ("POST", "projects/<uuid:id>/name"): Row(
        _OWNS_PAGE, _PROJECT, body=lambda world: {"name": "Finding"}, form=True
    ),
    ("POST", "tenants/<uuid:id>/projects"): Row(
        _OWNS_PAGE, _TENANT, body=lambda world: {"name": "Arms", "slug": "arms"}, form=True
    ),
    ("POST", "tenants/<uuid:id>/members"): Row(
        _GIVES, _TENANT, body=lambda world: {"user": "cleo", "role": "viewer"}, form=True
    ),
    ("POST", "projects/<uuid:id>/members"): Row(
        _GIVES, _PROJECT, body=lambda world: {"user": "cleo", "role": "viewer"}, form=True
    ),
    ("POST", "projects/<uuid:id>/tenant"): Row(
        # Nobody else is offered a tenant.
        "303 422 422 422 422 303 422 422 404 302 302 302 302 302",
        _PROJECT,
        body=lambda world: {"tenant": str(world.tenant.id)},
        form=True,
    ),
    ("POST", "tenants/<uuid:id>/parent"): Row(
        # The same: nobody else is offered that.
        "422 422 422 404 422 303 422 422 404 302 302 302 302 302",
        _DEPARTMENT,
        body=lambda world: {"parent": ""},
        form=True,
    ),
    ("POST", "members/<uuid:id>/revoke"): Row(
        "303 403 403 403 403 303 403 403 404 302 302 302 302 302", {"id": "member"}, form=True
    ),
}
