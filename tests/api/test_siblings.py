"""Every route once more: for a member of another project of the same tenant, who gets what a
stranger gets; and as htmx asks for a part of a page, which is no other door."""

import pytest
from django.test import Client
from rest_framework.test import APIClient

from tenants.models import Role
from tests import factories
from tests.api.test_access_matrix import API_ROOT, ROWS, ask, path_of
from tests.api.world import COLUMNS, World

OF_TENANT = {
    ("POST", "tenants"),
    ("POST", f"{API_ROOT}tenants"),
    ("POST", f"{API_ROOT}projects"),
    ("POST", f"{API_ROOT}service-accounts"),
    ("GET", f"{API_ROOT}tenant-quotas"),
    ("POST", f"{API_ROOT}tenant-quotas"),
    ("POST", f"{API_ROOT}tenant-quotas/dry-run"),
    ("POST", f"{API_ROOT}approval-rules"),
    ("DELETE", f"{API_ROOT}approval-rules/<uuid:id>"),
    ("POST", "approval-rules/<uuid:id>/remove"),
}
"""Whose input names the tenant, which both see: besides those whose address does."""


@pytest.fixture
def sibling(world: World) -> Client:
    """Member of Segmentation, beside Detection, to which all objects of the world belong."""
    sam = factories.user("sam")
    factories.member(sam, Role.MEMBER, at=world.cast.segmentation)
    client = APIClient()
    client.force_login(sam)
    return client


@pytest.mark.parametrize(("method", "route"), sorted(ROWS), ids=lambda part: part or "home")
def test_a_member_of_a_sibling_gets_what_a_stranger_gets(
    method: str, route: str, world: World, sibling: Client
) -> None:
    """Of a tenant, what a member of any of its projects does."""
    row = ROWS[method, route]
    expected = dict(zip(COLUMNS, map(int, row.expect.split()), strict=True))
    named = "tenant" in row.ids.values() or (method, route) in OF_TENANT
    like = "member" if named else "outsider"
    got = ask(sibling, method, path_of(route, row, world), row, world)
    assert got.status_code == expected[like]
    if like == "outsider" and expected[like] < 300 and expected["owner"] < 300:
        assert "Detection" not in got.content.decode()


@pytest.mark.parametrize(
    ("method", "route"), sorted(key for key in ROWS if not key[1].startswith(API_ROOT))
)
def test_a_part_of_a_page_is_for_who_may_see_the_page(
    method: str, route: str, world: World
) -> None:
    """What leads elsewhere does so by a header there, and shows nothing."""
    row = ROWS[method, route]
    url = path_of(route, row, world)
    for column, expected in zip(COLUMNS, map(int, row.expect.split()), strict=True):
        client = world.clients[column]
        client.defaults["HTTP_HX_REQUEST"] = "true"
        got = ask(client, method, url, row, world)
        if "HX-Redirect" in got.headers:
            assert (expected in {302, 303}, got.content) == (True, b""), column
        else:
            assert got.status_code == expected, column
