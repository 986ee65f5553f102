"""The watcher has deleted what nobody will open, and goes on whatever comes of that."""

from dataclasses import replace
from datetime import timedelta

import pytest

from clusters.confinement import Confinement
from clusters.models import Cluster, Node
from clusters.port import PodRequest
from clusters.services import restoring
from controlplane.kernel.clock import now
from controlplane.kernel.ids import uuid7
from scheduler.core.lifecycle import State
from scheduler.loop.watching import strays
from scheduler.models import Stray, Workload
from scheduler.services import workloads
from tests.flows.world import World, spec
from tests.scheduler.watching import LONG, all_in, following, start, watching, world
from tests.waiting import eventually

__all__ = ["world"]


@pytest.fixture(autouse=True)
def _at_any_age(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strays, "AGE", timedelta())


def again(workload: Workload) -> PodRequest:
    """What its first attempt's first pod was asked for."""
    return PodRequest(
        namespace=workload.project.namespace,
        name=f"w{workload.id.hex}-1-0",
        workload=str(workload.id),
        attempt=1,
        rank=0,
        image="busybox",
        command=LONG,
        args=(),
        env=(),
        cpu_milli=1000,
        memory_mib=1024,
    )


def test_a_stray_is_deleted_and_what_is_being_started_is_not(world: World) -> None:
    [ended] = start(world, command=LONG)
    known = world.port.list_pods().items[0]
    ended.refresh_from_db()
    workloads.cancel(actor=world.ada, workload=ended, at=now())
    world.dispatch()
    with watching(world):
        all_in(State.CANCELLED, ended)
    # Its create was sent once more, long ago, and comes only now.
    stray = world.port.create_pod(request=again(ended))
    assert (stray.name, stray.uid == known.uid) == (known.name, False)
    world.submit(spec("h100", name="starting"))
    world.cycle()
    starting = world.port.create_pod(request=again(Workload.objects.get(name="starting")))
    with watching(world) as raised:
        eventually("the stray is gone", lambda: [starting] == list(world.port.list_pods().items))
    assert raised == []


def test_a_right_that_is_missing_for_strays_breaks_no_watch(world: World) -> None:
    [made] = start(world, command=LONG)
    stray = replace(again(made), name="stray", workload=str(uuid7()))
    world.port.create_pod(request=stray)
    world.simulator.fault(kind="forbid", verb="delete", resource="pods", count=0)
    with watching(world) as raised:
        all_in(State.RUNNING, made)
        all_in(State.SUCCEEDED, *start(world))
    assert raised == []
    assert "stray" in {pod.name for pod in world.port.list_pods().items}


def test_a_watch_that_goes_on_adopts_nothing_before_somebody_says_that_the_database_is_old(
    world: World,
) -> None:
    [work] = world.submit(spec("h100", command=LONG))
    world.port.confine(wanted=Confinement(work.project.namespace))
    pod = world.port.create_pod(request=replace(again(work), resources=(("nvidia.com/gpu", 1),)))
    world.port.open_gate(
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        resource_version=pod.resource_version,
        hostname=Node.objects.filter(devices__model__contains="H100")[0].hostname,
    )
    with following(world):
        stray = Stray.objects.filter(uid=pod.uid)
        eventually("it is told", stray.exists)
        assert stray.get().workload is None
        restoring.look_again(
            cluster=world.cluster, actor="system:operator", actor_name="operator", at=now()
        )
        all_in(State.RUNNING, work)
        eventually("all may start", lambda: not restoring.any_unread())
    assert not stray.exists()
    assert Cluster.objects.get().state == "active"
