"""The watcher has deleted what nobody will open, and goes on whatever comes of that."""

from dataclasses import replace
from datetime import timedelta

import pytest

from clusters.port import PodRequest
from controlplane.kernel.clock import now
from controlplane.kernel.ids import uuid7
from scheduler.core.lifecycle import State
from scheduler.loop import strays
from scheduler.models import Workload
from scheduler.services import workloads
from tests.flows.world import World, spec
from tests.kube.waiting import eventually
from tests.scheduler.watching import LONG, all_in, start, watching, world

__all__ = ["world"]


@pytest.fixture(autouse=True)
def _at_any_age(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strays, "AGE", timedelta())


def again(workload: Workload) -> PodRequest:
    """What its first attempt's first pod was asked for."""
    placement = workload.placements.get()
    return PodRequest(
        namespace=workload.project.namespace,
        name=placement.pod_name,
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
