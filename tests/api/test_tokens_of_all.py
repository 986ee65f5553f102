"""Every route of the API once more, for a token with all scopes of each person: it gets what they
get, or is refused. It decides nothing, and gives nobody a role or a way in."""

import pytest
from django.contrib.auth import SESSION_KEY
from rest_framework.test import APIClient

from tenants import access
from tenants.models import Scope, User
from tenants.web.request_api import GrantApi
from tests import factories
from tests.api.access_table import API
from tests.api.test_access_matrix import API_ROOT, Hold, ask, path_of
from tests.api.world import COLUMNS, World

ANYBODY = COLUMNS.index("anonymous")
PEOPLE = COLUMNS[:ANYBODY]
BY_SESSION = """
POST approval-rules
DELETE approval-rules/<uuid:id>
GET channels
POST channels
DELETE channels/<uuid:id>
POST channels/<uuid:id>/test
POST delegations
POST delegations/<uuid:id>/withdraw
GET group-roles
DELETE group-roles/<uuid:id>
POST me/mail
POST members
DELETE members/<uuid:id>
POST projects
GET projects/<uuid:id>/channels
POST projects/<uuid:id>/channels
POST projects/<uuid:id>/name
POST projects/<uuid:id>/tenant
POST quota-requests/<uuid:id>/deny
POST quota-requests/<uuid:id>/end
POST quota-requests/<uuid:id>/grant
GET quota-requests/<uuid:id>/impact
POST quota-requests/decide
GET reaching-tokens
DELETE reaching-tokens/<uuid:id>
GET service-accounts
POST service-accounts
DELETE service-accounts/<uuid:id>
GET service-accounts/<uuid:id>
GET service-accounts/<uuid:id>/tokens
POST service-accounts/<uuid:id>/tokens
POST tenants
GET tenants/<uuid:id>/channels
POST tenants/<uuid:id>/channels
POST tenants/<uuid:id>/name
POST tenants/<uuid:id>/parent
POST tokens
DELETE tokens/<uuid:id>
"""
"""What somebody may, and no token of theirs."""


SIGNED_IN = sorted(key for key, row in API.items() if row.expect.split()[ANYBODY] != "200")
"""The rest anybody gets."""


def by_token(method: str, route: str, world: World) -> dict[str, tuple[int, int]]:
    """Of each person: what a token of theirs gets, and what they get themself."""
    row = API[method, route]
    url = path_of(f"{API_ROOT}{route}", row, world)
    found = {}
    for person, theirs in zip(PEOPLE, map(int, row.expect.split()), strict=False):
        user = User.objects.get(id=world.clients[person].session[SESSION_KEY])
        token = factories.token(user, *(scope.value for scope in Scope))
        client = APIClient(headers=factories.bearer(token))
        found[person] = ask(client, method, url, row, world).status_code, theirs
    return found


@pytest.mark.parametrize(("method", "route"), SIGNED_IN)
def test_it_gets_what_they_get_or_is_refused(
    method: str, route: str, world: World, hold: Hold
) -> None:
    found = by_token(method, route, world)
    hold({who: (got, 403 if got == 403 else theirs) for who, (got, theirs) in found.items()})
    refused = any(got == 403 and theirs < 300 for got, theirs in found.values())
    assert refused == (f"{method} {route}" in BY_SESSION.splitlines())


def test_it_notices_a_token_that_decides(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GrantApi, "session_only", False)
    monkeypatch.setitem(access.SCOPE_ACTIONS, Scope.QUOTA, frozenset(access.Action))
    found = by_token("POST", "quota-requests/<uuid:id>/grant", world)
    assert found["approver"] == found["fleet approver"] == (200, 200)


def test_every_row_is_a_route() -> None:
    assert {tuple(line.split()) for line in BY_SESSION.split("\n") if line} <= set(API)
