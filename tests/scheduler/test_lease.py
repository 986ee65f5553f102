"""The lease: one holder a shard, fenced by its epoch."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, transaction

from scheduler.loop import lease
from scheduler.loop.applying.apply import apply
from scheduler.loop.lease import Fenced
from scheduler.models import Attempt, SchedulerLease, Workload
from tests.scheduler.locks import at_once, until_somebody_waits
from tests.scheduler.stage import SHARD, Stage
from tests.waiting import PATIENCE_S


def run_out() -> None:
    """As BERTH_LEASE_S seconds do."""
    SchedulerLease.objects.update(expires_at="2000-01-01T00:00:00Z")


def test_a_second_holder_gets_nothing_until_the_first_lets_go(db: None) -> None:
    first = lease.acquire(shard=SHARD)
    assert first is not None
    assert lease.acquire(shard=SHARD) is None
    lease.release(first)
    second = lease.acquire(shard=SHARD)
    assert second is not None
    assert second.epoch == first.epoch + 1


def test_only_to_take_it_waits_for_the_disk(db: None) -> None:
    def waits() -> bool:
        with connection.cursor() as cursor:
            cursor.execute("SHOW synchronous_commit")
            return bool(cursor.fetchone()[0] == "on")

    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL synchronous_commit = on")  # which the tests' server has not
    for act in (lease.renew, lease.release):
        held = lease.acquire(shard=SHARD)
        assert held is not None
        assert waits()
        with transaction.atomic():
            act(held)
            assert not waits()
            transaction.set_rollback(True)
        assert waits()
        run_out()


def test_shards_do_not_wait_for_each_other(db: None) -> None:
    assert lease.acquire(shard="one")
    assert lease.acquire(shard="two")


def test_a_takeover_raises_the_epoch_and_ends_the_old_holders_rights(db: None) -> None:
    old = lease.acquire(shard=SHARD)
    assert old is not None
    run_out()
    new = lease.acquire(shard=SHARD)
    assert new is not None
    assert new.epoch > old.epoch
    for act in (lease.fence, lease.renew):
        with pytest.raises(Fenced):
            act(old)
    lease.fence(new)


def test_letting_go_late_does_not_end_the_next_holders_lease(db: None) -> None:
    old = lease.acquire(shard=SHARD)
    assert old is not None
    run_out()
    assert lease.acquire(shard=SHARD)
    lease.release(old)
    assert lease.acquire(shard=SHARD) is None


def test_renewing_keeps_others_out(db: None) -> None:
    held = lease.acquire(shard=SHARD)
    assert held is not None
    run_out()
    lease.renew(held)
    assert lease.acquire(shard=SHARD) is None


def test_a_holder_whose_lease_was_taken_over_applies_nothing(stage: Stage) -> None:
    workload = stage.submit()
    loaded, decided = stage.decide()
    old = lease.acquire(shard=SHARD)
    assert old is not None
    run_out()
    assert lease.acquire(shard=SHARD)
    with pytest.raises(Fenced):
        apply(lease=old, loaded=loaded, plan=decided, at=workload.submitted_at)
    workload.refresh_from_db()
    assert workload.state == "PENDING"
    assert workload.reason is None
    assert not Attempt.objects.exists()


def test_of_many_that_race_for_a_lease_one_gets_it(transactional_db: None) -> None:
    def take() -> bool:
        return lease.acquire(shard=SHARD) is not None

    assert sum(at_once(*[take] * 6)) == 1


def test_a_takeover_waits_for_the_plan_in_flight(committed: Stage) -> None:
    """Until the fenced transaction has ended the lease can't change hands, run out or not."""
    held = lease.acquire(shard=SHARD)
    assert held is not None
    run_out()
    fenced, over = threading.Event(), threading.Event()
    order: list[str] = []

    def plan_in_flight() -> None:
        try:
            with transaction.atomic():
                lease.fence(held)
                fenced.set()
                assert over.wait(PATIENCE_S)
                order.append("applied")
                Workload.objects.count()
        finally:
            connection.close()

    def take_over() -> None:
        try:
            assert fenced.wait(PATIENCE_S)
            assert lease.acquire(shard=SHARD)
            order.append("taken over")
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as threads:
        done = [threads.submit(plan_in_flight), threads.submit(take_over)]
        until_somebody_waits()
        over.set()
        for each in done:
            each.result(PATIENCE_S)
    assert order == ["applied", "taken over"]
