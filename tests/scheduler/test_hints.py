"""Hints: latency only. Without Redis everything is slower and nothing is lost."""

from collections.abc import Iterator
from typing import Any

import pytest
from celery import current_app
from django.db import transaction
from pytest_django import Settings

from controlplane.kernel import hints
from scheduler.models import Workload
from tests.scheduler.stage import Stage


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The tasks that were sent, with a Redis that has forgotten all hints before."""
    tasks: list[str] = []

    def send(task: str, **_: Any) -> None:  # Any: as Celery's
        tasks.append(task)

    monkeypatch.setattr(current_app, "send_task", send)
    hints._redis.cache_clear()
    hints._redis().flushdb()
    yield tasks
    hints._redis().flushdb()
    hints._redis.cache_clear()


@pytest.fixture
def no_redis(settings: Settings) -> Iterator[None]:
    """Nobody listens there."""
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    hints._redis.cache_clear()
    yield
    hints._redis.cache_clear()


def test_a_submission_is_stored_without_redis_and_says_so_in_the_log(
    committed: Stage, no_redis: None, caplog: pytest.LogCaptureFixture
) -> None:
    committed.submit()
    assert Workload.objects.get().state == "PENDING"
    assert "hint scheduler.run_cycle not sent" in caplog.text
    hints.taken(hints.CYCLE)


def test_a_broker_that_is_down_stops_nobody(
    sent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError

    monkeypatch.setattr(current_app, "send_task", refuse)
    hints.send(hints.CYCLE)


def test_a_burst_of_submissions_asks_for_one_cycle(committed: Stage, sent: list[str]) -> None:
    for number in range(5):
        committed.submit(f"w{number}")
    assert sent == [hints.CYCLE]
    hints.taken(hints.CYCLE)
    committed.submit("later")
    assert sent == [hints.CYCLE, hints.CYCLE]


def test_a_hint_is_for_one_task_and_its_arguments(sent: list[str]) -> None:
    hints.send(hints.DISPATCH_CLUSTER, cluster_id="one")
    hints.send(hints.DISPATCH_CLUSTER, cluster_id="other")
    hints.send(hints.DISPATCH_CLUSTER, cluster_id="one")
    assert len(sent) == 2


def test_a_hint_that_nobody_takes_in_time_is_dropped(
    sent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: dict[str, Any] = {}
    monkeypatch.setattr(current_app, "send_task", lambda _, **options: told.update(options))
    hints.send(hints.CYCLE)
    assert told["expires"] == hints.EXPIRES_S


def test_nothing_is_sent_for_what_was_taken_back(transactional_db: None, sent: list[str]) -> None:
    def fail() -> None:
        with transaction.atomic():
            hints.hint(hints.CYCLE)
            assert sent == []
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert sent == []


def test_what_is_admitted_is_told_to_its_own_cluster(
    committed: Stage, sent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once: what finds out which clusters have something due would be one task more."""
    told: list[tuple[str, dict[str, str]]] = []

    def send(task: str, *, kwargs: dict[str, str], **_: Any) -> None:  # Any: as Celery's
        told.append((task, kwargs))

    monkeypatch.setattr(current_app, "send_task", send)
    committed.submit("one")
    committed.submit("other")
    committed.cycle()
    assert told == [
        (hints.CYCLE, {}),
        (hints.DISPATCH_CLUSTER, {"cluster_id": str(committed.cluster.id)}),
    ]


def test_the_end_of_what_waited_asks_for_a_cycle(committed: Stage, sent: list[str]) -> None:
    """Others may have waited for it; what ran gives capacity back, which asks for one anyway."""
    row = committed.submit()
    hints.taken(hints.CYCLE)
    sent.clear()
    committed.cancel(row)
    assert sent == [hints.CYCLE]
