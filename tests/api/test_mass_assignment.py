"""No writing endpoint takes a field that it does not describe, be it a column of any table: each
is named as unknown, wherever in the body it stands, and nothing is stored."""

import json
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from typing import Any

import pytest
from django.test import Client
from rest_framework import serializers
from rest_framework.test import APIClient

from controlplane.api.fields import StrictSerializer
from scheduler.web.reading import Faults
from tenants.models import Project, Role
from tests import factories
from tests.api.access_table import API
from tests.api.columns import of_models
from tests.api.test_access_matrix import API_ROOT, path_of
from tests.api.test_schema import documented, plain
from tests.api.world import COLUMNS, World
from tests.conftest import Unchanged

type Json = Any  # JSON values
type Path = tuple[str | int, ...]

WRITING = sorted((method, route) for method, route in API if method in {"POST", "PUT", "PATCH"})
NOBODYS = frozenset(
    {"created_at", "is_active", "is_from_above", "is_staff", "is_superuser", "last_login",
     "password", "project_id", "requested_by", "service_project", "service_tenant", "submitted_by",
     "tenant_id", "user_id"}
)  # fmt: skip
"""Columns that Berth alone writes: no body may come to have a field of that name."""


def objects(schema: Json, document: Json, at: Path = ()) -> Iterator[tuple[Path, frozenset[str]]]:
    """Where in a body an object may stand, and the fields that it takes there."""
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    for part in (*schema.get("allOf", ()), *schema.get("oneOf", ()), *schema.get("anyOf", ())):
        yield from objects(part, document, at)
    fields = schema.get("properties")
    if fields is not None:
        yield at, frozenset(name for name, each in fields.items() if not each.get("readOnly"))
        for name, each in fields.items():
            yield from objects(each, document, (*at, name))
    if isinstance(schema.get("items"), dict):
        yield from objects(schema["items"], document, (*at, 0))
    if isinstance(schema.get("additionalProperties"), dict):
        yield from objects(schema["additionalProperties"], document, (*at, "any"))


def with_fields(body: Json, at: Path, fields: Mapping[str, Json]) -> Json:
    """The body, with these fields in the object at that place, which is made where it lacks."""
    if not at:
        return {**(body if isinstance(body, dict) else {}), **fields}
    step, rest = at[0], at[1:]
    if isinstance(step, int):
        items = list(body) if body else [None]
        return [with_fields(items[0], rest, fields), *items[1:]]
    inner = body if isinstance(body, dict) else {}
    return {**inner, step: with_fields(inner.get(step), rest, fields)}


def writer(world: World, method: str, route: str) -> Client:
    """Somebody who may: the first whom the table lets, or whose request is read, else who has
    every role in the whole fleet."""
    said = dict(zip(COLUMNS, map(int, API[method, route].expect.split()), strict=True))
    for least in (200, 400):
        for column, status in said.items():
            if least <= status < least + 100 and status not in {401, 403, 404}:
                return world.clients[column]
    root = factories.user("root")
    for role in Role:
        factories.member(root, role)
    client = APIClient()
    client.force_login(root)
    return client


def unnamed(send: Callable[[Json], Any], names: frozenset[str], root: str) -> frozenset[str]:
    """Those of the names that no answer calls unknown; of many faults not all are told at once.
    Any: a response."""
    left = names
    while left:
        answer = send(left)
        faults = answer.json().get("errors", ()) if answer.status_code == 400 else ()
        found = {each["pointer"] for each in faults if each["code"] == "unknown-field"}
        told = {name for name in left if f"{root}/{name}" in found}
        if not told:
            break
        left -= told
    return left


def overlooked(method: str, route: str, world: World, document: Json, client: Client) -> list[str]:
    """Where in the body each column's name may stand without being refused as unknown."""
    row = API[method, route]
    url = path_of(f"{API_ROOT}{route}", row, world)
    body = deepcopy(dict(row.body(world))) if row.body else {}
    told = documented(document)[method, plain(route)].get("requestBody")
    if told is None:
        answer = client.generic(method, url, json.dumps(dict.fromkeys(of_models(), "x")))
        refused = answer.status_code == 400 and answer.json()["code"] == "unknown-field"
        return [] if refused else [""]
    found: list[str] = []
    for at, known in objects(told["content"]["application/json"]["schema"], document):

        def send(names: frozenset[str], at: Path = at) -> Any:  # Any: a response
            odd = with_fields(body, at, dict.fromkeys(sorted(names), "x"))
            return client.generic(method, url, json.dumps(odd), "application/json")

        root = "".join(f"/{step}" for step in at)
        found += [f"{root}/{name}" for name in unnamed(send, of_models() - known, root)]
    return found


@pytest.mark.parametrize(("method", "route"), WRITING)
def test_no_column_is_written_that_the_endpoint_does_not_take(
    method: str, route: str, world: World, document: Json, nothing_stored: Unchanged
) -> None:
    client = writer(world, method, route)
    with nothing_stored():
        assert overlooked(method, route, world, document, client) == []


@pytest.mark.parametrize(("method", "route"), WRITING)
def test_no_endpoint_takes_what_berth_alone_writes(
    method: str, route: str, document: Json
) -> None:
    assert of_models() >= NOBODYS
    told = documented(document)[method, plain(route)].get("requestBody")
    schema = told["content"]["application/json"]["schema"] if told else {}
    assert [at for at, known in objects(schema, document) if known & NOBODYS] == []


def test_it_notices_a_body_that_is_not_strict(
    world: World, document: Json, monkeypatch: pytest.MonkeyPatch
) -> None:
    lax = serializers.Serializer.to_internal_value
    monkeypatch.setattr(StrictSerializer, "to_internal_value", lax)
    assert set(overlooked("POST", "projects", world, document, world.clients["owner"])) >= {
        "/id",
        "/created_at",
    }
    assert Project.objects.filter(slug="new").exists()


def test_it_notices_a_part_of_a_body_that_is_not_strict(
    world: World, document: Json, monkeypatch: pytest.MonkeyPatch
) -> None:
    strict = Faults.unknown

    def lax(self: Faults, data: Mapping[str, Json], known: frozenset[str], root: str) -> None:
        if not root.endswith("/wish"):
            strict(self, data, known, root)

    monkeypatch.setattr(Faults, "unknown", lax)
    found = overlooked("POST", "workloads/dry-run", world, document, world.clients["owner"])
    assert "/pod_sets/0/wish/created_at" in found
    assert all(pointer.startswith("/pod_sets/0/wish/") for pointer in found)
