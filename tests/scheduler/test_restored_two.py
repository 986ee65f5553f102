"""A database that was put back under two clusters: what runs in one of them by now is not started
in the other, whichever is listed first."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from clusters.models import Cluster, Node
from clusters.port import PodPhase
from clusters.services import clusters, restoring
from scheduler.core.lifecycle import State
from scheduler.loop.adopting.adopt import Strays
from scheduler.loop.checking import invariants, rules
from scheduler.models import Attempt, Operation, Stray
from tests import backups, factories
from tests.scheduler.fake import FakeCluster
from tests.scheduler.lost_rows import in_a_while, listed, runs, state
from tests.scheduler.stage import LATER, Stage


@pytest.fixture
def north(committed: Stage) -> Stage:
    return committed


@pytest.fixture
def south(north: Stage) -> Stage:
    """A second cluster, of nodes that take nothing yet."""
    cluster = factories.cluster("south")
    node = factories.node(cluster, "s1")
    Node.objects.filter(id=node.id).update(schedulable=False)
    assert clusters.heard(cluster=cluster)
    assert clusters.heard(cluster=north.cluster)
    return replace(north, cluster=cluster, nodes=[node], port=FakeCluster())


def restored(south: Stage) -> None:
    """The rows of when the first attempt was about to start in the north, put back now that the
    second runs in the south."""
    kept = backups.rows()
    Operation.objects.update(done_at=LATER)  # it was refused there
    runs(south, Attempt.objects.get().workload, attempt=2, node="s1")
    backups.put_rows_back(kept)
    restoring.notice()


def hear(stage: Stage) -> Strays:
    strays = listed(stage)
    assert clusters.heard(cluster=stage.cluster)
    return strays


def started(stage: Stage) -> int:
    stage.release_claims()
    stage.dispatch(at=LATER)
    return stage.port.calls["create"]


def test_nothing_is_started_where_one_is_listed_while_another_is_not(
    north: Stage, south: Stage
) -> None:
    north.submit()
    north.cycle()
    restored(south)
    hear(north)
    assert restoring.any_unread()
    assert started(north) == 0
    assert Operation.objects.get().done_at is None


def test_a_stop_goes_on_there(north: Stage, south: Stage) -> None:
    work = north.running()
    Cluster.objects.filter(name="south").update(heard_in="another")
    restoring.notice()
    north.cancel(work)
    assert started(north) == 1  # long ago
    assert not north.port.pods


@pytest.mark.parametrize("first", ["north", "south"])
def test_the_attempt_that_runs_takes_the_place_of_the_one_that_never_came_to_be(
    first: str, north: Stage, south: Stage
) -> None:
    work = north.submit()
    north.cycle()
    restored(south)
    by_name = {"north": north, "south": south}
    order = [by_name.pop(first), *by_name.values()]
    strays = {each.cluster.name: hear(each) for each in order}
    assert not restoring.any_unread()
    assert started(north) == 0
    assert (state(work), work.failures) == (State.PENDING, 0)
    assert not north.cycle(at=LATER).admitted
    in_a_while(strays["south"])
    assert state(work) is State.RUNNING
    live = Attempt.objects.get(ended_at=None)
    assert (live.number, live.cluster.name) == (2, "south")
    assert started(north) == 0
    assert rules.told(invariants.violations()) == []


def test_no_start_while_a_later_attempt_runs_that_is_not_adopted(
    north: Stage, south: Stage
) -> None:
    """Even of an attempt that has a pod already, gated, and so is not taken back."""
    work = north.submit(count=2)
    north.cycle()
    Attempt.objects.get().placements.filter(rank=0).update(pod_uid="known")
    Stray.objects.create(
        cluster=south.cluster,
        uid="u",
        namespace="n",
        name="p",
        attempt=2,
        workload=work,
        why="",
        found_at=LATER,
    )
    assert started(north) == 0
    Stray.objects.update(attempt=1)  # its own: another one's pods keep it from nothing
    assert started(north) == 2


KEPT: dict[str, Callable[[Stage], object]] = {
    "that has a pod": lambda _: Attempt.objects.get().placements.update(pod_uid="known"),
    "that is not listed": lambda north: Cluster.objects.filter(id=north.cluster.id).update(
        restored_at=LATER, state="new"
    ),
}


@pytest.mark.parametrize("but", KEPT.values(), ids=KEPT)
def test_in_another_cluster_no_attempt_is_taken_back(
    but: Callable[[Stage], object], north: Stage, south: Stage
) -> None:
    work = north.submit()
    north.cycle()
    but(north)
    runs(south, work, attempt=2, node="s1", phase=PodPhase.RUNNING)
    listed(south)
    assert state(work) is State.ADMITTED
    assert Stray.objects.get().workload == work


def test_in_its_own_cluster_none_is_whose_pods_are_there(north: Stage, south: Stage) -> None:
    """Nor for what the other cluster shows."""
    work = north.running()
    [name] = north.port.pods
    north.port.becomes(name, PodPhase.RUNNING)
    runs(south, work, attempt=2, node="s1")
    listed(south)
    listed(north)
    assert state(work) is State.RUNNING
