"""The watcher on the simulated cluster: whatever breaks, in the end it has seen everything."""

import threading
import time
from datetime import timedelta

import pytest

from clusters.adapters.kubernetes.adapter import KubernetesCluster
from clusters.autoscaling import Autoscaling, NodePoolReport
from clusters.models import Cluster, Node, NodePool
from clusters.port import ClusterError, Fault
from clusters.services import clusters, inventory
from controlplane.kernel.clock import now
from scheduler.core.lifecycle import State
from scheduler.loop.watching import readers, watch
from scheduler.models import Placement, Workload
from tests import factories
from tests.flows.world import World, spec
from tests.scheduler.watching import LONG, SHORT, all_in, following, start, watching, world
from tests.waiting import PATIENCE_S, eventually

__all__ = ["world"]


def watches(world: World, count: int) -> None:
    eventually(f"{count} watches are open", lambda: world.simulator.stats()["watches"] == count)


def long_silent(world: World) -> None:
    """As if nothing had been heard for longer than an active cluster may be silent."""
    Cluster.objects.update(seen_at=now() - timedelta(seconds=clusters.DEGRADED_S + 1))


def state(world: World) -> str:
    clusters.mark_silent()
    return Cluster.objects.get().state


def test_it_lists_what_is_there_and_follows_what_comes(world: World) -> None:
    Node.objects.update(ready=False)
    before = start(world, 2)
    with watching(world) as raised:
        eventually("all nodes are ready", lambda: not Node.objects.filter(ready=False).exists())
        all_in(State.SUCCEEDED, *before, *start(world, 3))
    assert raised == []


def test_nodes_that_make_no_sense_are_told_and_harm_nobody_else(world: World) -> None:
    broken = Node.objects.filter(name__startswith="h100").order_by("name")[0].name
    world.simulator.fault(
        kind="set-allocatable", node=broken, resources={"nvidia.com/gpu": "100000"}
    )
    with watching(world) as raised:
        eventually(
            "it is out of use",
            lambda: Node.objects.filter(name=broken, gone_at__isnull=False).exists(),
        )
        all_in(State.SUCCEEDED, *start(world, 3))
        told = Cluster.objects.get().left_out
    assert raised == []
    assert told["pods"] == {"count": 0, "first": []}
    assert told["nodes"]["count"] == 1
    assert told["nodes"]["first"] == [f"{broken}: more than 128 devices"]
    world.simulator.fault(kind="set-allocatable", node=broken, resources={"nvidia.com/gpu": "8"})
    with watching(world):
        eventually("it makes sense", lambda: not Cluster.objects.get().left_out["nodes"]["count"])


def test_a_watch_that_is_cut_goes_on_where_it_was(world: World) -> None:
    with watching(world) as raised:
        watches(world, 4)
        for _ in range(3):
            world.simulator.fault(kind="cut-watch", verb="watch", resource="pods")
            all_in(State.SUCCEEDED, *start(world))
    assert raised == []
    assert world.simulator.stats()["requests"]["list pods"] == 1


def test_a_watch_whose_version_is_forgotten_lists_again(world: World) -> None:
    made = start(world, command=LONG)
    with watching(world) as raised:
        all_in(State.RUNNING, *made)
        listed = world.simulator.stats()["requests"]["list pods"]
        # The next watch asks for changes since a version that is no longer kept.
        world.simulator.fault(kind="gone", verb="watch", resource="pods")
        world.simulator.fault(kind="cut-watch", verb="watch", resource="pods")
        all_in(State.SUCCEEDED, *start(world, 2))
        eventually(
            "the pods are listed again",
            lambda: world.simulator.stats()["requests"]["list pods"] > listed,
        )
    assert raised == []


def test_a_connection_that_died_without_a_word_is_given_up(world: World) -> None:
    with watching(world, watch_timeout_s=60, watch_read_timeout_s=1.0) as raised:
        watches(world, 4)
        world.simulator.fault(kind="half-open", verb="watch", resource="pods")
        all_in(State.SUCCEEDED, *start(world, 2))
    assert raised == []


def test_what_happened_while_nobody_watched_is_made_up_for(world: World) -> None:
    kept, deleted = start(world, 2, command=LONG)
    with watching(world):
        all_in(State.RUNNING, kept, deleted)
    gone = deleted.placements.get()
    world.port.delete_pod(
        namespace=world.vision.namespace, name=gone.pod_name, uid=gone.pod_uid, grace_s=0
    )
    finished = start(world, command=SHORT)
    eventually(
        "the pod is gone",
        lambda: gone.pod_uid not in {pod.uid for pod in world.port.list_pods().items},
    )
    with watching(world):
        all_in(State.PENDING, deleted)
        all_in(State.SUCCEEDED, *finished)
        all_in(State.RUNNING, kept)


def test_an_api_that_fails_ends_the_watch_and_a_new_one_sees_all(world: World) -> None:
    with watching(world) as raised:
        watches(world, 4)
        world.simulator.fault(kind="error", verb="watch", resource="pods", count=0)
        world.simulator.fault(kind="cut-watch", verb="watch", resource="pods")
        made = start(world, 2)
        eventually("the watch has ended", lambda: raised)
    [error] = raised
    assert isinstance(error, ClusterError)
    assert error.fault is Fault.SERVER
    with following(world):
        eventually(
            "the cluster's page says so",
            lambda: Cluster.objects.exclude(id=world.cluster.id, last_error="").exists(),
        )
        world.simulator.heal()
        all_in(State.SUCCEEDED, *made)
        eventually("it is heard", lambda: Cluster.objects.get().last_error == "")


def test_what_its_cluster_refuses_to_place_is_tried_elsewhere(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "UNSCHEDULABLE_S", 0)
    [workload] = world.submit(spec("h100", gpus=8, command=LONG))
    world.cycle()
    node = Placement.objects.get().node
    world.simulator.fault(kind="cordon-node", node=node.name)
    with watching(world) as raised:
        world.dispatch()
        all_in(State.PREEMPTING, workload)
        world.dispatch()
        all_in(State.PENDING, workload)
    assert raised == []
    Workload.objects.update(not_before=None)
    world.cycle()
    assert Placement.objects.get(released_at=None).node != node
    assert "could not place it" in workload.attempts.get(number=1).trouble


def test_lists_that_come_sooner_do_not_put_that_off(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "UNSCHEDULABLE_S", 2.5)
    monkeypatch.setattr(readers, "RELIST_S", 0.1)
    [workload] = world.submit(spec("h100", gpus=8, command=LONG))
    world.cycle()
    world.simulator.fault(kind="cordon-node", node=Placement.objects.get().node.name)
    with watching(world, watch_timeout_s=1):
        world.dispatch()
        all_in(State.PREEMPTING, workload)


def test_a_watch_that_broke_leaves_no_reader_behind(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its readers may have more to say than fits, to a writer that is gone."""
    monkeypatch.setattr(readers, "QUEUE", 1)
    before = set(threading.enumerate())

    def new() -> list[threading.Thread]:
        """Dispatch keeps its own."""
        since = set(threading.enumerate()) - before
        return [thread for thread in since if not thread.name.startswith("calls")]

    def full_disk(*_: object, **__: object) -> None:
        raise OSError

    monkeypatch.setattr(inventory, "sync", full_disk)
    start(world, 12, command=LONG)
    with watching(world) as raised:
        eventually("the watch has ended", lambda: raised)
        start(world, 12, command=LONG)
        eventually("no reader is left", lambda: len(new()) <= 1)


def test_a_server_that_ends_each_watch_at_once_is_not_asked_without_a_pause(world: World) -> None:
    begun = time.monotonic()
    with watching(world, watch_timeout_s=0):
        eventually(
            "it has watched", lambda: world.simulator.stats()["requests"].get("watch pods", 0) >= 5
        )
        asked = world.simulator.stats()["requests"]["watch pods"]
    assert time.monotonic() - begun >= (asked - 1) * readers.PAUSE_S


@pytest.mark.parametrize("verb", ["list", "watch"])
@pytest.mark.parametrize("resource", ["pods", "nodes"])
def test_a_cluster_that_refuses_a_list_or_a_watch_is_not_heard(
    world: World, monkeypatch: pytest.MonkeyPatch, verb: str, resource: str
) -> None:
    """However well it answers all else, and however often the watch begins anew."""
    monkeypatch.setattr(readers, "PULSE_S", 0.05)
    world.simulator.fault(kind="forbid", verb=verb, resource=resource, count=0)
    long_silent(world)
    act = f"{verb} {resource}"
    with following(world):
        eventually(
            "it has begun anew twice",
            lambda: world.simulator.stats()["requests"].get(act, 0) >= 3,
        )
        eventually("its error is stored", lambda: Cluster.objects.exclude(last_error="").exists())
        assert state(world) == "degraded"
        assert f'cannot {verb} resource "{resource}"' in Cluster.objects.get().last_error
        world.simulator.heal()
        eventually("it is heard again", lambda: state(world) == "active")
        assert Cluster.objects.get().last_error == ""


def test_a_quiet_cluster_is_heard_while_it_is_watched(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No event and no bookmark comes; the watches stand, and the API answers."""
    monkeypatch.setattr(readers, "PULSE_S", 0.05)
    with watching(world) as raised:
        watches(world, 4)
        for _ in range(3):
            long_silent(world)
            eventually("it is heard", lambda: state(world) == "active")
    assert raised == []


def test_a_cluster_is_not_heard_before_what_it_told_is_stored(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "PULSE_S", 0.05)
    stored = threading.Event()

    def slow_disk(*_: object, **__: object) -> bool:
        assert stored.wait(PATIENCE_S)
        return False

    monkeypatch.setattr(inventory, "sync", slow_disk)
    long_silent(world)
    with watching(world) as raised:
        watches(world, 4)
        for _ in range(2):
            Cluster.objects.update(version="")
            eventually("it answers", lambda: Cluster.objects.exclude(version="").exists())
        assert state(world) == "degraded"
        stored.set()
        eventually("it is heard", lambda: state(world) == "active")
    assert raised == []


def test_of_a_cluster_that_no_longer_tells_of_pools_nothing_is_expected(world: World) -> None:
    factories.node_pool(world.cluster)
    with watching(world) as raised:
        eventually("it is gone", lambda: not NodePool.objects.filter(gone_at=None).exists())
    assert raised == []


def test_pools_that_cannot_be_stored_end_no_watch(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = threading.Event()

    def read(_: KubernetesCluster) -> Autoscaling:
        asked.set()
        return Autoscaling((NodePoolReport("x" * 300),))

    monkeypatch.setattr(KubernetesCluster, "read_autoscaling", read)
    with watching(world) as raised:
        assert asked.wait(PATIENCE_S)
        all_in(State.SUCCEEDED, *start(world, 1))
    assert raised == []


def test_pools_that_have_not_been_read_for_long_are_not_counted_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    factories.node_pool(world.cluster)
    monkeypatch.setattr(readers, "STALE_S", -1.0)
    world.simulator.fault(kind="error", verb="list", resource="nodepools", count=0)
    with watching(world):
        eventually("it is gone", lambda: not NodePool.objects.filter(gone_at=None).exists())
