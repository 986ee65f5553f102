"""The world of a module's tests, built once, for what each of them does is undone; the API's
description; and what holds a row of the matrix to what it says."""

import json
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection, transaction
from django.test import Client
from pytest_django.plugin import DjangoDbBlocker

from controlplane.kernel.throttle import Throttle
from scheduler.services import asking, inspections
from tenants.services import channels
from tests.api.cells import Cells, unlike
from tests.api.world import World, build
from tests.conftest import assemble


@pytest.fixture(scope="module")
def built(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[World]:
    with django_db_blocker.unblock(), transaction.atomic():
        made = build(assemble())
        connection.check_constraints()  # here, and not at the end of each test
        yield made
        transaction.set_rollback(True)


@pytest.fixture
def world(built: World, db: None, one_moment: None, monkeypatch: pytest.MonkeyPatch) -> World:
    """Every test begins with it as it was built: it is inside its transaction, and its clients
    are its own. Who asked for much in the tests before may ask again."""
    for module, name in ((asking, "ASKED"), (inspections, "ASKED"), (channels, "TRIED")):
        monkeypatch.setattr(module, name, Throttle(most=100, window=timedelta(minutes=1)))
    return replace(built, clients={name: _like(client) for name, client in built.clients.items()})


@pytest.fixture(scope="session")
def document(tmp_path_factory: pytest.TempPathFactory) -> Any:  # Any: JSON
    """What `manage.py spectacular` writes; a warning fails it. Nobody changes it."""
    path = tmp_path_factory.mktemp("schema") / "schema.json"
    call_command(
        "spectacular", "--validate", "--fail-on-warn", "--format", "openapi-json",
        "--file", str(path),
    )  # fmt: skip
    made = json.loads(path.read_text())
    for schema in made["components"]["schemas"].values():
        if "properties" in schema and "allOf" not in schema:
            schema["additionalProperties"] = False
    return made


@pytest.fixture
def hold(record_property: Callable[[str, object], None]) -> Callable[[Cells], None]:
    """Fails where a cell is not as it should be; `make matrix` counts them."""

    def hold(cells: Cells) -> None:
        record_property("cells", len(cells))
        wrong = unlike(cells)
        record_property("wrong", len(wrong))
        assert wrong == {}

    return hold


def _like(client: Client) -> Client:
    """One that is signed in as that is, and may sign out."""
    made = copy(client)
    made.cookies, made.defaults = copy(client.cookies), dict(client.defaults)
    return made
