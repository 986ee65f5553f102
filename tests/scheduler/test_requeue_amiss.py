"""What must not follow from a lost cluster, or keep its work unseen for ever."""

import threading
from collections.abc import Collection
from uuid import UUID

import pytest
from django.db import DatabaseError, connection

from clusters.credential import BadCredential
from clusters.models import Cluster, HardwareQueue
from clusters.port import ClusterError, Fault, PodPhase
from clusters.services import clusters
from scheduler.core.failures import FailureClass
from scheduler.core.lifecycle import State
from scheduler.core.units import WorkloadId
from scheduler.loop.observing import observe, requeue
from scheduler.loop.recutting import emptying
from scheduler.management.commands import watch_clusters
from scheduler.models import Attempt, Operation, Placement
from scheduler.selectors import checks, fleet, unseen
from scheduler.selectors.attempts import attempts_of
from scheduler.selectors.load import load_here
from scheduler.services.transition import lock
from tenants.models import Project, Tenant
from tests import factories
from tests.flows.losing import UNANSWERED, broken, lose, silence
from tests.scheduler.recutting import recutting
from tests.scheduler.stage import LATER, Stage
from tests.scheduler.test_requeue import other, stage
from tests.waiting import PATIENCE_S

__all__ = ["other", "stage"]


def gone_elsewhere(stage: Stage, other: Stage) -> Placement:
    """The new attempt's pod runs in `other`, and the first one's is held unseen: that one."""
    stage.running(cluster_loss_requeue_s=600)
    first = Placement.objects.get()
    clusters.heard(cluster=other.cluster)
    assert lose(stage.cluster) == 1
    other.cycle(at=LATER)
    other.dispatch(at=LATER)
    [new] = Placement.objects.filter(attempt__number=2)
    other.observe(other.report(new, PodPhase.RUNNING, started_at=LATER), at=LATER)
    return first


@pytest.mark.parametrize("preemptible", [True, False])
def test_a_node_that_is_cut_anew_stops_nothing_elsewhere(
    preemptible: bool, stage: Stage, other: Stage
) -> None:
    first = gone_elsewhere(stage, other)
    workload = first.workload
    type(workload).objects.update(preemptible=preemptible)
    clusters.heard(cluster=stage.cluster)
    of = recutting(stage)
    assert first.node == of.node
    row = of.plan(mode="preempt")
    assert emptying.held(port=stage.port, row=row) == "held by train"
    assert emptying.can_empty(port=stage.port, row=row)
    assert emptying.evict(row=row, at=LATER) == 0
    workload.refresh_from_db()
    assert workload.state == State.RUNNING
    assert not Operation.objects.filter(attempt__number=2, kind="stop").exists()


def test_what_is_lost_while_it_is_seen_gone_is_not_unseen_for_ever(
    stage: Stage, other: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its pods have ended, and before that is stored it starts elsewhere."""
    stage.running(count=2, cluster_loss_requeue_s=600)
    clusters.heard(cluster=other.cluster)
    for pod in list(stage.port.pods.values()):
        stage.port.becomes(pod.name, PodPhase.SUCCEEDED, finished_at=LATER, exit_code=0)
    lost: list[int] = []

    def late(attempts: Collection[UUID]) -> None:
        if not lost:
            thread = threading.Thread(target=_lose, args=(stage.cluster, lost))
            thread.start()
            thread.join(PATIENCE_S)
        lock(attempts)

    monkeypatch.setattr(observe, "lock", late)
    stage.relist()
    assert lost == [1]
    assert not Placement.objects.filter(released_at=None).exists()
    assert Attempt.objects.get().unseen_since is None
    assert broken() == []


def _lose(cluster: Cluster, told: list[int]) -> None:
    told.append(lose(cluster))
    connection.close()


def test_a_stop_heals_what_is_unseen_and_holds_nothing(
    stage: Stage, other: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.running(cluster_loss_requeue_s=600)
    clusters.heard(cluster=other.cluster)
    assert lose(stage.cluster) == 1
    with monkeypatch.context() as unseen:
        unseen.setattr(requeue, "seen_gone", lambda **_: None)
        stage.port.pods.clear()
        stage.relist()
    assert Attempt.objects.get().unseen_since is not None
    clusters.heard(cluster=stage.cluster)
    stage.dispatch()
    assert Attempt.objects.get().unseen_since is None


@pytest.mark.parametrize(
    "error",
    [
        BadCredential("kubeconfig", "nothing here opens it"),
        DatabaseError("it does not take that"),
        ClusterError(Fault.UNAUTHORIZED, "Unauthorized"),
        ClusterError(Fault.FORBIDDEN, "may not list pods"),
        ClusterError(Fault.MALFORMED, "no list"),
    ],
    ids=lambda error: str(error),
)
def test_only_the_clusters_own_silence_gives_its_work_up(
    error: Exception, stage: Stage, other: Stage
) -> None:
    stage.running(cluster_loss_requeue_s=600)
    clusters.heard(cluster=other.cluster)
    silence(stage.cluster)
    watch_clusters._note(stage.cluster, error)
    told = Cluster.objects.get(id=stage.cluster.id)
    assert (told.state, told.last_error, told.failing_since) == ("lost", str(error), None)
    assert requeue.requeue_lost(at=LATER) == 0
    # The row begins anew with the next try that nobody answers.
    watch_clusters._note(stage.cluster, UNANSWERED)
    assert requeue.requeue_lost(at=LATER) == 0


@pytest.mark.parametrize("fault", sorted(clusters.SILENCE))
def test_no_answer_goes_on_with_the_row_of_failures(
    fault: Fault, stage: Stage, other: Stage
) -> None:
    stage.running(cluster_loss_requeue_s=600)
    clusters.heard(cluster=other.cluster)
    silence(stage.cluster)
    watch_clusters._note(stage.cluster, ClusterError(fault, "no answer"))
    assert requeue.requeue_lost(at=LATER) == 1


def test_what_is_held_unseen_keeps_its_start_and_its_limit(stage: Stage, other: Stage) -> None:
    """So that a budget reserves no more for it than it may still use."""
    stage.running(cluster_loss_requeue_s=600, run_time_limit_s=3600)
    [before] = load_here(at=LATER).snapshot.holding
    clusters.heard(cluster=other.cluster)
    lose(stage.cluster)
    [held] = load_here(at=LATER).snapshot.holding
    assert (held.started_at, held.run_time_limit_s) == (before.started_at, 3600)
    assert held.started_at is not None


@pytest.mark.parametrize(
    ("failure", "lost"), [(FailureClass.EXIT_CODE, 0), (FailureClass.NODE_LOST, 1)]
)
def test_what_failed_before_its_cluster_was_lost_stays_told(
    failure: FailureClass, lost: int, stage: Stage, other: Stage
) -> None:
    """What failed of its own doing may have used up its tries: it is judged once it is seen."""
    stage.running(count=2, cluster_loss_requeue_s=600)
    clusters.heard(cluster=other.cluster)
    Attempt.objects.update(failure=failure, trouble="rank 1 broke")
    silence(stage.cluster)
    assert unseen.left_in(cluster_id=stage.cluster.id).leaving_count == lost
    assert (unseen.elsewhere_at(attempt=Attempt.objects.get()) is not None) == bool(lost)
    assert lose(stage.cluster) == lost
    assert "rank 1 broke" in Attempt.objects.get().trouble
    assert broken() == []


def test_a_stop_that_is_refused_is_told_and_closes_the_cluster_to_nobody(
    stage: Stage, other: Stage
) -> None:
    first = gone_elsewhere(stage, other)
    clusters.heard(cluster=stage.cluster)
    assert usable(stage) is False
    stage.port.fails("delete", Fault.FORBIDDEN)
    for _ in range(fleet.IN_VAIN):
        assert usable(stage) is False
        stage.release_claims()
        stage.dispatch()
    assert usable(stage) is True
    left = unseen.left_in(cluster_id=stage.cluster.id)
    assert (left.unseen_count, left.held_pods, left.failing_count) == (1, 1, 1)
    assert (left.failures, left.last_error) == (3, "delete: forbidden")
    [_, told] = attempts_of(first.workload)
    assert told.held_unseen == unseen.Held(pods=1, failures=3, last_error="delete: forbidden")
    # What is held there stays so.
    held = {each.id: len(each.placements) for each in load_here(at=LATER).snapshot.holding}
    assert held[WorkloadId(str(first.attempt_id))] == 1
    assert broken() == []


def usable(stage: Stage) -> bool:
    [found] = [each for each in fleet.clusters() if each.id == str(stage.cluster.id)]
    return found.usable


def test_tries_to_stop_it_count_from_when_its_cluster_is_back(stage: Stage, other: Stage) -> None:
    stage.running(cluster_loss_requeue_s=600)
    clusters.heard(cluster=other.cluster)
    attempt = Attempt.objects.get()
    Operation.objects.create(attempt=attempt, kind="stop", failures=9, last_error="no answer")
    assert lose(stage.cluster) == 1
    clusters.heard(cluster=stage.cluster)
    assert usable(stage) is False


CLOSED = {
    "queue_state": "held",
    "queue_changed_at": LATER,
    "queue_note": "a move",
}


@pytest.mark.parametrize("closed", ["project", "quota", "tenant", "cluster", "admission"])
def test_nothing_is_given_up_while_nothing_of_it_would_start(
    closed: str, stage: Stage, other: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.running(cluster_loss_requeue_s=600)
    clusters.heard(cluster=other.cluster)
    if closed == "project":
        Project.objects.update(**CLOSED, queue_changed_by=stage.ada)
    elif closed == "quota":
        Project.objects.update(quota_confirmed_at=factories.AT, quota_frozen_at=LATER)
    elif closed == "tenant":
        Tenant.objects.update(**CLOSED, queue_changed_by=stage.ada)
    elif closed == "cluster":
        HardwareQueue.objects.create(
            cluster=other.cluster, model="", queue_changed_by="user:1", **CLOSED
        )
    else:
        monkeypatch.setattr(checks, "admission_stopped", lambda: True)
    assert lose(stage.cluster) == 0
    for each in (Project, Tenant):
        each.objects.update(queue_state="open")
    Project.objects.update(quota_frozen_at=None)
    HardwareQueue.objects.all().delete()
    monkeypatch.undo()
    assert requeue.requeue_lost(at=LATER) == 1
