"""Every route of the back office: staff look, and nobody else gets anything, whatever their roles.
Only users have forms there; a form that is not filled in, and an action on what is listed, change
nothing."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from uuid import uuid4

import pytest
from django.contrib import admin
from django.contrib.admin import AdminSite
from django.db.models import Model
from django.http import HttpResponse
from rest_framework.test import APIClient

from controlplane.kernel.admin import ReadOnly
from tenants.models import User
from tests import factories
from tests.api.cells import Cells, unlike
from tests.api.test_access_matrix import BACK_OFFICE, Hold, routes
from tests.api.world import World
from tests.conftest import Unchanged

type Answers = tuple[object, object]
"""By GET and by POST: statuses, and of strangers where they are led."""

ROUTES = sorted({route for route in routes() if route.startswith(BACK_OFFICE)})
MODELS = {
    f"{BACK_OFFICE}{model._meta.app_label}/{model._meta.model_name}/": model
    for model in admin.site._registry
}
STRANGERS = ("anonymous", "member", "owner", "fleet owner")
OBJECT = "<path:object_id>/"
LOOK: dict[str, Answers] = {
    "": (200, 200),
    "add/": (403, 403),
    OBJECT: (302, 302),
    f"{OBJECT}change/": (200, 403),
    f"{OBJECT}delete/": (403, 403),
    f"{OBJECT}history/": (200, 200),
}
"""What staff get of an object, superusers too."""
MISS: dict[str, Answers] = {f"{OBJECT}change/": (302, 302), f"{OBJECT}history/": (302, 302)}
"""Of one that is not there."""
USERS: dict[str, Answers] = {
    "": (200, 200),
    "add/": (200, 200),
    f"{OBJECT}change/": (200, 200),
    f"{OBJECT}history/": (200, 200),
    "<id>/password/": (200, 200),
}
"""Of users, whom superusers alone see and edit: no form here is filled in."""
REST: dict[str, Answers] = {
    "": (200, 200),
    "^(?P<app_label>audit|clusters|tenants|scheduler)/$": (200, 200),
    "(?P<url>.*)$": (404, 404),
    "autocomplete/": (403, 405),
    "jsi18n/": (200, 405),
    "password_change/": (200, 200),
    "password_change/done/": (200, 405),
    "r/<path:content_type_id>/<path:object_id>/": (404, 404),
}
LOGIN, LOGOUT = f"{BACK_OFFICE}login/", f"{BACK_OFFICE}logout/"
ARGUMENTS = {
    "<path:content_type_id>": "1",
    "^(?P<app_label>audit|clusters|tenants|scheduler)/$": "tenants/",
    "(?P<url>.*)$": "nothing",
}


@pytest.fixture(scope="module")
def built(built: World) -> World:
    clients = {who: built.clients[who] for who in STRANGERS}
    for who, is_superuser in (("staff", False), ("superuser", True)):
        clients[who] = APIClient()
        user = factories.user(who, is_staff=True, is_superuser=is_superuser)
        clients[who].force_login(user)
    return replace(built, clients=clients)


def home_of(route: str) -> str:
    """The list of the objects that the route is of; its own, where it is of none."""
    return next((home for home in MODELS if route.startswith(home)), route)


def expected(who: str, route: str, row: Model | None, url: str) -> Answers:
    home = home_of(route)
    if route == LOGIN:
        return ("/sign-in?next=/admin/", 405) if who == "anonymous" else (403, 405)
    if route == LOGOUT:
        return ("/admin/", "/admin/") if who in STRANGERS else (405, 302)
    if who in STRANGERS:
        return (f"/{LOGIN}?next={url}",) * 2
    if home not in MODELS:
        return REST[route.removeprefix(BACK_OFFICE)]
    part = route.removeprefix(home)
    if MODELS[home] is User and part not in {OBJECT, f"{OBJECT}delete/"}:
        return USERS[part] if who == "superuser" else (403, 403)
    return LOOK[part] if row is not None else (LOOK | MISS)[part]


def answers(home: str, world: World) -> Cells:
    """Of all routes of one model, or of one that is of none."""
    model = MODELS.get(home)
    row = model._default_manager.order_by("pk").first() if model else None
    pk = str(row.pk if row else uuid4())
    cells: dict[str, tuple[object, object]] = {}
    for route in (route for route in ROUTES if home_of(route) == home):
        url = f"/{route}"
        for argument, value in {**ARGUMENTS, "<path:object_id>": pk, "<id>": pk}.items():
            url = url.replace(argument, value)
        sent = {"post": "yes", "action": "delete_selected", "_selected_action": pk}
        for who, (nth, method) in product(world.clients, enumerate(("get", "post"))):
            send: Callable[..., HttpResponse] = getattr(world.clients[who], method)
            got = send(url, sent if nth else {}, format="multipart")
            right = expected(who, route, row, url)[nth]
            cells[f"{method.upper()} {route} by {who}"] = (_got(who, got), right)
    return cells


def _got(who: str, answer: HttpResponse) -> object:
    """A stranger is told to sign in, and nothing else."""
    if who in STRANGERS and answer.status_code == 302 and not answer.content:
        return answer["Location"]
    return answer.status_code


@pytest.mark.parametrize("home", sorted({home_of(route) for route in ROUTES}))
def test_staff_look_and_nobody_touches(
    home: str, world: World, nothing_stored: Unchanged, hold: Hold
) -> None:
    with nothing_stored():
        cells = answers(home, world)
    hold(cells)


def test_every_object_there_is_of_a_route() -> None:
    assert set(MODELS) <= set(ROUTES)


def test_it_notices_a_back_office_for_everybody(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AdminSite, "has_permission", lambda self, request: True)
    found = unlike(answers(f"{BACK_OFFICE}tenants/quota/", world))
    assert {who.rpartition(" by ")[2] for who in found} == set(STRANGERS)


def test_it_notices_an_object_that_can_be_edited(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ReadOnly, "has_change_permission", lambda *_: True)
    found = unlike(answers(f"{BACK_OFFICE}tenants/quota/", world))
    route = f"POST {BACK_OFFICE}tenants/quota/{OBJECT}change/"
    assert set(found) == {f"{route} by staff", f"{route} by superuser"}


def test_it_notices_an_object_that_can_be_deleted(
    world: World, monkeypatch: pytest.MonkeyPatch, nothing_stored: Unchanged
) -> None:
    monkeypatch.setattr(ReadOnly, "has_delete_permission", lambda *_: True)
    with pytest.raises(AssertionError), nothing_stored():
        answers(f"{BACK_OFFICE}tenants/budget/", world)
