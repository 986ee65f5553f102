"""What takes a project or a tenant says in the same words that it is one of the two."""

from collections.abc import Callable

import pytest
from rest_framework.test import APIClient

from tenants.models import Role, User
from tests import factories
from tests.conftest import Cast, Unchanged

type Api = Callable[[User | None], APIClient]

TOLD = "Name a project or a tenant, one of the two."
BUDGET: dict[str, object] = {"period": "month", "limit_h": 100, "mode": "soft", "version": 0}
MEMBER: dict[str, object] = {"user": "cleo", "role": "viewer"}
GROUP: dict[str, object] = {"provider": "acme", "group": "g", "role": "viewer"}
RESERVATION: dict[str, object] = {
    "flavor": "h100-80gb", "amount_milli": 1000,
    "starts_at": "2100-01-01T00:00:00Z", "ends_at": "2100-01-02T00:00:00Z",
}  # fmt: skip
BODIES: dict[str, dict[str, object]] = {
    "budgets": BUDGET,
    "budgets/dry-run": BUDGET,
    "service-accounts": {"name": "ci", "role": "viewer"},
    "members": MEMBER,
    "group-roles": GROUP,
    "policies/dry-run": {"max_pods": 1},
    "reservations": RESERVATION,
}
QUERIES = ("reservations", "service-accounts", "reaching-tokens")
FLEET_TOO = {"policies/dry-run", "reaching-tokens"}
"""Where neither is the fleet."""
ALL_TOO = {"reservations"}
"""Where neither is all that somebody sees."""


@pytest.fixture
def root(cast: Cast, api: Api) -> APIClient:
    user = factories.user("root")
    for role in Role:
        factories.member(user, role)
    return api(user)


def both(cast: Cast) -> dict[str, str]:
    return {"project": str(cast.detection.id), "tenant": str(cast.vision.id)}


@pytest.mark.parametrize("name", BODIES)
def test_a_body_names_one_of_the_two(
    root: APIClient, cast: Cast, nothing_stored: Unchanged, name: str
) -> None:
    named = [both(cast)] if name in FLEET_TOO else [both(cast), {}]
    for places in named:
        with nothing_stored():
            answer = root.post(f"/api/v1/{name}", BODIES[name] | places, format="json")
        assert answer.status_code == 400
        assert answer.json()["detail"].endswith(TOLD)


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_names_one_of_the_two(root: APIClient, cast: Cast, name: str) -> None:
    answer = root.get(f"/api/v1/{name}", both(cast))
    assert (answer.status_code, answer.json()["detail"]) == (400, TOLD)
    assert [each["pointer"] for each in answer.json()["errors"]] == ["?tenant"]
    status = root.get(f"/api/v1/{name}").status_code
    assert status == (200 if name in FLEET_TOO | ALL_TOO else 400)


def test_what_is_named_and_not_seen_is_not_there(api: Api, cast: Cast) -> None:
    for named in ({"project": str(cast.detection.id)}, {"tenant": str(cast.vision.id)}):
        answer = api(cast.cleo).post("/api/v1/budgets", BUDGET | named, format="json")
        assert answer.status_code == 404
