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
from tests.crash.rounds import Rounds, over_and_over
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


def has_moved(two: Pair, gang: Workload) -> None:
    """It runs in south alone."""
    two.until_gone(two.north)
    gang.refresh_from_db()
    assert (gang.state, gang.attempts.count()) == (State.RUNNING, 2)
    assert WorkloadEvent.objects.filter(workload=gang, kind="returned").count() == 1
    assert broken() == []


def nothing_is_left(two: Pair) -> None:
    assert not any(pod.workload for pod in two.north.port.list_pods().items)
    assert not any(pod.workload for pod in two.south.port.list_pods().items)
    assert not Placement.objects.filter(released_at=None).exists()
    assert not PlacementSpan.objects.filter(released_at=None).exists()
    assert not Quota.objects.exclude(used_milli=0).exists()
    assert broken() == []


def end_well(two: Pair, scene: Scene, gang: Workload) -> None:
    """It runs in south alone; then it is cancelled, and nothing is left of it anywhere."""
    has_moved(two, gang)
    workloads.cancel(actor=two.north.ada, workload=gang, at=now())
    two.until_gone(two.south)
    gang.refresh_from_db()
    assert gang.state == State.CANCELLED
    nothing_is_left(two)
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


def test_dying_over_and_over(scene: Scene, two: Pair) -> None:
    """Each gang runs in north, which is then lost, and south, which takes nothing until then."""
    north, south = two.north, two.south

    def losing(of: Rounds) -> None:
        silence(south.cluster)
        gpus, count = of.chance.randint(1, 4), of.chance.randint(1, 4)
        [gang] = of.submit(
            spec(
                gpus=gpus,
                count=count,
                command=LONG,
                name=f"gang-{of.nth}",
                cluster_loss_requeue_s=600,
            )
        )
        north.until_state(gang, State.RUNNING)
        clusters.heard(cluster=south.cluster)
        silence(north.cluster)
        of.die("check_clusters", "L1")
        assert gang.attempts.get().unseen_since is None
        of.die("check_clusters", "L2")
        assert gang.attempts.get().unseen_since is not None
        if of.chance.random() < 1 / 2:
            scene.children.run("check_clusters")
        south.until_state(gang, State.RUNNING)
        two.hear(north)
        has_moved(two, gang)
        of.cancel(gang)
        two.until_gone(south)
        assert broken() == []

    def verdict() -> None:
        nothing_is_left(two)
        for world, since in ((north, scene.begun), (south, begun)):
            told = diary.read(world.port, since=since)
            assert told.opened
            assert all(len(uids) == 1 for uids in told.opened.values())

    begun = south.port.list_pods().resource_version
    over_and_over(scene, losing, points=LOSING, verdict=verdict)
