"""Catching where something is amiss: pods that say odd things, change, vanish, or come early."""

from dataclasses import replace

import pytest

from clusters.caught import OwnerRef, OwnerReport
from clusters.port import Fault, PodPhase
from scheduler.core.lifecycle import State
from scheduler.loop.catching import catch, vanished
from scheduler.loop.dispatching import calls
from scheduler.loop.observing.retry import give_up
from scheduler.models import CaughtPod as Row
from scheduler.models import Placement, Workload
from tests import factories
from tests.factories import AT
from tests.scheduler.caught_pods import JOB, gang, made, owns, refusal, take_in
from tests.scheduler.stage import LATER, Stage


def test_a_flavor_that_is_named_twice_is_accepted_once(stage: Stage) -> None:
    made(stage, "a", owner=None, flavors=("h100", "h100"))
    take_in(stage)
    assert [each.name for each in Workload.objects.get().pod_sets.get().flavors.all()] == ["h100"]


def test_a_pod_that_chooses_its_nodes_itself_is_refused(stage: Stage) -> None:
    made(stage, "a", owner=None, steered="nodeSelector")
    take_in(stage)
    assert refusal("a").startswith("It has nodeSelector, and Berth chooses the nodes.")
    assert not Workload.objects.exists()


def test_a_pod_behind_the_gate_of_another_is_told_so_and_taken_in_at_once_after(
    stage: Stage,
) -> None:
    pod = made(stage, "a", owner=None, behind="example.test/x, example.test/y")

    def now_behind(gates: str) -> None:
        assert pod.caught is not None
        stage.port.pods["a"] = replace(pod, caught=replace(pod.caught, behind=gates))
        take_in(stage)

    take_in(stage)
    assert refusal("a").startswith("Somebody else's gate holds it, too: example.test/x, example")
    now_behind("example.test/y")
    assert refusal("a").startswith("Somebody else's gate holds it, too: example.test/y.")
    assert not Workload.objects.exists()
    now_behind("")
    assert Row.objects.get().pod_set is not None
    assert Workload.objects.get().name == "a"


def test_bare_pods_that_were_evicted_say_so(stage: Stage) -> None:
    made(stage, "a", owner=None)
    take_in(stage)
    stage.cycle()
    stage.dispatch()
    work = Workload.objects.get()
    give_up(
        attempt_id=work.attempts.get().id,
        workload_id=work.id,
        project_id=work.project_id,
        why="preempted",
        failure=None,
        actor="system:scheduler",
        at=LATER,
    )
    stage.release_claims()
    stage.dispatch(at=LATER)
    stage.relist()
    take_in(stage, at=LATER)
    work.refresh_from_db()
    assert work.state == State.CANCELLED
    assert work.events.latest("id").message.startswith("Berth evicted it: its pods were deleted")


def test_what_breaks_is_refused_alone(stage: Stage) -> None:
    made(stage, "broken", owner=None, gang="g" * 800, gang_size=1)  # more than a column holds
    made(stage, "good", owner=None)
    take_in(stage)
    assert refusal("broken").startswith("Berth failed to take it in.")
    assert Workload.objects.get().name == "good"


def test_parts_whose_long_names_begin_alike_are_told_apart(stage: Stage) -> None:
    long = "x" * 45
    sizes = {f"{long}a": 1, f"{long}b": 1}
    owns(stage, JOB, **sizes)
    made(stage, "a", part=f"{long}a")
    made(stage, "b", part=f"{long}b")
    take_in(stage)
    names = {each.name for each in Workload.objects.get().pod_sets.all()}
    assert [len(name) for name in names] == [40, 40]
    take_in(stage)  # and is not cancelled for asking otherwise now
    assert Workload.objects.get().state == State.PENDING


def test_what_is_refused_in_one_project_holds_up_no_other(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catch, "MOST", 3)
    for name in ("x0", "x1", "x2", "x3"):
        made(stage, name, owner=None, priority="top")
    take_in(stage)
    assert [row.name for row in Row.objects.filter(refusal="")] == ["x3"]
    other = factories.project(stage.project.tenant, "other")
    factories.quota(other, stage.flavor, 16_000)
    made(stage, "good", owner=None, namespace=other.namespace)
    take_in(stage)
    assert Workload.objects.get().name == "good"
    assert refusal("x3")


def test_an_owner_that_does_not_tell_its_pods_gathers_them_by_what_is_below_it(
    stage: Stage,
) -> None:
    train = OwnerRef("trainer.kubeflow.org/v1alpha1", "TrainJob", "llama", "train-1")
    stage.port.owners[JOB.uid] = OwnerReport(train, (("", 2),))
    stage.port.owners[train.uid] = OwnerReport(train)
    made(stage, "a")
    take_in(stage)
    take_in(stage)
    work = Workload.objects.get()
    assert work.state == State.PENDING
    del stage.port.owners[JOB.uid], stage.port.pods["a"]  # to be made anew
    take_in(stage)
    work.refresh_from_db()
    assert work.state == State.PENDING
    del stage.port.owners[train.uid]
    take_in(stage)
    work.refresh_from_db()
    assert work.state == State.CANCELLED


@pytest.mark.parametrize("times", [1, calls.TRIES])
def test_a_pod_that_others_change_meanwhile_is_taken_all_the_same(
    stage: Stage, times: int
) -> None:
    work = gang(stage, "a", "b")
    stage.cycle()
    stage.port.fails("adopt", Fault.CONFLICT, pod="b", times=times)
    stage.dispatch()
    work.refresh_from_db()
    assert work.state == (State.BOUND if times == 1 else State.ADMITTED)
    stage.release_claims()
    stage.dispatch()
    work.refresh_from_db()
    assert work.state == State.BOUND


def test_pods_made_while_their_gang_ends_are_other_work(stage: Stage) -> None:
    work = gang(stage, "a", "b")
    stage.cycle()
    stage.dispatch()
    for name in ("a", "b"):
        stage.observe(stage.port.becomes(name, PodPhase.RUNNING, started_at=AT), at=AT)
    failed = stage.port.becomes("a", PodPhase.FAILED, exit_code=1, finished_at=LATER)
    made(stage, "a2")
    take_in(stage, at=LATER)
    stage.observe(failed)
    stage.release_claims()
    stage.dispatch(at=LATER)
    stage.relist()
    work.refresh_from_db()
    assert work.state == State.FAILED
    made(stage, "b2")
    take_in(stage, at=LATER)
    other = Workload.objects.exclude(id=work.id).get()
    assert Row.objects.filter(pod_set__workload=other, gone_at=None).count() == 2


def test_admitted_work_whose_pod_vanished_gives_its_room_back_and_gathers_again(
    stage: Stage,
) -> None:
    work = gang(stage, "a", "b")
    stage.cycle()
    del stage.port.pods["b"]
    stage.dispatch()
    take_in(stage)
    work.refresh_from_db()
    assert work.state == State.ADMITTED
    take_in(stage, at=AT + vanished.PATIENCE)
    stage.release_claims()
    stage.dispatch(at=AT + vanished.PATIENCE)
    work.refresh_from_db()
    assert work.state == State.PENDING
    assert not Placement.objects.filter(released_at=None).exists()
    assert set(stage.port.pods) == {"a"}  # which nobody may make again
    made(stage, "b")
    take_in(stage, at=AT + vanished.PATIENCE)
    stage.cycle(at=LATER)
    stage.release_claims()
    stage.dispatch(at=LATER)
    work.refresh_from_db()
    assert work.state == State.BOUND
