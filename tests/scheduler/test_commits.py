"""Which commits wait for the disk (ADR 0042), told by the statements of each transaction."""

from collections.abc import Callable
from functools import partial

from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from clusters.port import PodPhase
from controlplane.kernel.commits import NOT_WAITING
from scheduler.models import Placement
from tests.scheduler.stage import Stage


def transactions(run: Callable[[], object]) -> list[list[str]]:
    """What `run` does in transactions, which are savepoints here."""
    with CaptureQueriesContext(connection) as queries:
        run()
    found: list[list[str]] = []
    inside = False
    for sql in (query["sql"] for query in queries):
        if sql.startswith("SAVEPOINT"):
            found.append([])
        elif inside and not sql.startswith("RELEASE"):
            found[-1].append(sql)
        inside = not sql.startswith("RELEASE") and (inside or sql.startswith("SAVEPOINT"))
    return found


def that_wait(run: Callable[[], object]) -> list[str]:
    """The first statements of those that wait."""
    return [
        statements[0]
        for statements in transactions(run)
        if not any(NOT_WAITING in sql for sql in statements)
    ]


def test_it_is_for_the_one_transaction_that_says_so(transactional_db: None) -> None:
    def source() -> str:
        with connection.cursor() as cursor:
            cursor.execute("SELECT source FROM pg_settings WHERE name = 'synchronous_commit'")
            return str(cursor.fetchone()[0])

    before = source()
    assert before != "session"
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT FROM {NOT_WAITING}")
        assert source() == "session"
    assert source() == before


def test_of_a_start_the_uids_wait_and_neither_claim_nor_close(stage: Stage) -> None:
    stage.submit()
    stage.cycle()
    stage.dispatch()  # the project's first one there is confined, which is noted
    stage.submit("next")
    stage.cycle()
    [stores] = that_wait(stage.dispatch)
    assert "SET pod_uid" in stores
    assert Placement.objects.exclude(opened_at=None).exists()


def test_what_is_seen_of_pods_does_not_wait(stage: Stage) -> None:
    stage.started()
    [placement] = Placement.objects.select_related("workload__project")
    for phase in (PodPhase.RUNNING, PodPhase.SUCCEEDED):
        report = stage.report(placement, phase)
        made = transactions(partial(stage.observe, report))
        assert [NOT_WAITING in statements[0] for statements in made] == [True]


def test_what_others_rely_on_waits(stage: Stage) -> None:
    assert that_wait(stage.submit)
    [stores] = [
        statements
        for statements in transactions(stage.cycle)
        if any("INSERT INTO scheduler_placement" in sql for sql in statements)
    ]
    assert not any(NOT_WAITING in sql for sql in stores)
