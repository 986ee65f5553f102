"""A cluster is lost: its work starts elsewhere, once, and what it had there ends on return."""

from collections.abc import Iterator

import pytest

from clusters.models import Cluster
from clusters.port import PodPhase
from clusters.services import clusters
from controlplane.kernel.clock import now
from scheduler.core.lifecycle import State
from scheduler.loop.observing import requeue
from scheduler.models import Attempt, Operation, Placement, PlacementSpan, Workload, WorkloadEvent
from scheduler.selectors import fleet
from scheduler.services import workloads
from tenants.models import Quota, UsageInterval
from tests.flows.losing import UNANSWERED, Pair, broken, lose, pair, silence
from tests.flows.world import World, spec
from tests.waiting import eventually

LONG = ("sleep", "600")


@pytest.fixture
def two(transactional_db: None) -> Iterator[Pair]:
    with pair() as both:
        yield both


def running(two: Pair, *, requeue_s: int | None = 600, **asked: object) -> tuple[Workload, World]:
    """A gang of two pods, and where it runs."""
    one = spec(count=2, command=LONG, cluster_loss_requeue_s=requeue_s, **asked)  # type: ignore[arg-type]  # of `spec`
    [workload] = two.north.submit(one)
    two.north.cycle()
    here = at(two, Attempt.objects.get(workload=workload))
    here.until_state(workload, State.RUNNING)
    return workload, here


def at(two: Pair, attempt: Attempt) -> World:
    return two.north if attempt.cluster_id == two.north.cluster.id else two.south


def other(two: Pair, world: World) -> World:
    return two.south if world is two.north else two.north


def phases(world: World) -> list[PodPhase]:
    return [pod.phase for pod in world.port.list_pods().items if pod.workload]


def test_a_gang_starts_elsewhere_whole_and_its_old_pods_end_when_the_cluster_is_back(
    two: Pair,
) -> None:
    workload, lost = running(two)
    heard = other(two, lost)
    assert lose(lost.cluster) == 1
    workload.refresh_from_db()
    first = workload.attempts.get(number=1)
    assert workload.state == State.PENDING
    assert (first.outcome, first.failure) == ("lost", "cluster-lost")
    assert (workload.failures, workload.node_losses) == (0, 0)
    assert broken() == []

    heard.until_state(workload, State.RUNNING)
    second = workload.attempts.get(number=2)
    assert second.cluster_id == heard.cluster.id
    # Both are held and charged: nobody has seen the first one's pods go.
    assert Placement.objects.filter(attempt=first, released_at=None).count() == 2
    assert PlacementSpan.objects.filter(placement__attempt=first, released_at=None).count() == 2
    assert Quota.objects.get(project=lost.vision, flavor__name="h100").used_milli == 4000
    assert phases(lost) == [PodPhase.RUNNING, PodPhase.RUNNING]
    assert broken() == []

    two.hear(lost)
    two.until_gone(lost)
    first.refresh_from_db()
    workload.refresh_from_db()
    assert first.unseen_since is None
    assert not Placement.objects.filter(attempt=first, released_at=None).exists()
    assert Quota.objects.get(project=lost.vision, flavor__name="h100").used_milli == 2000
    assert workload.state == State.RUNNING
    assert phases(heard) == [PodPhase.RUNNING, PodPhase.RUNNING]
    told = WorkloadEvent.objects.get(workload=workload, kind="returned").message
    pods = f"the 2 pods of attempt 1 in {lost.cluster.name}"
    assert told == f"{pods} are seen gone, after which nothing is charged"
    assert broken() == []


def test_it_starts_elsewhere_once_however_often_that_is_looked_at(two: Pair) -> None:
    workload, lost = running(two)
    assert lose(lost.cluster) == 1
    assert requeue.requeue_lost(at=now()) == 0
    other(two, lost).until_state(workload, State.RUNNING)
    assert requeue.requeue_lost(at=now()) == 0
    assert workload.attempts.count() == 2


def test_it_waits_for_its_cluster_unless_it_says_otherwise(two: Pair) -> None:
    workload, lost = running(two, requeue_s=None)
    assert lose(lost.cluster) == 0
    workload.refresh_from_db()
    assert (workload.state, workload.attempts.count()) == (State.RUNNING, 1)
    two.hear(lost)
    two.turn()
    assert phases(lost) == [PodPhase.RUNNING, PodPhase.RUNNING]


@pytest.mark.parametrize(("silent_s", "count"), [(1190, 0), (1210, 1)])
def test_it_waits_as_long_as_it_says(two: Pair, silent_s: int, count: int) -> None:
    _, lost = running(two, requeue_s=1200)
    assert lose(lost.cluster, for_s=silent_s) == count


def test_the_time_that_nobody_listened_is_not_the_clusters_silence(two: Pair) -> None:
    """Berth was away for an hour, or its database is an hour old: what runs is left alone."""
    _, lost = running(two)
    silence(lost.cluster)
    Cluster.objects.filter(id=lost.cluster.id).update(failed_at=None, failing_since=None)
    assert requeue.requeue_lost(at=now()) == 0
    clusters.failed(cluster=lost.cluster, error=UNANSWERED)
    assert requeue.requeue_lost(at=now()) == 0


def test_a_watcher_that_was_away_begins_to_count_anew(two: Pair) -> None:
    _, lost = running(two)
    silence(lost.cluster)
    age = Cluster.objects.filter(id=lost.cluster.id)
    age.update(failed_at=age.get().failing_since)  # the last try was an hour ago
    assert requeue.requeue_lost(at=now()) == 0
    clusters.failed(cluster=lost.cluster, error=UNANSWERED)
    assert requeue.requeue_lost(at=now()) == 0


def test_nothing_is_given_up_where_no_other_cluster_is_heard(two: Pair) -> None:
    """It is Berth that is cut off."""
    _, lost = running(two)
    silence(other(two, lost).cluster)
    assert lose(lost.cluster) == 0


def test_nothing_is_given_up_where_no_cluster_that_is_heard_is_accepted(two: Pair) -> None:
    workload, lost = running(two)
    workload.clusters.add(lost.cluster)
    assert lose(lost.cluster) == 0
    workload.clusters.add(other(two, lost).cluster)
    assert requeue.requeue_lost(at=now()) == 1


def test_what_its_user_cancelled_starts_nowhere(two: Pair) -> None:
    workload, lost = running(two)
    workloads.cancel(actor=lost.ada, workload=workload, at=now())
    assert lose(lost.cluster) == 0


def test_cancelled_after_that_it_still_ends_there(two: Pair) -> None:
    workload, lost = running(two)
    lose(lost.cluster)
    workload.refresh_from_db()
    workloads.cancel(actor=lost.ada, workload=workload, at=now())
    assert broken() == []
    two.hear(lost)
    two.until_gone(lost)
    assert not Placement.objects.filter(released_at=None).exists()
    assert broken() == []


def test_nothing_is_placed_in_a_cluster_that_is_back_before_its_old_pods_are_told_to_stop(
    two: Pair,
) -> None:
    _, lost = running(two)
    lose(lost.cluster)
    two.hear(lost)

    def usable() -> bool:
        [view] = [each for each in fleet.clusters() if each.name == lost.cluster.name]
        return view.usable

    assert not usable()
    lost.dispatch()
    assert not Operation.objects.filter(done_at=None, attempt__ended_at__isnull=False).exists()
    assert usable()


def test_work_that_had_succeeded_unseen_is_told_and_its_next_attempt_goes_on(two: Pair) -> None:
    one = spec(command=("sleep", "0.5"), cluster_loss_requeue_s=600)
    [workload] = two.north.submit(one)
    two.north.cycle()
    lost = at(two, Attempt.objects.get(workload=workload))
    lost.dispatch()
    assert lose(lost.cluster) == 1
    eventually("it has ended", lambda: phases(lost) == [PodPhase.SUCCEEDED])
    other(two, lost).until_state(workload, State.SUCCEEDED)
    two.hear(lost)
    two.turn()
    told = WorkloadEvent.objects.get(workload=workload, kind="returned").message
    assert told.endswith("1 of 1 had succeeded unseen")
    workload.refresh_from_db()
    assert workload.attempts.get(number=1).outcome == "lost"
    assert broken() == []


def test_both_attempts_are_charged_each_for_what_it_held(two: Pair) -> None:
    workload, lost = running(two)
    lose(lost.cluster)
    other(two, lost).until_state(workload, State.RUNNING)
    two.hear(lost)
    two.until_gone(lost)
    workloads.cancel(actor=lost.ada, workload=workload, at=now())
    other(two, lost).until_state(workload, State.CANCELLED)
    charged = set(
        UsageInterval.objects.filter(workload_id=workload.id).values_list("cluster_id", flat=True)
    )
    assert charged == {lost.cluster.id, other(two, lost).cluster.id}
    assert broken() == []
