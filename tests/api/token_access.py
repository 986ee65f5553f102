"""The rows of service accounts, and of tokens of others."""

from tests.api.row import Row
from tests.api.world import World

_OWNS = "200 403 403 403 403 200 403 403 404 401 401 403 403 403"
"""By session alone."""
_PAGE = "200 403 403 403 403 200 403 403 404 302 302 302 302 302"
_TENANT, _PROJECT, _ACCOUNT = {"id": "tenant"}, {"id": "project"}, {"id": "service account"}


def _of_project(world: World) -> str:
    return f"?project={world.project.id}"


TOKENS = {
    ("GET", "service-accounts"): Row(_OWNS, query=_of_project),
    ("POST", "service-accounts"): Row(
        _OWNS.replace("200", "201"),
        body=lambda world: {"name": "new", "role": "viewer", "tenant": str(world.tenant.id)},
    ),
    ("GET", "service-accounts/<uuid:id>"): Row(_OWNS, _ACCOUNT),
    ("DELETE", "service-accounts/<uuid:id>"): Row(_OWNS.replace("200", "204"), _ACCOUNT),
    ("GET", "service-accounts/<uuid:id>/tokens"): Row(_OWNS, _ACCOUNT),
    ("POST", "service-accounts/<uuid:id>/tokens"): Row(
        _OWNS.replace("200", "201"),
        _ACCOUNT,
        body=lambda world: {"name": "ci", "scopes": ["submit"]},
    ),
}

TOKENS |= {
    ("GET", "reaching-tokens"): Row(_OWNS, query=_of_project),
    ("DELETE", "reaching-tokens/<uuid:id>"): Row(
        _OWNS.replace("200", "204"), {"id": "token"}, query=_of_project
    ),
}

_NEW = {"name": "new", "role": "viewer"}

PAGES = {
    ("GET", "tenants/<uuid:id>/service-accounts"): Row(_PAGE, _TENANT),
    ("POST", "tenants/<uuid:id>/service-accounts"): Row(
        _PAGE.replace("200", "303"), _TENANT, body=lambda world: _NEW, form=True
    ),
    ("GET", "projects/<uuid:id>/service-accounts"): Row(_PAGE, _PROJECT),
    ("POST", "projects/<uuid:id>/service-accounts"): Row(
        _PAGE.replace("200", "303"), _PROJECT, body=lambda world: _NEW, form=True
    ),
    ("GET", "service-accounts/<uuid:id>"): Row(_PAGE, _ACCOUNT),
    ("POST", "service-accounts/<uuid:id>"): Row(
        _PAGE.replace("200", "201"),
        _ACCOUNT,
        body=lambda world: {"name": "ci", "scopes": "submit", "days": "7"},
        form=True,
    ),
    ("POST", "service-accounts/<uuid:id>/close"): Row(
        _PAGE.replace("200", "303"), _ACCOUNT, form=True
    ),
}

_OWNS_FLEET = "403 403 403 403 403 200 403 403 403 302 302 302 302 302"


def _token(world: World) -> dict[str, str]:
    return {"token": str(world.ids["token"])}


PAGES |= {
    ("GET", "tenants/<uuid:id>/tokens"): Row(_PAGE, _TENANT),
    ("POST", "tenants/<uuid:id>/tokens"): Row(
        _PAGE.replace("200", "303"), _TENANT, body=_token, form=True
    ),
    ("GET", "projects/<uuid:id>/tokens"): Row(_PAGE, _PROJECT),
    ("POST", "projects/<uuid:id>/tokens"): Row(
        _PAGE.replace("200", "303"), _PROJECT, body=_token, form=True
    ),
    ("GET", "fleet-tokens"): Row(_OWNS_FLEET),
    ("POST", "fleet-tokens"): Row(_OWNS_FLEET.replace("200", "303"), body=_token, form=True),
}
