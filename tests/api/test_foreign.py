"""What an id says that is not theirs: nothing. Each route whose address or body names an object of
a tenant is asked with the id of one that is there, and with an id that nothing has, and answers
alike to who may see neither."""

import re
from collections import defaultdict
from dataclasses import replace
from uuid import UUID

import pytest
from django.http import HttpResponse
from django.test import Client
from rest_framework.test import APIClient

from tenants import access
from tenants.models import Project, Role, Tenant, User
from tests import factories
from tests.api.cells import Cells, unlike
from tests.api.row import Row
from tests.api.test_access_matrix import API_ROOT, ROWS, Hold, ask, path_of
from tests.api.world import World
from tests.conftest import Cast

EVERYBODYS = {
    "cluster", "other cluster", "cluster name", "other cluster name", "flavor", "node pool",
    "declared pool",
}  # fmt: skip
"""What whoever is signed in sees."""
SEEN = {"neighbour": EVERYBODYS, "sibling": EVERYBODYS | {"tenant", "approval rule"}}
"""Who has every role in another tenant, and in another project of this one: they see this one and
its rules."""
_NEW = re.compile(rb'name="csrfmiddlewaretoken" value="[^"]*"|"as_of":"[^"]*"')


def names_an_object(route: str, row: Row) -> bool:
    """That not everybody sees, as it would be in a world in which all of them have one id."""
    id = UUID(int=7)
    named, other, who = Project(id=id), Project(), User()
    cast = Cast(
        vision=Tenant(id=id), speech=Tenant(), detection=named, segmentation=other, dialogue=other,
        ada=who, ben=who, cleo=who, oz=who, pia=who, vik=who,
    )  # fmt: skip
    ids: defaultdict[str, object] = defaultdict(lambda: id, dict.fromkeys(EVERYBODYS, "seen"))
    world = World(cast, cast.vision, named, ids, {})
    return str(id) in f"{path_of(route, row, world)} {row.body(world) if row.body else ''}"


NAMING = [key for key, row in sorted(ROWS.items()) if names_an_object(key[1], row)]


@pytest.fixture(scope="module")
def built(built: World) -> World:
    clients = {
        "neighbour": _in_all_roles("nia", built.cast.speech),
        "sibling": _in_all_roles("sam", built.cast.segmentation),
    }
    return replace(built, clients=clients)


def _in_all_roles(name: str, place: Project | Tenant) -> Client:
    user, client = factories.user(name), APIClient()
    for role in Role:
        factories.member(user, role, at=place)
    client.force_login(user)
    return client


def without(world: World, seen: set[str]) -> World:
    """The same, in which what is not `seen` has an id that nothing has."""
    ids = {what: id if what in seen else _other(id) for what, id in world.ids.items()}
    tenant, project = Tenant(id=ids["tenant"]), Project(id=ids["project"])
    cast = replace(world.cast, vision=tenant, detection=project)
    return replace(world, ids=ids, cast=cast, tenant=tenant, project=project)


def _other(value: object) -> str:
    """One of the same form."""
    text = str(value)
    return f"{text[:-4]}{'0000' if text[-4:] != '0000' else '1111'}"


def answers(method: str, route: str, world: World) -> Cells:
    row = ROWS[method, route]
    cells: dict[str, tuple[object, object]] = {}
    for who, client in world.clients.items():
        foreign, missing = (
            said(client, ask(client, method, path_of(route, row, asked), row, asked), asked)
            for asked in (world, without(world, SEEN[who]))
        )
        cells[who] = foreign, missing
    return cells


def said(client: Client, answer: HttpResponse, world: World) -> tuple[int, bytes]:
    """With what the next page says of it; without the ids that were asked for, and what is new in
    each answer."""
    content = answer.content
    if answer.status_code == 303:
        content += client.get(answer["Location"]).content
    for id in world.ids.values():
        if len(str(id)) == 36:
            content = content.replace(str(id).encode(), b"")
    return answer.status_code, _NEW.sub(b"", content)


@pytest.mark.parametrize(("method", "route"), NAMING)
def test_nobody_can_tell_foreign_from_missing(
    method: str, route: str, world: World, hold: Hold
) -> None:
    hold(answers(method, route, world))


def test_it_asks_of_bodies_and_queries_too() -> None:
    assert {("POST", f"{API_ROOT}workloads"), ("GET", f"{API_ROOT}usage")} <= set(NAMING)


@pytest.mark.parametrize(
    ("method", "route"),
    [("POST", "workloads"), ("GET", "usage"), ("POST", "projects/<uuid:id>/name")],
)
def test_it_notices_an_id_that_is_known(
    method: str, route: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "allowed", lambda *_, **__: True)
    assert set(unlike(answers(method, f"{API_ROOT}{route}", world))) == set(SEEN)
