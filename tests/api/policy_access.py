"""The rows of what may be submitted."""

from tests.api.row import Row
from tests.api.world import World

_EVERYBODY = "200 200 200 200 200 200 200 200 200 401 401 200 200 200"
_SEES_TENANT = "200 200 200 200 200 200 200 200 404 401 401 200 200 200"
_SEES = "200 200 200 200 200 200 200 200 404 401 401 200 404 200"
_SAYS_ANYWHERE = "403 403 403 403 403 200 200 403 403 401 401 403 403 403"
_SAYS_OF_TENANT = "200 403 200 403 403 200 200 403 404 401 401 403 403 200"
_SAYS = "200 403 200 403 403 200 200 403 404 401 401 403 404 200"
_TENANT, _PROJECT = {"id": "tenant"}, {"id": "project"}
_SAID = {"max_pods": 4096, "version": 0}


def _tried(world: World) -> dict[str, object]:
    return {"project": str(world.project.id), "max_pods": 1}


POLICIES = {
    ("GET", "policy"): Row(_EVERYBODY),
    ("POST", "policy"): Row(_SAYS_ANYWHERE, body=lambda world: _SAID),
    ("GET", "tenants/<uuid:id>/policy"): Row(_SEES_TENANT, _TENANT),
    ("POST", "tenants/<uuid:id>/policy"): Row(_SAYS_OF_TENANT, _TENANT, body=lambda world: _SAID),
    ("GET", "projects/<uuid:id>/policy"): Row(_SEES, _PROJECT),
    ("POST", "projects/<uuid:id>/policy"): Row(_SAYS, _PROJECT, body=lambda world: _SAID),
    ("POST", "policies/dry-run"): Row(_SAYS, body=_tried),
}

_PAGE = "200 200 200 200 200 200 200 200 200 302 302 302 302 302"
_PAGE_OF = "200 200 200 200 200 200 200 200 404 302 302 302 302 302"
_SAYS_BY_PAGE = "303 403 303 403 403 303 303 403 404 302 302 302 302 302"


def _form(world: World) -> dict[str, object]:
    return {"max_pods": "4096", "version": "0", "save": "yes"}


PAGES = {
    ("GET", "policy"): Row(_PAGE),
    ("POST", "policy"): Row(
        "403 403 403 403 403 303 303 403 403 302 302 302 302 302", body=_form, form=True
    ),
    ("GET", "tenants/<uuid:id>/policy"): Row(_PAGE_OF, _TENANT),
    ("POST", "tenants/<uuid:id>/policy"): Row(_SAYS_BY_PAGE, _TENANT, body=_form, form=True),
    ("GET", "projects/<uuid:id>/policy"): Row(_PAGE_OF, _PROJECT),
    ("POST", "projects/<uuid:id>/policy"): Row(_SAYS_BY_PAGE, _PROJECT, body=_form, form=True),
}
