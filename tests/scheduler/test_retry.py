"""Giving up an attempt: what it spares, and that it blocks nobody."""

from collections.abc import Iterable
from threading import Event
from typing import Any

import pytest

from clusters.port import PodPhase
from scheduler.core.failures import FailureClass
from scheduler.core.lifecycle import State
from scheduler.loop.observing import retry
from scheduler.models import Attempt, Operation, Workload
from scheduler.services.transition import Step, transition
from tests.factories import AT
from tests.scheduler.locks import at_once, until_somebody_waits
from tests.scheduler.stage import Stage
from tests.waiting import PATIENCE_S


def give_up(workload: Workload) -> bool:
    return retry.give_up(
        attempt_id=workload.attempts.get().id,
        workload_id=workload.id,
        project_id=workload.project_id,
        why="the cluster could not place it",
        failure=FailureClass.REFUSED,
        actor="system:test",
        at=AT,
    )


def test_it_takes_back_what_is_not_running_yet(stage: Stage) -> None:
    workload = stage.started()
    assert give_up(workload)
    workload.refresh_from_db()
    assert workload.state == State.PREEMPTING
    attempt = Attempt.objects.get()
    assert (attempt.failure, attempt.trouble) == ("refused", "the cluster could not place it")
    assert Operation.objects.get(kind="stop").done_at is None


def test_the_failure_that_was_seen_first_stands(stage: Stage) -> None:
    workload = stage.started()
    Attempt.objects.update(failure=FailureClass.OUT_OF_MEMORY, trouble="out of memory")
    assert give_up(workload)
    attempt = Attempt.objects.get()
    assert (attempt.failure, attempt.trouble) == (FailureClass.OUT_OF_MEMORY, "out of memory")


def test_it_leaves_alone_what_runs_or_ends(stage: Stage) -> None:
    workload = stage.running()
    assert not give_up(workload)
    stage.cancel(workload)
    assert not give_up(workload)
    assert Attempt.objects.get().trouble == ""


def test_it_and_an_observer_who_sees_the_pods_run_do_not_block_each_other(
    committed: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    workload = committed.started(count=2)
    running = [committed.report(p, PodPhase.RUNNING) for p in workload.placements.all()]
    moved, looked = Event(), Event()

    def moving(steps: Iterable[Step], **arguments: Any) -> Any:  # Any: as they came
        found = transition(list(steps), **arguments)
        moved.set()
        until_somebody_waits(unless=looked)
        return found

    monkeypatch.setattr(retry, "transition", moving)

    def look() -> bool:
        assert moved.wait(PATIENCE_S)
        committed.observe(*running)
        looked.set()
        return True

    assert at_once(lambda: give_up(workload), look) == [True, True]
    workload.refresh_from_db()
    assert workload.state == State.PREEMPTING
