"""Roles in the whole fleet: given and taken by a fleet-wide owner, seen by who has one."""

from collections.abc import Callable

import pytest
from rest_framework.test import APIClient

from controlplane.audit.models import AuditEvent
from tenants.models import Member, Role, User
from tests import factories
from tests.api.row import Row
from tests.api.test_access_matrix import API_ROOT, Hold, answers
from tests.api.world import build
from tests.conftest import Cast

type Api = Callable[[User | None], APIClient]

URL = "/api/v1/members"
ROWS = {
    ("GET", "members"): Row("403 403 403 403 403 200 200 200 403 401 401 403 403 403"),
    ("POST", "members"): Row(
        "403 403 403 403 403 201 403 403 403 401 401 403 403 403",
        body=lambda world: {"user": "cleo", "role": "operator", "tenant": None},
    ),
    # Who has no role in the fleet does not learn who has.
    ("DELETE", "members/<uuid:id>"): Row(
        "404 404 404 404 404 409 403 403 404 401 401 404 404 404", {"id": "fleet member"}
    ),
}


def give(client: APIClient, to: User, role: Role) -> int:
    body = {"user": to.username, "role": role.value, "tenant": None}
    return client.post(URL, body, format="json").status_code


def fleet(user: User) -> set[str]:
    return set(
        Member.objects.filter(user=user, tenant=None, project=None).values_list("role", flat=True)
    )


@pytest.mark.parametrize(("method", "route"), sorted(ROWS))
def test_everybody_gets_what_the_table_says(
    method: str, route: str, cast: Cast, hold: Hold
) -> None:
    hold(answers(ROWS[method, route], method, f"{API_ROOT}{route}", build(cast)))


@pytest.mark.parametrize("role", list(Role))
def test_a_fleet_owner_gives_every_role_and_takes_it_back(
    api: Api, cast: Cast, fay: User, role: Role
) -> None:
    answer = api(fay).post(URL, {"user": "ben", "role": role.value, "tenant": None}, format="json")
    made = answer.json()
    assert (answer.status_code, made["tenant"], made["project"]) == (201, None, None)
    assert fleet(cast.ben) == {role}
    assert api(fay).delete(f"{URL}/{made['id']}").status_code == 204
    assert fleet(cast.ben) == set()
    rows = AuditEvent.objects.order_by("id")
    assert [(row.action, row.actor, row.tenant_id, row.after["role"]) for row in rows] == [
        (action, f"user:{fay.id}", None, role) for action in ("member.grant", "member.revoke")
    ]


def test_a_second_operator_operates(api: Api, cast: Cast, fay: User) -> None:
    new = {"name": "new-one", "region": "eu"}
    assert api(cast.ben).post("/api/v1/clusters", new, format="json").status_code == 403
    assert give(api(fay), cast.ben, Role.OPERATOR) == 201
    assert api(cast.ben).post("/api/v1/clusters", new, format="json").status_code == 201


def test_they_are_listed(api: Api, cast: Cast, fay: User) -> None:
    found = api(cast.oz).get(URL).json()["items"]
    assert [(row["user"], row["role"]) for row in found] == [
        ("oz", "operator"),
        ("pia", "approver"),
        ("fay", "owner"),
    ]


def test_nobody_makes_themself_an_operator(api: Api, cast: Cast, fay: User) -> None:
    assert give(api(fay), fay, Role.OPERATOR) == 403
    assert fleet(fay) == {"owner"}


@pytest.mark.parametrize("role", [Role.OWNER, Role.OPERATOR])
def test_the_last_one_never_leaves(api: Api, cast: Cast, fay: User, role: Role) -> None:
    last = Member.objects.get(role=role, tenant=None, project=None)
    answer = api(fay).delete(f"{URL}/{last.id}")
    assert answer.status_code == 409
    assert f"The last {role} can't leave" in answer.json()["detail"]
    gone = factories.user("gone", is_active=False)
    factories.member(gone, role)
    assert api(fay).delete(f"{URL}/{last.id}").status_code == 409, "who is gone counts for nobody"
    assert give(api(fay), cast.ben, role) == 201
    assert api(fay).delete(f"{URL}/{last.id}").status_code == 204


def test_null_for_a_project_is_no_place(api: Api, cast: Cast, fay: User) -> None:
    body = {"user": "ben", "role": "operator", "project": None}
    answer = api(fay).post(URL, body, format="json")
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, "/project")
    assert fleet(cast.ben) == set()


@pytest.mark.parametrize("place", ["fleet", "project"])
def test_who_may_not_give_roles_does_not_learn_which_users_exist(
    api: Api, cast: Cast, place: str
) -> None:
    where: dict[str, object] = {"tenant": None}
    if place == "project":
        where = {"project": str(cast.detection.id)}
    answers = [
        api(cast.ben).post(URL, {"user": name, "role": "viewer"} | where, format="json")
        for name in ("cleo", "no-such-user")
    ]
    first, second = ((a.status_code, a.json()["detail"]) for a in answers)
    assert first == second
    assert first[0] == 403
