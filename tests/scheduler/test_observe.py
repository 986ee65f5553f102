"""Cluster reports → rows: what counts, what does not, and what follows from it."""

from dataclasses import replace
from datetime import timedelta
from threading import Event
from typing import Any
from uuid import uuid4

import pytest
from pytest_django import DjangoAssertNumQueries

from clusters.port import PodPhase, PodReport
from controlplane.audit.models import AuditEvent
from scheduler.core.lifecycle import State
from scheduler.loop.dispatching import dispatch
from scheduler.loop.observing import observe, settle
from scheduler.loop.pods.claims import close_started
from scheduler.models import Attempt, Operation, Placement, Workload, WorkloadEvent
from tenants.models import Charge, Quota, UsageInterval
from tests.factories import AT
from tests.scheduler.locks import at_once, until_somebody_waits
from tests.scheduler.stage import LATER, Stage
from tests.waiting import PATIENCE_S

SECOND = timedelta(seconds=1)


def rows() -> list[Any]:  # Any: columns of whatever type
    """All that an observation may change."""
    return [
        list(Placement.objects.order_by("id").values()),
        list(Workload.objects.order_by("id").values()),
        list(Attempt.objects.order_by("id").values()),
        [model._default_manager.count() for model in (AuditEvent, WorkloadEvent, UsageInterval)],
        list(Quota.objects.values()),
        list(Operation.objects.order_by("id").values("kind", "done_at")),
    ]


def succeeded(stage: Stage, placement: Placement) -> PodReport:
    return stage.report(
        placement, PodPhase.SUCCEEDED, started_at=AT + SECOND, finished_at=LATER, exit_code=0
    )


def test_a_gang_runs_once_all_of_it_runs_and_since_its_last_pod_does(stage: Stage) -> None:
    workload = stage.started(count=3)
    first, *others = workload.placements.order_by("rank")
    stage.observe(stage.report(first, PodPhase.RUNNING, started_at=AT + SECOND))
    workload.refresh_from_db()
    assert workload.state == State.BOUND
    for number, other in enumerate(others, start=2):
        stage.observe(stage.report(other, PodPhase.RUNNING, started_at=AT + number * SECOND))
    workload.refresh_from_db()
    assert (workload.state, workload.started_at) == (State.RUNNING, AT + 3 * SECOND)


def test_what_has_ended_gives_everything_back_and_is_charged_for_its_pods_own_time(
    stage: Stage,
) -> None:
    workload = stage.running(gpus=2)
    placement = workload.placements.get()
    ended_at = AT + timedelta(seconds=30)
    told = replace(succeeded(stage, placement), started_at=AT, finished_at=ended_at)
    stage.observe(told, at=LATER)
    placement.refresh_from_db()
    assert (placement.started_at, placement.ended_at) == (AT, ended_at)
    assert (placement.released_at, placement.succeeded) == (LATER, True)
    assert not placement.spans.filter(released_at=None).exists()
    assert Quota.objects.get().used_milli == 0
    usage = UsageInterval.objects.get()
    assert (usage.during.lower, usage.during.upper, usage.amount_milli) == (AT, ended_at, 2000)
    assert Charge.objects.get().amount == 60
    workload.refresh_from_db()
    assert (workload.state, workload.ended_at) == (State.SUCCEEDED, ended_at)
    assert Attempt.objects.get().outcome == "succeeded"


def test_what_ended_before_anybody_saw_it_run_has_started_too(stage: Stage) -> None:
    workload = stage.started()
    stage.observe(succeeded(stage, workload.placements.get()))
    workload.refresh_from_db()
    assert (workload.state, workload.started_at) == (State.SUCCEEDED, AT + SECOND)


@pytest.mark.parametrize("phase", [PodPhase.RUNNING, PodPhase.SUCCEEDED, PodPhase.FAILED])
def test_the_same_report_again_changes_nothing(phase: PodPhase, stage: Stage) -> None:
    workload = stage.started()
    told = replace(succeeded(stage, workload.placements.get()), phase=phase)
    assert stage.observe(told, at=LATER) == 1
    before = rows()
    assert stage.observe(told, told, at=LATER + SECOND) == 0
    assert rows() == before


@pytest.mark.parametrize("phase", [PodPhase.GATED, PodPhase.SCHEDULED, PodPhase.RUNNING])
def test_an_old_report_changes_nothing(phase: PodPhase, stage: Stage) -> None:
    placement = stage.running().placements.get()
    stage.observe(succeeded(stage, placement))
    before = rows()
    assert stage.observe(stage.report(placement, phase, started_at=AT)) == 0
    assert rows() == before


FORGED: dict[str, dict[str, Any]] = {  # Any: fields of a report
    "another pod of that name": {"uid": "another"},
    "another installation's": {"installation": "another"},
    "a foreign one": {"installation": "", "workload": ""},
    "a label that is no id": {"workload": "'; DROP TABLE workload; --"},
    "an unknown workload": {"workload": "00000000-0000-7000-8000-000000000000"},
    "another attempt": {"attempt": 2},
    "another rank": {"rank": 1},
}


@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED.keys())
def test_a_report_counts_for_nobody_that_is_of(forged: dict[str, Any], stage: Stage) -> None:
    placement = stage.running().placements.get()
    before = rows()
    assert stage.observe(replace(succeeded(stage, placement), **forged)) == 0
    assert rows() == before


def test_a_report_of_another_cluster_counts_for_nobody(stage: Stage) -> None:
    placement = stage.running().placements.get()
    told = succeeded(stage, placement)
    assert observe.pods(cluster_id=uuid4(), reports=[told], gone=[], at=LATER) == 0
    placement.refresh_from_db()
    assert placement.ended_at is None


def test_an_attempt_that_is_over_hears_nothing_of_its_pods(stage: Stage) -> None:
    workload = stage.running()
    old = workload.placements.get()
    stage.observe(stage.report(old, PodPhase.FAILED, reason="NodeLost"), at=LATER)
    stage.cycle(at=LATER + settle.PAUSE)
    stage.dispatch()
    before = rows()
    assert stage.observe(succeeded(stage, old)) == 0
    assert rows() == before
    assert workload.attempts.count() == 2


def test_a_pod_that_a_list_lacks_is_gone_and_its_work_is_tried_again(stage: Stage) -> None:
    workload = stage.running()
    stage.port.pods.clear()
    assert stage.relist(at=LATER) == 1
    placement = Placement.objects.get()
    assert (placement.ended_at, placement.end_reason) == (LATER, "PodGone")
    assert UsageInterval.objects.get().during.upper == LATER
    workload.refresh_from_db()
    assert (workload.state, workload.failures) == (State.PENDING, 1)
    assert workload.not_before == LATER + settle.PAUSE
    stage.cycle(at=LATER)
    workload.refresh_from_db()
    assert workload.state == State.PENDING


def test_a_pod_that_was_born_after_the_list_began_is_not_missed_in_it(stage: Stage) -> None:
    expected = observe.expected(cluster_id=stage.cluster.id)
    listing = stage.port.list_pods()
    workload = stage.started()
    observe.listed(cluster_id=stage.cluster.id, reports=listing.items, expected=expected, at=LATER)
    workload.refresh_from_db()
    assert workload.state == State.BOUND


def test_a_gang_that_failed_by_itself_did_so_though_others_of_it_are_gone(stage: Stage) -> None:
    workload = stage.running(count=2)
    first, second = workload.placements.select_related("workload__project").order_by("rank")
    failed = stage.report(first, PodPhase.FAILED, exit_code=7, reason="Error")
    expected = observe.expected(cluster_id=stage.cluster.id)
    assert second.pod_uid in expected
    observe.listed(cluster_id=stage.cluster.id, reports=[failed], expected=expected, at=LATER)
    workload.refresh_from_db()
    assert workload.state == State.FAILED
    assert workload.attempts.get().failure == "exit-code"


def test_a_deleted_pod_that_had_done_its_work_has_done_it(stage: Stage) -> None:
    workload = stage.running()
    told = succeeded(stage, workload.placements.get())
    stage.observe(told, gone=(told.uid,))
    workload.refresh_from_db()
    assert workload.state == State.SUCCEEDED


SKEWED = {
    "an hour fast": (timedelta(hours=1), LATER, LATER),
    "an hour slow": (timedelta(hours=-1), AT, AT),
    "a little slow": (timedelta(seconds=-40), AT, AT + timedelta(seconds=19)),
    "right": (timedelta(0), AT + SECOND, LATER - SECOND),
}


@pytest.mark.parametrize(("skew", "start", "end"), SKEWED.values(), ids=SKEWED.keys())
def test_nothing_starts_before_it_was_placed_or_ends_after_it_was_seen_by_a_clock_that_is(
    skew: timedelta, start: Any, end: Any, stage: Stage
) -> None:
    placement = stage.started().placements.get()
    told = replace(
        succeeded(stage, placement),
        started_at=AT + SECOND + skew,
        finished_at=LATER - SECOND + skew,
    )
    stage.observe(told, at=LATER)
    placement.refresh_from_db()
    assert (placement.started_at, placement.ended_at) == (start, end)


def test_one_failed_pod_ends_its_gang_and_the_work_has_failed(stage: Stage) -> None:
    workload = stage.running(count=3)
    first, second, third = workload.placements.order_by("rank")
    failed = stage.report(first, PodPhase.FAILED, exit_code=2, reason="Error", started_at=AT)
    stage.observe(failed)
    assert Operation.objects.get(kind="stop").done_at is None
    workload.refresh_from_db()
    assert workload.state == State.RUNNING
    stage.dispatch()
    assert len(stage.port.pods) == 1  # the failed one: its log may be wanted
    for other in (second, third):
        stage.observe(stage.report(other, PodPhase.FAILED, exit_code=143, reason="Error"))
    workload.refresh_from_db()
    assert workload.state == State.FAILED
    assert Attempt.objects.get().outcome == "failed"


def test_a_gang_that_lost_a_node_is_tried_again_though_the_rest_of_it_had_to_be_stopped(
    stage: Stage,
) -> None:
    workload = stage.running(gpus=8, count=2)
    first, second = workload.placements.order_by("rank")
    stage.observe(stage.report(first, PodPhase.FAILED, reason="NodeLost", started_at=AT))
    stage.dispatch()
    stopped = stage.report(second, PodPhase.FAILED, exit_code=143, reason="Error", started_at=AT)
    stage.observe(stopped)
    workload.refresh_from_db()
    assert (workload.state, workload.failures, workload.node_losses) == (State.PENDING, 0, 1)
    attempt = Attempt.objects.get()
    assert (attempt.outcome, attempt.failure) == ("lost", "node-lost")
    message = WorkloadEvent.objects.get(before="RUNNING").message
    assert message == "its node was lost: NodeLost; 0.267 GPU-hours of work lost"
    assert attempt.lost_milli_s == 2 * 8000 * 60


@pytest.mark.parametrize("phase", [PodPhase.RUNNING, PodPhase.SUCCEEDED])
def test_two_observers_of_one_gang_draw_one_conclusion(
    phase: PodPhase, committed: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither may think that the other's pod is not there yet."""
    workload = committed.started(count=2)
    one, other = [
        replace(succeeded(committed, each), phase=phase)
        for each in workload.placements.order_by("rank")
    ]
    written, seen = Event(), Event()

    def before_the_end(point: str) -> None:
        if point == "E4" and not written.is_set():
            written.set()
            until_somebody_waits(unless=seen)

    monkeypatch.setattr(observe, "crash", before_the_end)

    def second() -> None:
        assert written.wait(PATIENCE_S)
        committed.observe(other)
        seen.set()

    at_once(lambda: committed.observe(one), second)
    after = State.RUNNING if phase is PodPhase.RUNNING else State.SUCCEEDED
    workload.refresh_from_db()
    assert workload.state == after
    assert WorkloadEvent.objects.filter(workload=workload, after=after).count() == 1


@pytest.mark.parametrize("phase", [PodPhase.RUNNING, PodPhase.SUCCEEDED])
def test_no_step_is_lost_between_the_dispatcher_and_the_observer(
    phase: PodPhase, committed: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pods may run, and end, while the dispatcher still says that they are open."""
    made = [committed.submit(f"w{number}") for number in range(3)]
    committed.cycle()
    moving, looked = Event(), Event()

    def closing(**arguments: Any) -> None:  # Any: as they came
        moving.set()
        until_somebody_waits(unless=looked)
        close_started(**arguments)

    monkeypatch.setattr(dispatch, "close_started", closing)

    def look() -> None:
        assert moving.wait(PATIENCE_S)
        live = Placement.objects.select_related("workload__project", "attempt").order_by("-id")
        committed.observe(*[replace(succeeded(committed, each), phase=phase) for each in live])
        looked.set()

    at_once(lambda: committed.dispatch(), look)
    after = State.RUNNING if phase is PodPhase.RUNNING else State.SUCCEEDED
    assert {workload.name for workload in Workload.objects.filter(state=after)} == {
        workload.name for workload in made
    }


def test_a_pod_on_its_way_to_a_node_is_asked_nothing_about(
    stage: Stage, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    workload = stage.started()
    [placement] = workload.placements.select_related("workload__project", "attempt")
    on_its_way = (PodPhase.GATED, PodPhase.WAITING, PodPhase.UNSCHEDULABLE, PodPhase.SCHEDULED)
    reports = [stage.report(placement, phase) for phase in on_its_way]
    with django_assert_num_queries(0):
        assert stage.observe(*reports) == 0
    assert stage.observe(reports[-1], gone=(placement.pod_uid,)) == 1
