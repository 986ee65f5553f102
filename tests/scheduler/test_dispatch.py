"""Placements → cluster: two-phase start, and what becomes of every way to fail."""

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

import pytest

from clusters.port import Fault, PodPhase
from scheduler.core.lifecycle import State
from scheduler.loop.dispatching import dispatch
from scheduler.loop.observing.settle import PAUSE
from scheduler.loop.pods.claims import store_uids
from scheduler.models import Attempt, Operation, Placement, PlacementSpan, Workload, WorkloadEvent
from tenants.models import Quota
from tests.factories import AT
from tests.scheduler.stage import LATER, Stage

OPEN = (PodPhase.WAITING, PodPhase.RUNNING)


def state_of(workload: Workload) -> str:
    workload.refresh_from_db()
    return workload.state


def admitted(stage: Stage, **asked: Any) -> Workload:
    workload = stage.submit(**asked)
    stage.cycle()
    return workload


def at_the_stored_uid(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> None:
    """Do something once, just after pods were created and before their uids are stored."""

    def storing(uids: Mapping[UUID, str], *, token: UUID) -> frozenset[UUID]:
        monkeypatch.setattr(dispatch, "store_uids", store_uids)
        act()
        return store_uids(uids, token=token)

    monkeypatch.setattr(dispatch, "store_uids", storing)


def test_a_gang_is_born_gated_known_by_uid_and_opened_where_it_was_placed(stage: Stage) -> None:
    workload = admitted(stage, gpus=8, count=2)
    assert stage.dispatch() == 1
    placements = list(Placement.objects.select_related("node").order_by("rank"))
    for placement in placements:
        pod = stage.port.pods[placement.pod_name]
        assert (pod.uid, pod.node) == (placement.pod_uid, placement.node.hostname)
        assert placement.opened_at == AT
    assert len(stage.port.in_phase(*OPEN)) == 2
    assert state_of(workload) == State.BOUND
    assert stage.dispatch() == 0
    env = dict(stage.port.requests[placements[1].pod_name].env)
    assert (env["WORLD_SIZE"], env["RANK"]) == ("2", "1")
    assert env["MASTER_ADDR"].startswith(placements[0].pod_name)


@pytest.mark.parametrize(
    ("verb", "fault"),
    [("create", Fault.CONFLICT), ("create", Fault.INVALID), ("open", Fault.INVALID)],
)
def test_what_the_cluster_will_never_take_is_given_up_and_tried_again(
    verb: str, fault: Fault, stage: Stage
) -> None:
    workload = admitted(stage)
    stage.port.fails(verb, fault)
    stage.dispatch()
    assert state_of(workload) == State.PREEMPTING
    assert fault in Attempt.objects.get().trouble

    stage.port.heal()
    stage.release_claims()
    stage.dispatch(at=LATER)
    stage.relist()
    assert state_of(workload) == State.PENDING
    assert (workload.failures, workload.not_before) == (1, LATER + PAUSE)
    assert Attempt.objects.get().outcome == "lost"
    assert stage.port.pods == {}
    assert Quota.objects.get().used_milli == 0

    stage.cycle(at=LATER + PAUSE)
    stage.dispatch()
    assert state_of(workload) == State.BOUND
    assert workload.attempts.count() == 2


@pytest.mark.parametrize("verb", ["create", "open"])
@pytest.mark.parametrize(
    "fault",
    [Fault.UNREACHABLE, Fault.THROTTLED, Fault.SERVER, Fault.MALFORMED, Fault.FORBIDDEN],
)
def test_a_cluster_in_trouble_is_asked_again_later_for_the_same_pods(
    verb: str, fault: Fault, stage: Stage
) -> None:
    workload = admitted(stage, count=2)
    stage.port.fails(verb, fault)
    stage.dispatch()
    assert state_of(workload) == State.ADMITTED
    operation = Operation.objects.get()
    assert (operation.done_at, operation.failures) == (None, 1)
    assert operation.last_error == f"{verb}: {fault}"
    assert stage.dispatch() == 0  # not due yet
    assert not stage.port.in_phase(*OPEN)

    stage.port.heal()
    stage.release_claims()
    stage.dispatch()
    assert state_of(workload) == State.BOUND
    assert workload.attempts.count() == 1
    assert len(stage.port.pods) == 2


def test_one_pod_that_is_refused_keeps_its_whole_gang_shut(stage: Stage) -> None:
    workload = admitted(stage, gpus=8, count=2)
    stage.port.fails("create", Fault.INVALID, pod="-1-1")
    stage.dispatch()
    assert state_of(workload) == State.PREEMPTING
    assert not stage.port.in_phase(*OPEN)


def test_the_others_of_a_batch_do_not_wait_for_one_that_is_refused(stage: Stage) -> None:
    bad, good = stage.submit("bad"), stage.submit("good")
    stage.cycle()
    stage.port.fails("create", Fault.INVALID, pod=bad.id.hex)
    stage.dispatch()
    assert (state_of(bad), state_of(good)) == (State.PREEMPTING, State.BOUND)


def test_after_five_lost_tries_it_has_failed_and_says_why(stage: Stage) -> None:
    workload = stage.submit()
    Workload.objects.update(failures=4)
    stage.cycle()
    stage.port.fails("create", Fault.INVALID)
    stage.dispatch()
    stage.release_claims()
    stage.dispatch(at=LATER)
    assert state_of(workload) == State.FAILED
    assert "given up after 5 tries" in WorkloadEvent.objects.get(after="FAILED").message


def test_what_is_cancelled_between_create_and_open_is_never_opened(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    workload = admitted(stage, count=2)
    at_the_stored_uid(monkeypatch, lambda: stage.cancel(workload))
    stage.dispatch()
    assert stage.port.calls["open"] == 0
    # The claim was let go: its end need not wait until it runs out.
    assert stage.dispatch() == 1
    assert stage.port.pods == {}
    stage.relist()
    assert state_of(workload) == State.CANCELLED
    assert stage.port.calls["open"] == 0


def test_a_worker_that_was_too_slow_opens_nothing(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another has its claim by now."""
    workload = admitted(stage)

    def taken_over() -> None:
        Attempt.objects.update(claim="00000000-0000-0000-0000-000000000001")

    at_the_stored_uid(monkeypatch, taken_over)
    stage.dispatch()
    assert stage.port.calls["open"] == 0
    assert Placement.objects.get().pod_uid == ""
    stage.release_claims()
    stage.dispatch()
    assert state_of(workload) == State.BOUND
    assert stage.port.calls["open"] == 1


def test_what_a_dead_worker_opened_is_not_opened_again(stage: Stage) -> None:
    workload = admitted(stage, count=2)
    stage.port.fails("open", Fault.SERVER, pod="-1-1")
    stage.dispatch()
    assert len(stage.port.in_phase(*OPEN)) == 1
    stage.port.heal()
    stage.port.becomes(stage.port.in_phase(*OPEN)[0].name, PodPhase.RUNNING)
    stage.release_claims()
    opened = stage.port.calls["open"]
    stage.dispatch()
    assert stage.port.calls["open"] == opened + 1
    assert state_of(workload) == State.BOUND


def test_a_pod_that_was_replaced_is_gone_and_its_stand_in_never_opened(stage: Stage) -> None:
    workload = admitted(stage)
    stage.port.fails("open", Fault.UNREACHABLE)
    stage.dispatch()
    stage.port.heal()
    stage.port.pods.clear()  # somebody deletes it, and the next try makes another
    stage.release_claims()
    stage.dispatch()
    assert stage.port.pods == {}
    assert stage.port.in_phase(*OPEN) == []
    placement = Placement.objects.get()
    assert (placement.end_reason, placement.started_at) == ("PodGone", None)
    assert state_of(workload) == State.PENDING
    assert workload.failures == 1


def test_what_was_never_born_is_settled_when_it_is_stopped(stage: Stage) -> None:
    workload = admitted(stage, gpus=8, count=2)
    stage.cancel(workload)
    stage.dispatch()
    assert state_of(workload) == State.CANCELLED
    assert set(Placement.objects.values_list("end_reason", flat=True)) == {"NeverStarted"}
    assert Quota.objects.get().used_milli == 0


def test_what_runs_keeps_its_room_until_it_is_seen_gone(stage: Stage) -> None:
    workload = stage.running(gpus=2)
    stage.cancel(workload)
    stage.dispatch(at=LATER)
    assert stage.port.pods == {}
    assert state_of(workload) == State.CANCELLING
    assert PlacementSpan.objects.filter(released_at=None).count() == 2
    stage.relist()
    assert state_of(workload) == State.CANCELLED
    assert PlacementSpan.objects.filter(released_at=None).count() == 0


def test_a_pod_whose_birth_was_not_noted_is_found_by_its_name_and_ended(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    workload = admitted(stage)

    def die() -> None:
        raise KeyboardInterrupt

    at_the_stored_uid(monkeypatch, die)
    with pytest.raises(KeyboardInterrupt):
        stage.dispatch()
    [pod] = stage.port.pods.values()
    stage.cancel(workload)
    stage.release_claims()
    stage.dispatch(at=LATER)
    assert stage.port.pods == {}
    assert Placement.objects.get().pod_uid == pod.uid
    stage.observe(pod, gone=(pod.uid,))
    assert state_of(workload) == State.CANCELLED


def test_a_stop_that_does_not_get_through_is_sent_again(stage: Stage) -> None:
    workload = stage.running()
    stage.cancel(workload)
    stage.port.fails("delete", Fault.UNREACHABLE)
    stage.dispatch(at=LATER)
    assert len(stage.port.pods) == 1
    assert Operation.objects.get(kind="stop").failures == 1
    stage.port.heal()
    stage.release_claims()
    stage.dispatch(at=LATER)
    assert stage.port.pods == {}


def test_an_attempt_that_ended_leaves_nothing_due(stage: Stage) -> None:
    """Opened by a worker that died before it closed the row, and over before anybody took on."""
    workload = admitted(stage)
    stage.port.fails("open", Fault.UNREACHABLE)
    stage.dispatch()
    placement = Placement.objects.get()
    stage.observe(stage.report(placement, PodPhase.SUCCEEDED, started_at=AT, finished_at=LATER))
    assert state_of(workload) == State.SUCCEEDED
    assert not Operation.objects.filter(done_at=None).exists()
    stage.release_claims()
    assert stage.dispatch() == 0
