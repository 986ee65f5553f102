"""Every route of the URLconf, each method, everybody who might ask: as access_table.py says."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product

import pytest
from django.db import transaction
from django.http import HttpResponse
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, include, path, reverse
from django.urls.resolvers import RegexPattern
from django.utils.functional import Promise

from controlplane import health, urls
from tenants import access
from tenants.models import Role, Scope, User
from tenants.web.request_api import GrantApi
from tests import factories
from tests.api.access_table import API
from tests.api.page_access_table import OTHERS
from tests.api.row import Row
from tests.api.world import COLUMNS, World

API_ROOT = "api/v1/"
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
ROWS = {(method, f"{API_ROOT}{route}"): row for (method, route), row in API.items()} | OTHERS
BACK_OFFICE = "admin/"
ASKED = ("owner", "fleet operator", "outsider", "anonymous", "all scopes")
"""Enough of them for what nobody may do."""
REFUSED = {302, 401, 403, 404, 405}
"""Statuses of a method that a route does not have."""


def routes(resolver: URLResolver | None = None, prefix: str = "") -> Iterator[str]:
    """Every route below `resolver`, as the URLconf writes it."""
    for pattern in (resolver or get_resolver()).url_patterns:
        route = f"{prefix}{_route(pattern)}"
        if isinstance(pattern, URLResolver):
            yield from routes(pattern, route)
        else:
            yield route


def _route(pattern: URLPattern | URLResolver) -> str:
    route = pattern.pattern
    return str(getattr(route, "_route", route))


def ours() -> list[str]:
    return sorted({route for route in routes() if not route.startswith(BACK_OFFICE)})


def path_of(route: str, row: Row, world: World) -> str:
    url = route
    for name, what in row.ids.items():
        value = what[1:] if what.startswith("=") else world.ids[what]
        start = url.index("<")
        assert f":{name}>" in url[start:], f"{route} has no argument {name}"
        url = f"{url[:start]}{value}{url[url.index('>') + 1 :]}"
    assert "<" not in url, f"the row of {route} leaves an argument open"
    return f"/{url}{row.query(world)}"


def ask(client: Client, method: str, url: str, row: Row | None, world: World) -> HttpResponse:
    body = row.body(world) if row is not None and row.body is not None else None
    form = row is not None and row.form
    send: Callable[..., HttpResponse] = getattr(client, method.lower())
    with transaction.atomic():
        answer = (
            send(url, body or {}, format="multipart") if form else send(url, body, format="json")
        )
        transaction.set_rollback(True)
    return answer


def test_every_route_has_a_row() -> None:
    known = {route for _, route in ROWS}
    assert [route for route in ours() if route not in known] == []


def test_every_row_has_a_route() -> None:
    assert sorted({route for _, route in ROWS} - set(ours())) == []


def differences(method: str, route: str, world: World) -> dict[str, tuple[int, int]]:
    """Who got another status than the table says: column -> (got, expected)."""
    return unlike(ROWS[method, route], method, route, world)


def unlike(row: Row, method: str, route: str, world: World) -> dict[str, tuple[int, int]]:
    """The same of one row."""
    url = path_of(route, row, world)
    got = {
        column: ask(world.clients[column], method, url, row, world).status_code
        for column in COLUMNS
    }
    expected = dict(zip(COLUMNS, map(int, row.expect.split()), strict=True))
    return {
        column: (got[column], expected[column])
        for column in COLUMNS
        if got[column] != expected[column]
    }


@pytest.mark.parametrize(("method", "route"), sorted(ROWS), ids=lambda part: part or "home")
def test_everybody_gets_what_the_table_says(method: str, route: str, world: World) -> None:
    assert differences(method, route, world) == {}


@pytest.mark.parametrize("route", ours(), ids=lambda route: route or "home")
def test_a_method_without_a_row_is_refused_to_everybody(route: str, world: World) -> None:
    rows = {method: row for (method, known), row in ROWS.items() if known == route}
    url = path_of(route, next(iter(rows.values())), world)
    for method, column in product(METHODS, ASKED):
        if method not in rows:
            status = ask(world.clients[column], method, url, None, world).status_code
            assert status in REFUSED, f"{method} by {column}: {status}"


@pytest.mark.parametrize(
    ("method", "route"),
    [(method, route) for (method, route), row in sorted(ROWS.items()) if "<uuid:" in route],
)
def test_an_outsider_can_not_tell_foreign_from_missing(
    method: str, route: str, world: World
) -> None:
    row = ROWS[method, route]
    if row.expect.split()[COLUMNS.index("outsider")] != "404":
        return
    missing = replace(world, ids={key: _other(value) for key, value in world.ids.items()})
    answers = []
    for asked in (world, missing):
        url = path_of(route, row, asked)
        answer = ask(world.clients["outsider"], method, url, row, world)
        answers.append(answer.content.replace(url.encode(), b"").replace(_id(url), b""))
    assert answers[0] == answers[1]


def _other(value: object) -> str:
    """An id of the same form that nothing has."""
    text = str(value)
    return f"{text[:-4]}{'0000' if text[-4:] != '0000' else '1111'}"


def _id(url: str) -> bytes:
    path = url.partition("?")[0]
    return next(part for part in path.split("/") if len(part) == 36).encode()


def test_the_back_office_is_closed_to_everybody_here(world: World) -> None:
    for route, column in product([BACK_OFFICE, "admin/tenants/user/"], COLUMNS):
        answer = world.clients[column].get(f"/{route}")
        assert answer.status_code == 302
        assert reverse("admin:login") in answer["Location"]


def test_names_of_routes_are_plain_text() -> None:
    """A lazy translation as a route would slip past the table."""
    assert not any(isinstance(route, Promise) for route in routes())


def test_it_notices_an_unscoped_query(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "for_actor", lambda rows, **_: rows)
    found = differences("GET", f"{API_ROOT}workloads/<uuid:id>", world)
    assert found == {"outsider": (200, 404), "narrow project": (200, 404)}


def test_it_notices_a_missing_check(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "authorize", lambda *_, **__: None)
    found = differences("POST", f"{API_ROOT}workloads", world)
    assert {"viewer", "narrow scope"} <= set(found)


def test_it_notices_a_token_that_decides(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    factories.member(User.objects.get(username="ada"), Role.APPROVER, at=world.tenant)
    monkeypatch.setitem(access.SCOPE_ACTIONS, Scope.QUOTA, frozenset(access.Action))
    monkeypatch.setattr(GrantApi, "session_only", False)
    found = differences("POST", f"{API_ROOT}quota-requests/<uuid:id>/grant", world)
    assert found["all scopes"] == (200, 403)


def test_it_notices_a_route_without_a_row() -> None:
    known = {route for _, route in ROWS}
    more: list[URLPattern | URLResolver] = [
        path("", include(urls)),
        path("planted", health.healthz),
    ]
    planted = URLResolver(RegexPattern(""), more)
    assert [route for route in routes(planted) if route not in known and "admin" not in route] == [
        "planted"
    ]
