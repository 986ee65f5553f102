"""What ended attempts leave in their cluster is taken away, when it is due and nothing else."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from importlib import import_module

import pytest
from django.db import connection
from django.db.models import F
from django.db.models.functions import Now
from pytest_django import Settings

from clusters.port import Fault, PodPhase
from scheduler.core.lifecycle import State
from scheduler.loop.dispatching import calls, collect
from scheduler.loop.dispatching.calls import Batch
from scheduler.models import Attempt, Leftover, Workload
from tenants.models import Charge, UsageInterval
from tests.factories import AT
from tests.scheduler.stage import LATER, Stage

RETENTION_S = 900


@pytest.fixture(autouse=True)
def _retention(settings: Settings) -> None:
    settings.BERTH_POD_RETENTION_S = RETENTION_S


def take(stage: Stage) -> Batch:
    return collect.collect(port=stage.port, cluster_id=stage.cluster.id)


def time_passes() -> None:
    """All that is to be collected is due."""
    Attempt.objects.exclude(collect_at=None).update(collect_at=Now())


def end(stage: Stage, workload: Workload, phase: PodPhase = PodPhase.SUCCEEDED) -> None:
    """Its pods come to that, and are seen to."""
    for placement in workload.placements.select_related("attempt"):
        stage.port.becomes(
            placement.pod_name, phase, started_at=AT, finished_at=LATER, exit_code=0
        )
    stage.relist()
    workload.refresh_from_db()


def finished(stage: Stage, workload: Workload) -> None:
    end(stage, workload)
    assert workload.state == State.SUCCEEDED


def failed(stage: Stage, workload: Workload) -> None:
    end(stage, workload, PodPhase.FAILED)
    assert workload.state == State.FAILED


def cancelled(stage: Stage, workload: Workload) -> None:
    stage.cancel(workload)
    stage.dispatch()
    stage.relist()
    workload.refresh_from_db()
    assert workload.state == State.CANCELLED


def preempted(stage: Stage, workload: Workload) -> None:
    stage.submit("urgent", gpus=8, priority_class="urgent")
    stage.cycle(at=LATER)
    stage.dispatch()
    stage.relist()
    assert workload.attempts.get().outcome == "preempted"


def leftovers() -> list[str]:
    return list(Attempt.objects.order_by("id").values_list("leftover", flat=True))


def test_a_pod_that_ended_is_kept_for_its_time_and_then_taken_away(stage: Stage) -> None:
    workload = stage.running()
    finished(stage, workload)
    attempt = Attempt.objects.annotate(left=F("collect_at") - Now()).get()
    assert attempt.leftover == Leftover.PODS
    assert timedelta() <= timedelta(seconds=RETENTION_S) - attempt.left < timedelta(seconds=60)
    assert take(stage) == Batch(0, reached=True)
    assert len(stage.port.pods) == 1
    time_passes()
    assert take(stage) == Batch(1, reached=True)
    assert stage.port.pods == {}
    assert leftovers() == [""]
    assert take(stage) == Batch(0, reached=True)


@pytest.mark.parametrize("ending", [finished, failed, cancelled, preempted])
def test_a_gangs_service_goes_when_its_attempt_has_ended(ending: object, stage: Stage) -> None:
    assert callable(ending)
    workload = stage.running(gpus=8, count=2)
    take(stage)
    assert len(stage.port.services) == 1
    ending(stage, workload)
    kept = set(stage.port.pods)
    take(stage)
    assert stage.port.services == {}
    assert set(stage.port.pods) == kept
    assert Leftover.PODS in leftovers()
    take(stage)
    assert set(stage.port.pods) == kept
    time_passes()
    take(stage)
    assert stage.port.pods == {}


def test_the_next_attempts_service_is_its_own(stage: Stage) -> None:
    workload = stage.running(gpus=8, count=2)
    preempted(stage, workload)
    stage.cancel(Workload.objects.get(name="urgent"))
    Workload.objects.update(not_before=None)
    stage.cycle(at=LATER)
    stage.dispatch()
    assert workload.attempts.count() == 2
    take(stage)
    assert [attempt for _, attempt in stage.port.services.values()] == [2]
    names = {stage.port.requests[name].subdomain for name in stage.port.pods}
    assert names == set(stage.port.services)


def test_a_service_that_a_late_repeat_brought_back_goes_with_the_pods(stage: Stage) -> None:
    workload = stage.running(gpus=8, count=2)
    services = dict(stage.port.services)
    finished(stage, workload)
    take(stage)
    stage.port.services.update(services)
    time_passes()
    take(stage)
    assert stage.port.services == {}


def test_what_lives_is_never_touched_not_even_the_part_of_it_that_ended(stage: Stage) -> None:
    single, gang = stage.running(), stage.running("gang", gpus=4, count=2)
    first = gang.placements.order_by("rank")[0]
    stage.port.becomes(first.pod_name, PodPhase.SUCCEEDED, started_at=AT, finished_at=LATER)
    stage.relist()
    assert gang.placements.exclude(released_at=None).count() == 1
    time_passes()
    assert take(stage) == Batch(0, reached=True)
    assert len(stage.port.pods) == 3
    assert single.attempts.get().ended_at is None


def test_another_pod_of_that_name_stays(stage: Stage) -> None:
    workload = stage.running()
    finished(stage, workload)
    [name] = stage.port.pods
    stage.port.becomes(name, PodPhase.RUNNING, uid="another")
    time_passes()
    take(stage)
    assert stage.port.pods[name].uid == "another"


def test_what_was_told_and_charged_is_as_before(stage: Stage) -> None:
    workload = stage.running()
    finished(stage, workload)

    def told() -> list[object]:
        return [
            *UsageInterval.objects.values(),
            *Charge.objects.values(),
            *workload.placements.values(),
            Workload.objects.values_list("state", "version").get(),
        ]

    before = told()
    time_passes()
    take(stage)
    [pod] = workload.placements.values_list("pod_uid", flat=True)
    stage.relist(at=LATER + timedelta(hours=1))
    report = stage.report(workload.placements.get(), PodPhase.SUCCEEDED)
    stage.observe(report, gone=(pod,), at=LATER + timedelta(hours=1))
    assert told() == before


def test_what_fails_is_tried_again_later_and_keeps_nobody_else_waiting(stage: Stage) -> None:
    bad, good = stage.running("bad"), stage.running("good")
    for workload in (bad, good):
        finished(stage, workload)
    time_passes()
    stage.port.fails("delete", Fault.FORBIDDEN, pod=bad.id.hex)
    assert take(stage) == Batch(2, reached=True)
    assert [leftovers(), len(stage.port.pods)] == [[Leftover.PODS, ""], 1]
    assert take(stage).taken == 0
    stage.port.heal()
    time_passes()
    take(stage)
    assert stage.port.pods == {}


@pytest.mark.parametrize(
    ("ended_s", "again_s"),
    [
        pytest.param(5, collect.AGAIN_S, id="just ended"),
        pytest.param(600, 600, id="a while ago"),
        pytest.param(86_400, collect.LATEST_S, id="yesterday"),
    ],
)
def test_what_fails_for_long_is_tried_ever_more_rarely(
    stage: Stage, ended_s: int, again_s: int
) -> None:
    finished(stage, stage.running())
    time_passes()
    Attempt.objects.update(ended_at=Now() - timedelta(seconds=ended_s))
    stage.port.fails("delete", Fault.FORBIDDEN)
    take(stage)
    again = Attempt.objects.annotate(left=F("collect_at") - Now()).get().left
    assert again.total_seconds() == pytest.approx(again_s, abs=30)


def test_a_cluster_out_of_reach_is_not_asked_for_each_pod(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "_threads", lambda: ThreadPoolExecutor(1))
    for number in range(5):
        finished(stage, stage.running(f"w{number}"))
    time_passes()
    stage.port.fails("delete", Fault.UNREACHABLE)
    assert take(stage) == Batch(5, reached=False)
    assert stage.port.calls["delete"] == 1
    assert leftovers() == [Leftover.PODS] * 5


def test_a_batch_is_bounded_and_begins_with_what_waited_longest(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collect, "BATCH", 1)
    first, second = stage.running("first"), stage.running("second")
    for workload in (first, second):
        finished(stage, workload)
    time_passes()
    Attempt.objects.filter(workload=second).update(collect_at=Now() - timedelta(seconds=5))
    assert take(stage).taken == 1
    assert leftovers() == [Leftover.PODS, ""]
    assert take(stage).taken == 1
    assert stage.port.pods == {}


def test_a_batch_of_large_gangs_is_bounded_by_their_pods(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collect, "MOST_PODS", 3)
    for name in ("first", "second"):
        finished(stage, stage.running(name, gpus=4, count=2))
        take(stage)
    time_passes()
    assert [take(stage).taken for _ in range(3)] == [1, 1, 0]
    assert stage.port.pods == {}


def test_of_two_who_take_the_same_away_the_slower_one_changes_nothing(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has seen that the service is to go, and the other has stored that all of it went."""
    finished(stage, stage.running(gpus=8, count=2))

    def faster(_: str) -> None:
        monkeypatch.undo()
        assert take(stage).taken == 1
        time_passes()
        assert take(stage).taken == 1

    monkeypatch.setattr(collect, "crash", faster)
    assert take(stage).taken == 1
    assert leftovers() == [""]
    assert stage.port.pods == {}


def test_another_clusters_leftovers_are_not_this_ones_business(stage: Stage) -> None:
    finished(stage, stage.running())
    time_passes()
    other = collect.collect(port=stage.port, cluster_id=stage.project.id)
    assert other == Batch(0, reached=True)
    assert len(stage.port.pods) == 1


def test_what_ended_before_anything_was_collected_is_marked_once(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    migration = import_module("scheduler.migrations.0007_leftover_of_before")
    monkeypatch.setattr(migration, "BATCH", 2)
    for number in range(3):
        finished(stage, stage.running(f"w{number}"))
    Attempt.objects.update(leftover="", collect_at=None)
    stage.running("lives")
    finished(stage, stage.running("later"))
    later = Attempt.objects.get(workload__name="later").collect_at
    with connection.schema_editor(atomic=False) as editor:
        migration.mark(None, editor)
    assert leftovers() == [Leftover.PODS] * 3 + ["", Leftover.PODS]
    assert Attempt.objects.get(workload__name="later").collect_at == later
    assert take(stage).taken == 0
    time_passes()
    take(stage)
    assert len(stage.port.pods) == 1
