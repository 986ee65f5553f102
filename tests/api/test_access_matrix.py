"""Every route of the URLconf but the back office's, each method, everybody who might ask: as
access_table.py says. Pages also as htmx asks for a part of one, which is no other door.
"""

from collections.abc import Callable, Iterator
from itertools import product

import pytest
from django.db import transaction
from django.http import HttpResponse
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, include, path
from django.urls.resolvers import RegexPattern
from django.utils.functional import Promise

from controlplane import health, urls
from tenants import access
from tenants.models import Role, Scope, User
from tenants.web.request_api import GrantApi
from tests import factories
from tests.api.access_table import API
from tests.api.cells import Cells, unlike
from tests.api.page_access_table import OTHERS
from tests.api.row import Row
from tests.api.world import COLUMNS, World

API_ROOT = "api/v1/"
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
ROWS = {(method, f"{API_ROOT}{route}"): row for (method, route), row in API.items()} | OTHERS
type Hold = Callable[[Cells], None]

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


def answers(row: Row, method: str, route: str, world: World) -> Cells:
    """Who got which status, and which the row says."""
    url = path_of(route, row, world)
    return {
        column: (ask(world.clients[column], method, url, row, world).status_code, expected)
        for column, expected in zip(COLUMNS, map(int, row.expect.split()), strict=True)
    }


def differences(method: str, route: str, world: World) -> Cells:
    return unlike(answers(ROWS[method, route], method, route, world))


@pytest.mark.parametrize(("method", "route"), sorted(ROWS), ids=lambda part: part or "home")
def test_everybody_gets_what_the_table_says(
    method: str, route: str, world: World, hold: Hold
) -> None:
    hold(answers(ROWS[method, route], method, route, world))


@pytest.mark.parametrize("route", ours(), ids=lambda route: route or "home")
def test_a_method_without_a_row_is_refused_to_everybody(
    route: str, world: World, hold: Hold
) -> None:
    rows = {method: row for (method, known), row in ROWS.items() if known == route}
    url = path_of(route, next(iter(rows.values())), world)
    cells = {}
    for method, column in product(METHODS, ASKED):
        if method not in rows:
            status = ask(world.clients[column], method, url, None, world).status_code
            got = "refused" if status in REFUSED else status
            cells[f"{method} by {column}"] = (got, "refused")
    hold(cells)


@pytest.mark.parametrize(
    ("method", "route"), sorted(key for key in ROWS if not key[1].startswith(API_ROOT))
)
def test_a_part_of_a_page_is_for_who_may_see_the_page(
    method: str, route: str, world: World, hold: Hold
) -> None:
    """What leads elsewhere does so by a header there, and shows nothing."""
    row = ROWS[method, route]
    url = path_of(route, row, world)
    cells: dict[str, tuple[object, object]] = {}
    for column, expected in zip(COLUMNS, map(int, row.expect.split()), strict=True):
        client = world.clients[column]
        client.defaults["HTTP_HX_REQUEST"] = "true"
        got = ask(client, method, url, row, world)
        if "HX-Redirect" in got.headers:
            cells[column] = (expected in {302, 303}, got.content), (True, b"")
        else:
            cells[column] = got.status_code, expected
    hold(cells)


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
