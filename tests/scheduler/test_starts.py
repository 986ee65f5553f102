"""What does not come to run in time gives its room back; what runs, or may for all that is known,
keeps it."""

from datetime import timedelta

import pytest
from pytest_django import Settings

from clusters.models import Cluster, ClusterState
from clusters.port import PodPhase
from scheduler.core.failures import FailureClass
from scheduler.core.lifecycle import State
from scheduler.loop.observing import starts
from scheduler.loop.observing.retry import give_up
from scheduler.models import Attempt, Workload
from tests.factories import AT
from tests.scheduler.stage import Stage

IN_TIME, LATE = AT + timedelta(seconds=899), AT + timedelta(seconds=900)


@pytest.fixture(autouse=True)
def within_a_quarter_of_an_hour(settings: Settings) -> None:
    settings.BERTH_START_S = 900


def state_of(workload: Workload) -> str:
    workload.refresh_from_db()
    return workload.state


def test_a_gang_of_which_one_pod_does_not_start_is_taken_back(stage: Stage) -> None:
    workload = stage.started(count=2)
    first, _ = workload.placements.order_by("rank")
    stage.observe(stage.report(first, PodPhase.RUNNING))
    assert starts.give_up_late(at=IN_TIME) == 0
    assert state_of(workload) == State.BOUND
    assert starts.give_up_late(at=LATE) == 1
    assert state_of(workload) == State.PREEMPTING
    attempt = Attempt.objects.get()
    assert (attempt.failure, attempt.trouble) == (
        "refused",
        "it did not come to run within 900 s",
    )
    stage.dispatch(at=LATE)
    stage.relist(at=LATE)
    assert (state_of(workload), workload.failures) == (State.PENDING, 1)


def test_so_is_what_was_never_bound(stage: Stage) -> None:
    workload = stage.submit()
    stage.cycle()
    assert state_of(workload) == State.ADMITTED
    assert starts.give_up_late(at=LATE) == 1
    assert starts.give_up_late(at=LATE) == 0


def test_an_attempt_that_is_over_says_nothing_of_the_next_one(stage: Stage) -> None:
    workload = stage.started()
    over = Attempt.objects.get()
    starts.give_up_late(at=LATE)
    stage.dispatch(at=LATE)
    stage.relist(at=LATE)
    Workload.objects.update(not_before=None)
    stage.cycle(at=LATE)
    assert not give_up(
        attempt_id=over.id,
        workload_id=workload.id,
        project_id=workload.project_id,
        why="late",
        failure=FailureClass.REFUSED,
        actor=starts.ACTOR,
        at=LATE,
    )
    assert state_of(workload) == State.ADMITTED


def test_what_runs_is_left_alone(stage: Stage) -> None:
    workload = stage.running(count=2)
    assert starts.give_up_late(at=LATE) == 0
    assert state_of(workload) == State.RUNNING


@pytest.mark.parametrize("cluster_state", [ClusterState.DEGRADED, ClusterState.LOST])
def test_nothing_is_given_up_where_nobody_knows_what_runs(
    stage: Stage, cluster_state: ClusterState
) -> None:
    stage.started()
    Cluster.objects.update(state=cluster_state)
    assert starts.give_up_late(at=LATE) == 0
    Cluster.objects.update(state=ClusterState.ACTIVE)
    assert starts.give_up_late(at=LATE) == 1


def test_a_clock_that_goes_faster_shortens_nothing(stage: Stage) -> None:
    stage.started()
    assert starts.give_up_late(at=LATE, speed=60.0) == 0
    assert starts.give_up_late(at=AT + timedelta(seconds=900 * 60), speed=60.0) == 1


def test_none_is_given_up_when_it_is_switched_off(stage: Stage, settings: Settings) -> None:
    settings.BERTH_START_S = 0
    stage.started()
    assert starts.give_up_late(at=AT + timedelta(days=9)) == 0
