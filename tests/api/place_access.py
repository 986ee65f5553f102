"""The rows of making, naming and moving tenants and projects."""

from tests.api.row import Row

_OWNS = "200 403 403 403 403 403 403 404 401 401 403 403 403"
_OWNS_PROJECT = "200 403 403 403 403 403 403 404 401 401 403 404 403"
_OWNS_FLEET = "403 403 403 403 403 403 403 404 401 401 403 403 403"
_TENANT, _PROJECT = {"id": "tenant"}, {"id": "project"}

PLACES = {
    ("POST", "tenants"): Row(
        _OWNS.replace("200", "201"),
        body=lambda world: {"parent": str(world.tenant.id), "name": "Arms", "slug": "arms"},
    ),
    ("POST", "tenants/<uuid:id>/name"): Row(
        _OWNS, _TENANT, body=lambda world: {"name": "Visions"}
    ),
    ("POST", "tenants/<uuid:id>/parent"): Row(
        _OWNS_FLEET, _TENANT, body=lambda world: {"parent": None}
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
