"""Who writes audit rows at once: neither forks a chain, nor waits for who waits for it."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from django.db import connection, transaction

from controlplane.audit.chains import verify
from controlplane.audit.models import AuditEvent
from tenants.models import Tenant
from tests import factories
from tests.audit.writing import one_chain, places, record
from tests.constraints.moves import insert_like
from tests.constraints.racing import race
from tests.constraints.rows import make
from tests.scheduler.locks import at_once, until_somebody_waits
from tests.waiting import PATIENCE_S

pytestmark = pytest.mark.django_db(transaction=True)

THREADS, ROUNDS = 8, 6
UNIQUE, SERIALIZATION = "23505", "40001"


def test_two_that_commit_at_once_are_one_after_the_other() -> None:
    with one_chain():
        for _ in range(ROUNDS):
            at_once(*[partial(record, 3)] * THREADS)
    assert places() == {0: [*range(1, THREADS * ROUNDS + 1)]}
    assert verify()[0].rows == 3 * THREADS * ROUNDS


@pytest.mark.parametrize("isolation", ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"])
def test_no_chain_has_a_fork_however_isolated_its_writers_are(isolation: str) -> None:
    """Whoever sees an old end of the chain is refused."""
    with one_chain():
        was = make(AuditEvent)
        for _ in range(ROUNDS):
            answers = race([partial(insert_like, was)] * THREADS, isolation=isolation)
            assert {*answers} <= {"", UNIQUE, SERIALIZATION}
            assert isolation != "READ COMMITTED" or {*answers} == {""}
    assert [*places()[0]] == [*range(1, AuditEvent.objects.count() + 1)]
    assert len(verify()) == 1


def test_who_commits_waits_for_no_end_before_all_else_is_done() -> None:
    """Foreign keys are looked up as late: one that has to wait for us may not hold the end of the
    chain that we commit to."""
    tenant = factories.tenant()

    def other() -> None:
        try:
            with transaction.atomic():
                record()
                factories.project(tenant)
        finally:
            connection.close()

    with one_chain(), ThreadPoolExecutor(1) as thread:
        with transaction.atomic():
            Tenant.objects.select_for_update().get(id=tenant.id)
            waiting = thread.submit(other)
            until_somebody_waits()
            record()
        waiting.result(PATIENCE_S)
    [chain] = verify()
    assert (chain.rows, chain.head.position) == (2, 2)
