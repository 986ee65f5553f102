"""The dispatch task: a cluster that hangs costs the others little."""

from collections.abc import Iterator
from typing import Any, Never

import pytest
from celery.exceptions import SoftTimeLimitExceeded
from pytest_django import Settings

from clusters import registry
from clusters.models import Cluster, ClusterState
from clusters.port import Fault
from controlplane.kernel import hints
from scheduler import tasks
from scheduler.loop import dispatch
from scheduler.models import Attempt, Operation, Workload
from tests.scheduler.stage import Stage


@pytest.fixture
def waiting(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """Three workloads to start, a batch each."""
    monkeypatch.setattr(tasks, "_port", lambda _: stage.port)
    monkeypatch.setattr(dispatch, "BATCH", 1)
    for name in ("first", "second", "third"):
        stage.submit(name)
    stage.cycle()
    yield stage
    hints.end(work(stage))


def work(stage: Stage) -> str:
    return f"dispatch:{stage.cluster.id}"


def run(stage: Stage) -> None:
    tasks.dispatch_cluster(cluster_id=str(stage.cluster.id))


def bound() -> int:
    return Workload.objects.filter(state="BOUND").count()


def test_all_that_is_due_is_done(waiting: Stage) -> None:
    run(waiting)
    assert bound() == 3
    assert hints.begin(work(waiting), for_s=5)


def test_one_process_at_a_time_serves_a_cluster(waiting: Stage) -> None:
    assert hints.begin(work(waiting), for_s=30)
    run(waiting)
    assert bound() == 0
    hints.end(work(waiting))
    run(waiting)
    assert bound() == 3


def test_a_cluster_out_of_reach_costs_one_batch_and_is_left_alone_for_a_while(
    waiting: Stage,
) -> None:
    waiting.port.fails("create", Fault.UNREACHABLE)
    run(waiting)
    assert waiting.port.calls["create"] == 1
    assert Operation.objects.filter(failures=1).count() == 1
    waiting.port.heal()
    run(waiting)
    assert waiting.port.calls["create"] == 1
    hints.end(work(waiting))
    waiting.release_claims()
    run(waiting)
    assert bound() == 3


@pytest.mark.parametrize("state", [ClusterState.DEGRADED, ClusterState.LOST])
def test_a_silent_cluster_is_asked_for_one_attempt_at_a_time(
    state: ClusterState, waiting: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "BATCH", 60)
    Cluster.objects.update(state=state)
    run(waiting)
    run(waiting)
    assert bound() == 1


def test_what_took_too_long_is_postponed_and_not_held(waiting: Stage) -> None:
    def too_long(*_: object, **__: object) -> Never:
        raise SoftTimeLimitExceeded

    waiting.port.trouble["create"] = too_long
    run(waiting)
    operation = Operation.objects.get(failures=1)
    assert "SoftTimeLimitExceeded" in operation.last_error
    assert not Attempt.objects.exclude(claim=None).exists()
    assert not hints.begin(work(waiting), for_s=1)


def test_without_redis_everything_is_done(waiting: Stage, settings: Settings) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    hints._redis.cache_clear()
    try:
        run(waiting)
    finally:
        hints._redis.cache_clear()
    assert bound() == 3


def test_its_calls_end_long_before_the_task_has_to(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, float] = {}

    def connect(_: str, **limits: Any) -> None:  # Any: as they came
        asked.update(limits)

    monkeypatch.setattr(registry, "connect", connect)
    tasks._port.__wrapped__("north")
    assert asked == {"connect_timeout_s": 2.0, "read_timeout_s": 5.0}
    assert (
        sum(asked.values())
        < settings.CELERY_TASK_TIME_LIMIT - settings.CELERY_TASK_SOFT_TIME_LIMIT
    )
