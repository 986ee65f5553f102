"""Pods that change under dispatch's hands, that are not what their name says, and late workers."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from clusters.port import Fault, PodPhase, PodReport, PodRequest
from scheduler.core.lifecycle import State
from scheduler.loop.dispatching import dispatch
from scheduler.loop.dispatching.calls import TRIES
from scheduler.loop.pods.claims import keep
from scheduler.models import Attempt, Operation, Placement, Workload
from tests.scheduler.stage import LATER, Stage


def admitted(stage: Stage, name: str = "train") -> Workload:
    workload = stage.submit(name)
    stage.cycle()
    return workload


def state_of(workload: Workload) -> str:
    workload.refresh_from_db()
    return workload.state


def test_a_pod_that_somebody_changed_meanwhile_is_opened_as_it_is_now(stage: Stage) -> None:
    workload = admitted(stage)

    def touched() -> None:
        [name] = stage.port.pods
        stage.port.becomes(name, PodPhase.GATED)

    stage.port.meanwhile("open", touched)
    stage.dispatch()
    assert (state_of(workload), workload.failures) == (State.BOUND, 0)
    assert stage.port.calls["open"] == 2


def test_a_pod_that_somebody_opened_meanwhile_is_open(stage: Stage) -> None:
    workload = admitted(stage)

    def opened() -> None:
        [name] = stage.port.pods
        stage.port.becomes(name, PodPhase.WAITING)

    stage.port.meanwhile("open", opened)
    stage.dispatch()
    assert state_of(workload) == State.BOUND
    assert stage.port.calls["open"] == 1


def test_a_pod_that_is_changed_again_and_again_is_tried_later_at_no_cost(stage: Stage) -> None:
    workload = admitted(stage)
    stage.port.fails("open", Fault.CONFLICT)
    stage.dispatch()
    assert stage.port.calls["open"] == TRIES
    assert (state_of(workload), Operation.objects.get().failures) == (State.ADMITTED, 1)
    stage.port.heal()
    stage.release_claims()
    stage.dispatch()
    assert (state_of(workload), workload.failures) == (State.BOUND, 0)


@pytest.mark.parametrize(("rank", "left"), [(0, 0), (7, 1)], ids=["ours", "a stranger"])
def test_a_pod_that_was_replaced_meanwhile_is_gone_and_its_stand_in_is(
    rank: int, left: int, stage: Stage
) -> None:
    workload = admitted(stage)

    def replaced() -> None:
        [name] = stage.port.pods
        stage.port.becomes(name, PodPhase.GATED, uid="another", rank=rank)

    stage.port.meanwhile("open", replaced)
    stage.dispatch()
    assert Placement.objects.get().end_reason == "PodGone"
    assert (state_of(workload), workload.failures) == (State.PENDING, 1)
    assert len(stage.port.pods) == left


@pytest.mark.parametrize(
    "other",
    [{"installation": "another"}, {"workload": ""}, {"attempt": 2}, {"rank": 1}],
    ids=["another installation's", "a foreign one", "another attempt's", "another rank's"],
)
def test_a_stop_leaves_a_pod_alone_that_only_has_the_name(
    other: dict[str, object], stage: Stage
) -> None:
    workload = admitted(stage)
    placement = Placement.objects.select_related("workload__project", "attempt").get()
    told = stage.report(placement, PodPhase.RUNNING, uid="theirs")
    stage.port.pods[placement.pod_name] = replace(told, **other)  # type: ignore[arg-type]  # fields
    stage.cancel(workload)
    stage.dispatch(at=LATER)
    assert stage.port.calls["delete"] == 0
    assert state_of(workload) == State.CANCELLED
    placement.refresh_from_db()
    assert (placement.pod_uid, placement.end_reason) == ("", "NeverStarted")


def test_a_cluster_that_answers_with_anothers_pod_harms_that_attempt_alone(stage: Stage) -> None:
    running = stage.running("running")
    taken = running.placements.get().pod_uid
    bad, good = stage.submit("bad"), stage.submit("good")
    stage.cycle()
    create = stage.port.create_pod

    def lying(*, request: PodRequest) -> PodReport:
        report = create(request=request)
        return replace(report, uid=taken) if request.workload == str(bad.id) else report

    stage.port.create_pod = lying  # type: ignore[method-assign]
    stage.dispatch()
    assert (state_of(bad), state_of(good)) == (State.PREEMPTING, State.BOUND)
    assert "another placement" in Attempt.objects.get(workload=bad).trouble
    stage.release_claims()
    pod = bad.placements.get().pod_name
    stage.port.becomes(pod, PodPhase.GATED, uid=taken)
    stage.dispatch(at=LATER)
    assert (state_of(bad), state_of(running)) == (State.PENDING, State.RUNNING)
    assert stage.port.calls["delete"] == 0


@pytest.mark.parametrize("ended", [False, True], ids=["was taken over", "has ended"])
def test_a_late_worker_says_nothing_of_what(
    ended: bool, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    workload = admitted(stage)

    def late(**asked: Any) -> frozenset[UUID]:  # Any: as `keep`
        placement = Placement.objects.select_related("workload__project", "attempt").get()
        if ended:
            stage.observe(stage.report(placement, PodPhase.FAILED, reason="NodeLost"))
        else:
            Attempt.objects.update(claim=UUID(int=1))
        return keep(**asked)

    monkeypatch.setattr(dispatch, "keep", late)
    stage.dispatch()
    assert Placement.objects.get().opened_at is None
    assert state_of(workload) == (State.PENDING if ended else State.ADMITTED)
