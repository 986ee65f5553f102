"""Every route once more, for who has no role where its objects are: every role in another project
of the tenant and in another tenant, who was an owner and a member and is neither, and who has all
of the back office. They get what a stranger gets.
"""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from django.test import Client
from rest_framework.test import APIClient

from tenants.access import Actor, actor_for
from tenants.models import Project, Role, Tenant, User
from tenants.services import members
from tests import factories
from tests.api.cells import Cells, unlike
from tests.api.test_access_matrix import API_ROOT, ROWS, Hold, ask, path_of
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
"""Whose input names the tenant, which who is in any of its projects sees: besides those whose
address does."""
_SET_THEIRS = {"operator in a sibling": 422, "operator in another tenant": 422}
THEIRS: dict[tuple[str, str], dict[str, int]] = {
    ("POST", "budgets"): _SET_THEIRS,
    ("POST", "reservations"): _SET_THEIRS,
    ("POST", "tenants"): {"owner in another tenant": 422},
    ("POST", "approval-rules"): {"owner in another tenant": 422},
    # For decisions of theirs: one to whom the delegate is known, and one to whom not.
    ("POST", "delegations"): {"approver in a sibling": 303, "approver in another tenant": 422},
    ("POST", f"{API_ROOT}delegations"): {
        "approver in a sibling": 201,
        "approver in another tenant": 400,
    },
}
"""Where it matters what somebody may where they are: a page has a form then, in which they find no
place but their own."""


@pytest.fixture(scope="module")
def built(built: World) -> World:
    cast = built.cast
    clients = {"staff": signed_in(factories.user("sue", is_staff=True, is_superuser=True))}
    for role in Role:
        clients[f"{role} in a sibling"] = with_role(role, cast.segmentation)
        clients[f"{role} in another tenant"] = with_role(role, cast.speech)
    eve = factories.user("eve")
    for role, place in ((Role.OWNER, cast.vision), (Role.MEMBER, cast.detection)):
        held = factories.member(eve, role, at=place)
        clients["ended"] = signed_in(eve)
        members.revoke(actor=actor_for(user=cast.ada), member=held, at=datetime.now(UTC))
    return replace(built, clients=clients)


def with_role(role: Role, place: Project | Tenant) -> Client:
    user = factories.user(f"{role}-{place.slug}")
    factories.member(user, role, at=place)
    return signed_in(user)


def signed_in(user: User) -> Client:
    client = APIClient()
    client.force_login(user)
    return client


ASKED = sorted(key for key, row in ROWS.items() if row.expect.split()[9] != "200")
assert COLUMNS[9] == "anonymous"  # what anybody gets is left out


def answers(method: str, route: str, world: World) -> Cells:
    """Of a tenant, what a member of any of its projects gets."""
    row = ROWS[method, route]
    url = path_of(route, row, world)
    expected = dict(zip(COLUMNS, map(int, row.expect.split()), strict=True))
    named = "tenant" in row.ids.values() or (method, route) in OF_TENANT
    cells: dict[str, tuple[object, object]] = {}
    for who, client in world.clients.items():
        like = "member" if named and "sibling" in who else "outsider"
        status = THEIRS.get((method, route), {}).get(who, expected[like])
        got = ask(client, method, url, row, world)
        shown = like == "outsider" and status < 300 and "Detection" in got.content.decode()
        cells[who] = (got.status_code, shown), (status, False)
    return cells


@pytest.mark.parametrize(("method", "route"), ASKED, ids=lambda part: part or "home")
def test_who_is_elsewhere_gets_what_a_stranger_gets(
    method: str, route: str, world: World, hold: Hold
) -> None:
    hold(answers(method, route, world))


def test_it_notices_a_role_that_holds_everywhere(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Actor, "memberships_at", lambda self, **_: list(self.memberships))
    found = unlike(answers("POST", f"{API_ROOT}workloads", world))
    assert set(found) == world.clients.keys() - {"ended", "staff"}


def test_it_notices_a_role_that_outlives_its_end(world: World) -> None:
    factories.member(User.objects.get(username="eve"), Role.VIEWER, at=world.project)
    found = unlike(answers("GET", f"{API_ROOT}workloads", world))
    assert set(found) == {"ended"}


def test_it_notices_staff_who_see_all(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    roles = property(lambda self: frozenset(Role) if self.user.is_staff else frozenset())
    monkeypatch.setattr(Actor, "fleet_roles", roles)
    assert set(unlike(answers("GET", "workloads", world))) == {"staff"}
