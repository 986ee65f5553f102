"""Work that is evicted for others is told first, and its pods run on until the notice is over, it
says that its work is saved, or it is cancelled."""

from datetime import timedelta
from typing import Any

from django.db import connection

from clusters.port import Fault, PodPhase
from controlplane.kernel.queues import QueueState
from scheduler.core.lifecycle import State
from scheduler.loop.preparing import drain
from scheduler.models import Operation, OperationKind, Workload
from scheduler.selectors.load import load_here
from scheduler.services import workloads
from tenants.services import queues
from tests.factories import AT
from tests.scheduler.stage import LATER, Stage

NOTICE_S = 60
UNTIL = LATER + timedelta(seconds=NOTICE_S)


def evicted(stage: Stage, *, speed: float = 1.0, **asked: Any) -> Workload:  # Any: as `spec`
    """It ran since AT, and its queue is drained at LATER."""
    return drained(stage, stage.running(**({"notice_s": NOTICE_S} | asked)), speed=speed)


def drained(stage: Stage, workload: Workload, *, speed: float = 1.0) -> Workload:
    queues.move(
        actor=stage.actor, of=stage.project, state=QueueState.DRAINING, note="Why.", at=LATER
    )
    assert drain.evict(at=LATER, speed=speed) == 1
    workload.refresh_from_db()
    assert workload.state == State.PREEMPTING
    return workload


def is_over() -> None:
    """As time does."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE scheduler_operation SET due_at = clock_timestamp()"
            " WHERE kind = 'stop' AND done_at IS NULL"
        )


def told(workload: Workload) -> list[str]:
    return list(
        workload.events.filter(kind="notice").order_by("id").values_list("message", flat=True)
    )


def open_kinds() -> set[str]:
    return set(Operation.objects.filter(done_at=None).values_list("kind", flat=True))


def test_its_pods_are_told_at_once_and_deleted_when_its_notice_is_over(stage: Stage) -> None:
    workload = evicted(stage, gpus=8, count=2, grace_s=7)
    assert workload.notice_until == UNTIL
    assert told(workload) == ["it has 60 s to save its work; then its pods are stopped"]
    assert stage.dispatch() == 1
    assert set(stage.port.notices.values()) == {UNTIL}
    assert set(stage.port.notices) == set(stage.port.pods)
    assert stage.dispatch() == 0
    assert (stage.port.calls["delete"], open_kinds()) == (0, {"stop"})

    is_over()
    assert stage.dispatch() == 1
    assert stage.port.pods == {}
    assert set(stage.port.graces.values()) == {7}
    stage.relist(at=UNTIL)
    workload.refresh_from_db()
    assert workload.state == State.PENDING
    assert workload.notice_until is None
    assert open_kinds() == set()


def test_its_notice_is_as_long_as_the_clock_runs_fast(stage: Stage) -> None:
    evicted(stage, speed=60)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT due_at - clock_timestamp() FROM scheduler_operation WHERE kind = 'stop'"
            " AND done_at IS NULL"
        )
        [[left]] = cursor.fetchall()
    assert timedelta() < left <= timedelta(seconds=1)


def test_a_checkpoint_that_it_tells_of_ends_its_notice(stage: Stage) -> None:
    workload = evicted(stage)
    stage.dispatch()
    saved_at = LATER + timedelta(seconds=5)
    workloads.checkpoint(actor=stage.actor, workload=workload, at=saved_at)
    assert stage.dispatch() == 1
    assert stage.port.pods == {}
    assert told(workload)[1:] == ["its work is saved, and its pods are stopped"]
    workloads.checkpoint(actor=stage.actor, workload=workload, at=saved_at)
    assert len(told(workload)) == 2
    stage.relist(at=saved_at)
    assert workload.attempts.get().lost_milli_s == 0


def test_a_checkpoint_of_who_runs_stops_nothing(stage: Stage) -> None:
    workload = stage.running(notice_s=NOTICE_S)
    workloads.checkpoint(actor=stage.actor, workload=workload, at=LATER)
    assert (told(workload), open_kinds()) == ([], set())


def test_who_cancels_it_does_not_wait_for_its_notice(stage: Stage) -> None:
    workload = evicted(stage)
    stage.cancel(workload)
    assert stage.dispatch() == 1
    assert stage.port.pods == {}


def test_the_rest_of_a_gang_does_not_wait_when_one_of_it_has_ended(stage: Stage) -> None:
    workload = evicted(stage, gpus=8, count=2)
    stage.dispatch()
    first, second = workload.placements.order_by("rank")
    stage.observe(stage.report(first, PodPhase.FAILED, exit_code=1, reason="Error"), at=LATER)
    assert stage.dispatch() == 1
    assert stage.port.graces == {second.pod_name: 30}
    stage.relist(at=LATER)
    workload.refresh_from_db()
    assert (workload.state, workload.failures) == (State.PENDING, 0)


def test_a_notice_that_cannot_be_told_is_tried_again_and_delays_no_stop(stage: Stage) -> None:
    evicted(stage)
    stage.port.fails("notice", Fault.SERVER)
    stage.dispatch()
    notice = Operation.objects.get(kind=OperationKind.NOTICE)
    stop = Operation.objects.get(kind=OperationKind.STOP)
    assert (notice.done_at, notice.failures) == (None, 1)
    assert (stop.done_at, stop.failures) == (None, 0)
    assert stage.dispatch() == 0
    is_over()
    assert stage.dispatch() == 1
    assert (stage.port.pods, open_kinds()) == ({}, set())


def test_who_asked_for_none_or_has_not_run_is_stopped_at_once(stage: Stage) -> None:
    plain = evicted(stage, notice_s=0)
    assert (plain.notice_until, open_kinds()) == (None, {"stop"})
    stage.dispatch()
    assert (stage.port.pods, stage.port.notices) == ({}, {})


def test_who_is_still_being_started_is_stopped_at_once(stage: Stage) -> None:
    young = drained(stage, stage.started(notice_s=NOTICE_S))
    assert (young.notice_until, open_kinds(), told(young)) == (None, {"stop"}, [])


def test_what_is_under_notice_is_on_its_way_back_for_the_planner(stage: Stage) -> None:
    workload = evicted(stage)
    [holding] = load_here(at=LATER).snapshot.holding
    assert (holding.id, holding.releasing) == (str(workload.id), True)
    stage.cycle(at=AT + timedelta(minutes=2))
    assert Operation.objects.filter(kind="stop").count() == 1
