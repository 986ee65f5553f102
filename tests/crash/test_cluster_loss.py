"""Work of a lost cluster starts elsewhere once, and what it had there ends, all the same when
whoever does it dies, at each step of it."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from clusters.models import Cluster
from clusters.services import clusters
from controlplane.kernel.clock import now
from scheduler.core.lifecycle import State
from scheduler.models import Placement, PlacementSpan, Workload, WorkloadEvent
from scheduler.services import workloads
from tenants.models import Quota
from tests.crash import diary
from tests.crash.conftest import Scene
from tests.flows.losing import Pair, broken, silence
from tests.flows.world import spec
from tests.simulation import simulation

LONG = ("sleep", "600")
LOSING = ("L1", "L2")
RETURNING = (("dispatch", "D1"), ("dispatch", "E2"), ("dispatch", "E2:2"), ("observe", "E4"))


@pytest.fixture
def two(scene: Scene) -> Iterator[Pair]:
    """The children know `north` alone; `south` takes nothing yet."""
    with simulation(layout="demo-north", window=200_000, bookmark_s=0.2) as simulator:
        by = {"actor": "system:test", "actor_name": "test"}
        cluster = clusters.register(name="south", region="lab", at=now(), **by)
        world = scene.world
        south = replace(world, port=simulator.connect(), cluster=cluster, simulator=simulator)
        south.sync()
        yield Pair(world, south)


def lost(two: Pair) -> Workload:
    """A gang that ran in north, of which nothing is heard any more."""
    asked = spec(count=2, command=LONG, name="gang", cluster_loss_requeue_s=600)
    [gang] = two.north.submit(asked)
    two.north.until_state(gang, State.RUNNING)
    clusters.heard(cluster=two.south.cluster)
    silence(two.north.cluster)
    return gang


def end_well(two: Pair, scene: Scene, gang: Workload) -> None:
    """It runs in south alone; then it is cancelled, and nothing is left of it anywhere."""
    two.until_gone(two.north)
    gang.refresh_from_db()
    assert (gang.state, gang.attempts.count()) == (State.RUNNING, 2)
    assert WorkloadEvent.objects.filter(workload=gang, kind="returned").count() == 1
    assert broken() == []
    workloads.cancel(actor=two.north.ada, workload=gang, at=now())
    two.until_gone(two.south)
    gang.refresh_from_db()
    assert gang.state == State.CANCELLED
    assert not Placement.objects.filter(released_at=None).exists()
    assert not PlacementSpan.objects.filter(released_at=None).exists()
    assert not Quota.objects.exclude(used_milli=0).exists()
    assert broken() == []
    told = diary.read(two.north.port, since=scene.begun)
    assert all(len(uids) == 1 for uids in told.opened.values())


@pytest.mark.parametrize("crash", LOSING)
def test_dying_while_it_is_given_up_at(crash: str, scene: Scene, two: Pair) -> None:
    gang = lost(two)
    scene.children.run("check_clusters", crash=crash)
    assert broken() == []
    assert (gang.attempts.get().unseen_since is None) == (crash == "L1")
    scene.children.run("check_clusters")
    two.south.until_state(gang, State.RUNNING)
    assert gang.attempts.get(number=2).cluster_id == two.south.cluster.id
    two.hear(two.north)
    end_well(two, scene, gang)


@pytest.mark.parametrize(("step", "crash"), RETURNING)
def test_dying_when_it_is_back_at(step: str, crash: str, scene: Scene, two: Pair) -> None:
    gang = lost(two)
    scene.children.run("check_clusters")
    two.south.until_state(gang, State.RUNNING)
    two.hear(two.north)
    if step == "observe":
        two.north.dispatch()
        two.wait_for_deaths(two.north)
    scene.children.run(step, crash=crash)
    assert broken() == []
    scene.wait_for_claims()
    assert Cluster.objects.get(name="north").state == "active"
    end_well(two, scene, gang)
