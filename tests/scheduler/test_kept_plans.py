"""What is said often is planned once, and again when its tables may have grown (ADR 0048)."""

from uuid import uuid4

import pytest
from django.db import DataError, connection
from django.test.utils import CaptureQueriesContext

from controlplane.api.models import IdempotencyKey
from controlplane.kernel import statements
from controlplane.kernel.ids import uuid7
from tenants import access
from tenants.models import Scope, Token
from tenants.services import tokens
from tests import factories
from tests.factories import AT

pytestmark = pytest.mark.django_db

OFTEN = 12
"""More than psycopg waits to prepare, and PostgreSQL to settle for one plan."""
_ASK = "SELECT id FROM grown WHERE id = %s::bigint"


@pytest.fixture
def grown() -> None:
    """A table of one row, of which the statistics say so."""
    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMP TABLE grown (id bigint PRIMARY KEY) ON COMMIT DROP")
        cursor.execute("INSERT INTO grown VALUES (1)")
        cursor.execute("ANALYZE grown")


def ask(times: int = 1) -> None:
    for _ in range(times):
        with statements.cursor() as cursor:
            cursor.execute(_ASK, [1])
            assert cursor.fetchall() == [(1,)]


def prepared() -> tuple[str, int]:
    """The session's name for the statement, and how often it went by the plan that is kept."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT name, generic_plans FROM pg_prepared_statements WHERE statement LIKE %s",
            ["SELECT id FROM grown%"],
        )
        [(name, kept)] = cursor.fetchall()
    return name, kept


def plan() -> str:
    """By what the session goes."""
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN EXECUTE {prepared()[0]}(1)")
        return "\n".join(line for [line] in cursor.fetchall())


@pytest.mark.usefixtures("grown")
def test_what_is_said_often_is_planned_once() -> None:
    ask(OFTEN)
    _, kept = prepared()
    ask(OFTEN)
    assert kept > 0
    assert prepared()[1] == kept + OFTEN


@pytest.mark.usefixtures("grown")
def test_a_plan_is_made_anew_once_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    ask(OFTEN)
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO grown SELECT n FROM generate_series(2, 20000) n")
    ask()
    assert "Seq Scan" in plan(), "what this shows the end of"
    monkeypatch.setattr(statements, "PLANNED_S", 0)
    ask()
    assert "Index" in plan()


@pytest.mark.usefixtures("grown")
def test_to_plan_anew_is_no_statement_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statements, "PLANNED_S", 0)
    with CaptureQueriesContext(connection) as queries:
        ask(2)
    assert len(queries) == 2


def test_what_is_wrong_is_djangos_error() -> None:
    with pytest.raises(DataError), statements.cursor() as cursor:
        cursor.execute("SELECT %s::bigint", ["one"])


def test_ids_arrive_as_they_were_sent() -> None:
    first, second = uuid4(), uuid4()
    for sent in ([], [first], [first, second], [None, second], [None]):
        with statements.cursor() as cursor:
            cursor.execute("SELECT %s::uuid[]", [sent])
            assert cursor.fetchall() == [(sent,)]


def test_rows_are_read_as_the_orm_has_them() -> None:
    mine = uuid7()
    kept = IdempotencyKey.objects.create(
        principal="user:1",
        route="POST /",
        key="k",
        digest="d",
        status=201,
        answer={"items": [{"id": str(mine), "count": 1}]},
        created_at=AT,
    )
    [found] = statements.read(IdempotencyKey, "key = %s AND principal = %s", ["k", "user:1"])
    assert vars(found) | {"_state": None} == vars(kept) | {"_state": None}
    assert not found._state.adding
    user = factories.user("ada")
    tokens.issue(actor=access.actor_for(user=user), name="t", scopes=[Scope.READ], at=AT)
    [token] = statements.read(Token, "user_id = %s", [user.id])
    assert (token.scopes, token.user) == ([Scope.READ], user)
    assert statements.read(Token, "id = %s", [mine]) == []
