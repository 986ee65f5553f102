"""One cycle: who may, what it records, and that it always lets go."""

from typing import Any

import pytest

from scheduler.core.cycle import plan
from scheduler.core.policy import Policy
from scheduler.loop import lease, run
from scheduler.models import CycleRecord, SchedulerLease, Workload
from tenants.models import Quota
from tests.factories import AT
from tests.scheduler.stage import SHARD, Stage


def test_it_tells_what_it_decided(committed: Stage) -> None:
    Quota.objects.update(nominal_milli=8000, borrowing_limit_milli=0)
    first = committed.submit("first", gpus=8)
    committed.submit("second", gpus=8)
    record = run.run_cycle(at=AT)
    assert record == CycleRecord.objects.get()
    assert record is not None
    assert (record.pending_count, record.admitted_count, record.refused_count) == (2, 1, 0)
    assert record.plan["admits"] == [[str(first.id), str(committed.cluster.id), 1]]


def test_nothing_is_recorded_when_nothing_waits(committed: Stage) -> None:
    assert run.run_cycle(at=AT) is None
    assert not CycleRecord.objects.exists()


def test_a_tick_with_nothing_to_do_asks_one_question(
    committed: Stage, django_assert_num_queries: Any
) -> None:
    """Any: pytest-django's context manager."""
    committed.running()
    with django_assert_num_queries(1):
        assert run.run_cycle(at=AT) is None


def test_it_does_nothing_while_another_holds_the_lease(committed: Stage) -> None:
    committed.submit()
    held = lease.acquire(shard=SHARD)
    assert held is not None
    assert run.run_cycle(at=AT) is None
    assert Workload.objects.get().state == "PENDING"
    lease.release(held)
    assert run.run_cycle(at=AT) is not None


def test_it_lets_go_of_the_lease_even_when_it_fails(
    committed: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    committed.submit()

    def broken(*_: Any) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patched:
        patched.setattr(run, "plan", broken)
        with pytest.raises(ZeroDivisionError):
            run.run_cycle(at=AT)
    assert run.run_cycle(at=AT) is not None


def test_who_lost_the_lease_while_planning_drops_what_it_decided(
    committed: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    committed.submit()

    def slow(*arguments: Any) -> Any:  # Any: as they came
        SchedulerLease.objects.update(expires_at="2000-01-01T00:00:00Z")
        assert lease.acquire(shard=SHARD)
        return plan(*arguments)

    monkeypatch.setattr(run, "plan", slow)
    assert run.run_cycle(at=AT) is None
    assert Workload.objects.get().state == "PENDING"


def test_what_is_beyond_a_cycles_size_is_the_next_ones(committed: Stage) -> None:
    for number in range(3):
        committed.submit(f"w{number}")
    admitted = []
    for _ in range(3):
        record = run.run_cycle(at=AT, policy=Policy(max_admits=2))
        admitted.append(record.admitted_count if record else 0)
    assert admitted == [2, 1, 0]
