"""Pods that somebody made to look like an attempt's. Nobody can in a namespace of the
installation's; whoever can elsewhere has no work of others ended, stopped or kept waiting."""

from clusters.port import PodPhase
from scheduler.core.lifecycle import State
from scheduler.loop.adopting import unknown
from scheduler.models import Attempt, Placement, Stray, Workload
from tests import factories
from tests.scheduler.lost_rows import in_a_while, listed, runs, state
from tests.scheduler.stage import LATER, Stage


def told() -> tuple[str, bool]:
    """Of the one stray: why it is one, and whether its work waits for it."""
    found = Stray.objects.get()
    return found.why, found.workload_id is not None


def test_where_nothing_was_put_back_no_pod_has_work_ended(stage: Stage) -> None:
    work = stage.submit()
    runs(stage, work, phase=PodPhase.SUCCEEDED, finished_at=LATER)
    listed(stage, put_back=False)
    assert state(work) is State.PENDING
    assert stage.cycle(at=LATER).admitted
    assert Attempt.objects.get().number == 2  # its name is another's all the same


def test_where_nothing_was_put_back_a_later_pod_stops_nobody_and_is_told(stage: Stage) -> None:
    work = stage.submit()
    stage.cycle()
    pod = runs(stage, work, attempt=7)
    strays = listed(stage, put_back=False)
    assert state(work) is State.ADMITTED
    assert told() == (unknown.CAME_LATER, False)
    assert strays.running() == [pod]  # what it holds is held
    stage.dispatch(at=LATER)
    assert stage.port.calls["create"] == 1
    assert in_a_while(strays) == []


def test_where_nothing_was_put_back_no_pod_is_taken_for_one_that_starts(stage: Stage) -> None:
    stage.submit()
    stage.cycle()
    runs(stage, Workload.objects.get())
    listed(stage, put_back=False)
    assert Placement.objects.get().pod_uid == ""


def test_what_was_believed_once_is_in_lists_that_follow(stage: Stage) -> None:
    work = stage.submit(count=2)
    runs(stage, work)
    listed(stage)
    assert told() == ("1 of its 2 pods are there", True)
    listed(stage, put_back=False)
    assert told() == ("1 of its 2 pods are there", True)
    assert not stage.cycle(at=LATER).admitted


def test_what_was_not_is_once_somebody_says_that_the_database_is_old(stage: Stage) -> None:
    work = stage.submit()
    runs(stage, work)
    listed(stage, put_back=False)
    assert state(work) is State.PENDING
    listed(stage)
    assert state(work) is State.RUNNING
    assert not Stray.objects.exists()


def test_in_a_namespace_of_others_nothing_is_believed(stage: Stage) -> None:
    """Nobody keeps others from making pods with our labels there (ADR 0074)."""
    stage.port.others.add(stage.project.namespace)
    work, starting = stage.submit(), stage.submit("starting")
    stage.cycle()
    runs(stage, starting)
    runs(stage, work, attempt=2)
    listed(stage)
    assert told() == (unknown.UNOWNED, False)
    assert set(Placement.objects.values_list("pod_uid", flat=True)) == {""}
    assert {state(work), state(starting)} == {State.ADMITTED}


def test_a_cluster_that_its_work_does_not_accept_is_refused(stage: Stage) -> None:
    work = stage.submit()
    work.clusters.set([factories.cluster("south")])
    runs(stage, work)
    listed(stage)
    assert told() == ("its workload does not accept this cluster", True)
    assert state(work) is State.PENDING


def test_nobody_has_the_numbers_of_attempts_used_up(stage: Stage) -> None:
    work = stage.submit(count=2)
    runs(stage, work, attempt=unknown.MOST)
    listed(stage)
    assert told() == ("no work was tried that often since a backup", False)
    assert stage.cycle(at=LATER).admitted
    assert Attempt.objects.get().number == 1
