"""Who gives which role through the API: every role to every role, at a project and a tenant."""

from collections.abc import Callable
from typing import Any

import pytest
from rest_framework.test import APIClient

from tenants.models import Member, Role, User
from tests import factories
from tests.conftest import Cast

type Api = Callable[[User | None], APIClient]

URL = "/api/v1/members"
GIVES = {
    "owner": set(Role),
    "fleet owner": set(Role),
    "approver": set[Role](),
    "operator": set[Role](),
    "member": set[Role](),
    "viewer": set[Role](),
}


def giver(cast: Cast, name: str) -> User:
    if name == "owner":
        return cast.ada
    user = factories.user("gil")
    fleet = name.startswith("fleet ")
    role = Role(name.removeprefix("fleet "))
    factories.member(user, role, at=None if fleet else cast.vision)
    return user


def give(client: APIClient, to: User, role: Role, **place: Any) -> int:  # Any: an id
    body = {"user": to.username, "role": role.value, **place}
    return client.post(URL, body, format="json").status_code


@pytest.mark.parametrize("name", sorted(GIVES))
def test_a_role_is_given_by_those_of_the_table(api: Api, cast: Cast, name: str) -> None:
    client = api(giver(cast, name))
    for role in Role:
        expected = 201 if role in GIVES[name] else 403
        assert give(client, cast.cleo, role, project=str(cast.detection.id)) == expected
        assert give(client, cast.cleo, role, tenant=str(cast.vision.id)) == expected


@pytest.mark.parametrize("role", list(Role))
def test_an_owner_gives_themself_nothing_more(api: Api, cast: Cast, role: Role) -> None:
    refused = role in {Role.APPROVER, Role.OPERATOR}
    status = give(api(cast.ada), cast.ada, role, project=str(cast.detection.id))
    assert status == (403 if refused else 201)
    assert Member.objects.filter(user=cast.ada, project=cast.detection).exists() != refused


def test_an_owner_gives_nothing_in_another_tenant(api: Api, cast: Cast) -> None:
    for role in Role:
        assert give(api(cast.ada), cast.ben, role, tenant=str(cast.speech.id)) == 404
