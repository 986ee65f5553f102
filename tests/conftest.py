"""The cast: who is who in every test.

Vision Lab owns Detection and Segmentation; Speech Lab owns Dialogue. ada owns Vision Lab, ben is a
member of Detection, vik a viewer of Vision Lab, cleo a member of Dialogue. oz operates the
fleet, pia approves for it.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.db.backends.base.operations import BaseDatabaseOperations
from django.db.backends.postgresql.operations import DatabaseOperations
from rest_framework.test import APIClient

from clusters.models import Imprint
from controlplane.portal import signed_in
from scheduler.selectors import load
from tenants.models import Project, Role, Tenant, User, UserSession
from tests import factories

type Unchanged = Callable[[], AbstractContextManager[None]]


@dataclass(frozen=True)
class Cast:
    vision: Tenant
    speech: Tenant
    detection: Project
    segmentation: Project
    dialogue: Project
    ada: User
    ben: User
    cleo: User
    oz: User
    pia: User
    vik: User


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None) -> None:
    """After a test that commits, Django empties all tables by TRUNCATE, which triggers refuse, and
    which makes some hundreds of files anew each time. DELETE takes a tenth as long.

    For that one transaction triggers are off, as only a superuser can have it, which the suite is.
    The database stays the one that it was: its imprint is left alone, and so are Django's own
    lists of models and permissions, which no test changes. Who still writes is waited for.
    """
    kept = {model._meta.db_table for model in (Imprint, ContentType, Permission)}

    def emptied(
        self: BaseDatabaseOperations, style: Any, tables: Sequence[str], **options: bool
    ) -> list[str]:
        """Any: how a terminal is coloured."""
        names = [self.quote_name(table) for table in tables if table not in kept]
        return [
            "SET LOCAL session_replication_role = replica",
            f"LOCK TABLE {', '.join(names)} IN SHARE ROW EXCLUSIVE MODE",
            "; ".join(f"DELETE FROM {name}" for name in names),
        ]

    DatabaseOperations.sql_flush = emptied  # type: ignore[method-assign]  # for the session


@pytest.fixture
def one_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that is one transaction sees one moment as it is: none can begin inside it."""
    monkeypatch.setattr(load, "frozen", nullcontext)


@pytest.fixture
def seen_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first request of each session tells it as seen; none does later, however long the test
    takes: what a request costs does not depend on the minute it falls in."""
    monkeypatch.setattr(signed_in, "_EVERY", timedelta(days=1))


@pytest.fixture
def cast(db: None) -> Cast:
    return assemble()


def assemble() -> Cast:
    vision = factories.tenant("Vision Lab")
    speech = factories.tenant("Speech Lab")
    detection = factories.project(vision, "Detection")
    segmentation = factories.project(vision, "Segmentation")
    dialogue = factories.project(speech, "Dialogue")
    ada, ben, cleo, oz, pia, vik = (
        factories.user(name) for name in ("ada", "ben", "cleo", "oz", "pia", "vik")
    )
    factories.member(ada, Role.OWNER, at=vision)
    factories.member(ben, Role.MEMBER, at=detection)
    factories.member(vik, Role.VIEWER, at=vision)
    factories.member(cleo, Role.MEMBER, at=dialogue)
    factories.member(oz, Role.OPERATOR)
    factories.member(pia, Role.APPROVER)
    return Cast(vision, speech, detection, segmentation, dialogue, ada, ben, cleo, oz, pia, vik)


@pytest.fixture
def ada(cast: Cast) -> User:
    """Owner of Vision Lab."""
    return cast.ada


@pytest.fixture
def ben(cast: Cast) -> User:
    """Member of Detection, a project of Vision Lab."""
    return cast.ben


@pytest.fixture
def cleo(cast: Cast) -> User:
    """Outsider: member of Speech Lab's Dialogue."""
    return cast.cleo


@pytest.fixture
def fay(cast: Cast) -> User:
    """Owner of the whole fleet."""
    made = factories.user("fay")
    factories.member(made, Role.OWNER)
    return made


@pytest.fixture
def oz(cast: Cast) -> User:
    """Operator of the whole fleet."""
    return cast.oz


@pytest.fixture
def pia(cast: Cast) -> User:
    """Approver for the whole fleet."""
    return cast.pia


@pytest.fixture
def vik(cast: Cast) -> User:
    """Viewer of Vision Lab."""
    return cast.vik


@pytest.fixture
def api() -> Callable[[User | None], APIClient]:
    """A client of the API, signed in as that user by session (CSRF checks off)."""

    def client(user: User | None) -> APIClient:
        made = APIClient(raise_request_exception=True)
        if user is not None:
            made.force_login(user)
        return made

    return client


@pytest.fixture
def nothing_stored(db: None) -> Unchanged:
    """A context in which no row of ours may appear, vanish or change; signing in may."""
    ours = {
        model: [field.name for field in model._meta.concrete_fields if field.name != "last_login"]
        for label in ("audit", "api", "clusters", "tenants", "scheduler")
        for model in apps.get_app_config(label).get_models()
        if model is not UserSession
    }

    def state() -> list[object]:
        return [
            sorted(model._default_manager.values_list(*names), key=repr)
            for model, names in ours.items()
        ]

    @contextmanager
    def unchanged() -> Iterator[None]:
        before = state()
        yield
        assert state() == before

    return unchanged
