"""The dispatch task: a cluster that hangs costs the others little."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Never

import pytest
from celery.exceptions import SoftTimeLimitExceeded
from django.db.models.functions import Now
from pytest_django import Settings

from clusters import registry
from clusters.confinement import Drift
from clusters.models import Cluster, ClusterState
from clusters.port import Fault, PodPhase
from clusters.services import clusters
from controlplane.kernel import clock, hints
from scheduler import tasks
from scheduler.loop import run as cycles
from scheduler.loop.dispatching import collect, confine, dispatch
from scheduler.models import Attempt, Confinement, Operation, Placement, Workload
from scheduler.selectors.due import Due
from tenants.models import Project
from tests import factories
from tests.scheduler.stage import LATER, Stage
from tests.simulation import store_credential


@pytest.fixture
def waiting(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """Three workloads to start, a batch each."""
    monkeypatch.setattr(tasks._ports, "of", lambda _: stage.port)
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


@pytest.fixture
def left_over(waiting: Stage) -> Stage:
    """Two of the three have ended and are to be collected; the third is still to start."""
    for placement in Placement.objects.filter(workload__name__in=["first", "second"]):
        dispatch.dispatch(port=waiting.port, cluster_id=waiting.cluster.id, at=clock.now)
        waiting.port.becomes(placement.pod_name, PodPhase.SUCCEEDED)
    waiting.relist(at=clock.now())
    Attempt.objects.exclude(collect_at=None).update(collect_at=Now())
    assert Attempt.objects.filter(leftover="pods").count() == 2
    return waiting


def test_what_ended_is_collected_beside_what_starts(
    left_over: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collect, "BATCH", 1)
    run(left_over)
    assert bound() == 1
    assert len(left_over.port.pods) == 1


def test_a_silent_clusters_leftovers_wait(left_over: Stage) -> None:
    Operation.objects.update(done_at=Now())
    Cluster.objects.update(state=ClusterState.DEGRADED)
    run(left_over)
    assert left_over.port.calls["delete"] == 0
    Cluster.objects.update(state=ClusterState.ACTIVE)
    run(left_over)
    assert left_over.port.calls["delete"] == 2


def test_a_cluster_with_nothing_but_leftovers_gets_its_task(
    left_over: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = []
    monkeypatch.setattr(hints, "send", lambda task, **arguments: sent.append(arguments))
    Operation.objects.update(done_at=Now())
    tasks.dispatch()
    assert sent == [{"cluster_id": str(left_over.cluster.id)}]
    sent.clear()
    Attempt.objects.exclude(collect_at=None).update(collect_at=Now() + timedelta(hours=1))
    tasks.dispatch()
    assert sent == []


def test_a_cluster_whose_confinements_are_to_be_looked_at_gets_its_task_and_has_them_seen(
    waiting: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(waiting)
    Operation.objects.update(done_at=Now())
    sent = []
    monkeypatch.setattr(hints, "send", lambda task, **arguments: sent.append(arguments))
    tasks.dispatch()
    assert sent == []
    Confinement.objects.update(checked_at=clock.now() - confine.EVERY - timedelta(seconds=1))
    tasks.dispatch()
    assert sent == [{"cluster_id": str(waiting.cluster.id)}]
    waiting.port.drifts[waiting.project.namespace] = (Drift("LimitRange berth"),)
    run(waiting)
    assert waiting.port.drifts == {}
    assert Confinement.objects.get().drift[0]["object"] == "LimitRange berth"


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
    db: None, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, float] = {}

    def connect(_: str, **limits: Any) -> None:  # Any: as they came
        asked.update(limits)

    store_credential(factories.cluster(), server="https://north.example.test", token="t" * 16)
    monkeypatch.setattr(registry, "connect", connect)
    monkeypatch.setattr(tasks._ports, "_kept", {})
    tasks._ports.of("north")
    assert asked == {"connect_timeout_s": 2.0, "read_timeout_s": 5.0}
    assert (
        sum(asked.values())
        < settings.CELERY_TASK_TIME_LIMIT - settings.CELERY_TASK_SOFT_TIME_LIMIT
    )


def put_back(stage: Stage) -> None:
    """It was last heard in another database than this one."""
    Cluster.objects.update(heard_in="another")


def test_put_back_from_a_backup_nothing_is_dispatched_before_the_cluster_is_listed(
    waiting: Stage,
) -> None:
    put_back(waiting)
    run(waiting)
    assert (bound(), waiting.port.calls["create"]) == (0, 0)
    clusters.heard(cluster=waiting.cluster)
    run(waiting)
    assert bound() == 3


def test_nor_started_in_another_cluster(committed: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """It might run in the one that is not listed."""
    monkeypatch.setattr(cycles.pace, "wait", lambda: None)
    other = factories.cluster("south")
    factories.node(other, "s1")
    work = committed.submit()
    Cluster.objects.filter(id=committed.cluster.id).update(heard_in="another")
    tasks.run_cycle()
    work.refresh_from_db()
    assert (work.state, (work.reason or {})["code"]) == ("PENDING", "admission-stopped")
    clusters.heard(cluster=committed.cluster)
    tasks.run_cycle()
    work.refresh_from_db()
    assert work.state == "ADMITTED"


def test_nor_stopped_because_a_queue_was_draining_then(
    committed: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cycles.pace, "wait", lambda: None)
    work = committed.running(preemptible=True)
    told = {"queue_note": "x", "queue_changed_by": committed.ada, "queue_changed_at": LATER}
    Project.objects.update(queue_state="draining", **told)
    put_back(committed)
    tasks.run_cycle()
    work.refresh_from_db()
    assert work.state == "RUNNING"
    clusters.heard(cluster=committed.cluster)
    tasks.run_cycle()
    work.refresh_from_db()
    assert work.state == "PREEMPTING"


@pytest.mark.parametrize(
    "what", ["drain.evict", "defrag.carry_out", "idle.warn", "dependencies.settle", "gates.expire"]
)
def test_of_what_a_cycle_does_beside_the_plan_nothing_is_done(
    what: str, committed: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cycles.pace, "wait", lambda: None)
    committed.submit()
    every = Due(*[True for _ in Due._fields])
    monkeypatch.setattr("scheduler.loop.run.due.now", lambda at: every)
    done: list[str] = []
    monkeypatch.setattr(f"scheduler.loop.run.{what}", lambda **_: done.append(what))
    put_back(committed)
    tasks.run_cycle()
    assert done == []
    clusters.heard(cluster=committed.cluster)
    tasks.run_cycle()
    assert done == [what]


@pytest.mark.parametrize(
    ("task", "what"),
    [
        ("recut", "own_recuts.plan"),
        ("recut_cluster", "recuts.carry_on"),
        ("ask_for_nodes", "node_asks.plan"),
        ("ask_cluster_for_nodes", "node_asks.carry_on"),
        ("check_starts", "starts.give_up_late"),
    ],
)
def test_nor_does_another_task_act_on_what_was_wanted_then(
    task: str, what: str, waiting: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    monkeypatch.setattr(f"scheduler.tasks.{what}", lambda **_: done.append(what))
    of = {"cluster_id": str(waiting.cluster.id)} if "cluster" in task else {}
    put_back(waiting)
    getattr(tasks, task)(**of)
    assert done == []
    clusters.heard(cluster=waiting.cluster)
    getattr(tasks, task)(**of)
    assert done == [what]


def test_nor_taken_back_for_starting_too_late(waiting: Stage) -> None:
    put_back(waiting)
    Workload.objects.update(admitted_at=clock.now() - timedelta(days=1))
    tasks.check_starts()
    assert Workload.objects.filter(state="ADMITTED").count() == 3
    clusters.heard(cluster=waiting.cluster)
    tasks.check_starts()
    assert not Workload.objects.filter(state="ADMITTED").exists()


def test_nor_taken_for_lost(waiting: Stage) -> None:
    put_back(waiting)
    Cluster.objects.update(seen_at=clock.now() - timedelta(days=1))
    tasks.check_clusters()
    assert Cluster.objects.get().state == ClusterState.NEW
