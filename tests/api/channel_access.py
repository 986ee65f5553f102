"""The rows of channels, by which other systems are told."""

from tests.api.row import Row
from tests.api.world import World

_OF_FLEET = "403 403 403 403 403 200 200 403 403 401 401 403 403 403"
_OF_TENANT = "200 403 200 403 403 200 200 403 404 401 401 403 403 403"
_OF_PROJECT = "200 403 200 403 403 200 200 403 404 401 401 403 404 403"
"""No token, whatever its scopes."""
_TENANT, _PROJECT, _CHANNEL = {"id": "tenant"}, {"id": "project"}, {"id": "channel"}


def _asked(world: World) -> dict[str, object]:
    return {
        "name": "New",
        "kind": "json",
        "url": "https://hooks.example/x",
        "events": ["request.opened"],
    }


CHANNELS = {
    ("GET", "channels"): Row(_OF_FLEET),
    ("POST", "channels"): Row(_OF_FLEET.replace("200", "201"), body=_asked),
    ("GET", "tenants/<uuid:id>/channels"): Row(_OF_TENANT, _TENANT),
    ("POST", "tenants/<uuid:id>/channels"): Row(
        _OF_TENANT.replace("200", "201"), _TENANT, body=_asked
    ),
    ("GET", "projects/<uuid:id>/channels"): Row(_OF_PROJECT, _PROJECT),
    ("POST", "projects/<uuid:id>/channels"): Row(
        _OF_PROJECT.replace("200", "201"), _PROJECT, body=_asked
    ),
    ("DELETE", "channels/<uuid:id>"): Row(_OF_PROJECT.replace("200", "204"), _CHANNEL),
    ("POST", "channels/<uuid:id>/test"): Row(_OF_PROJECT.replace("200", "202"), _CHANNEL),
}

_PAGE_OF_FLEET = "403 403 403 403 403 200 200 403 403 302 302 302 302 302"
_PAGE = "200 403 200 403 403 200 200 403 404 302 302 302 302 302"

PAGES = {
    ("GET", "channels"): Row(_PAGE_OF_FLEET),
    ("POST", "channels"): Row(_PAGE_OF_FLEET.replace("200", "201"), body=_asked, form=True),
    ("GET", "tenants/<uuid:id>/channels"): Row(_PAGE, _TENANT),
    ("POST", "tenants/<uuid:id>/channels"): Row(
        _PAGE.replace("200", "201"), _TENANT, body=_asked, form=True
    ),
    ("GET", "projects/<uuid:id>/channels"): Row(_PAGE, _PROJECT),
    ("POST", "projects/<uuid:id>/channels"): Row(
        _PAGE.replace("200", "201"), _PROJECT, body=_asked, form=True
    ),
    ("POST", "channels/<uuid:id>/remove"): Row(_PAGE.replace("200", "303"), _CHANNEL, form=True),
    ("POST", "channels/<uuid:id>/test"): Row(_PAGE.replace("200", "303"), _CHANNEL, form=True),
}
