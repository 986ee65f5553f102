"""Pods that are deleted before their work is done, by Berth or by somebody else, however their
programs take it: followed by a watch, which sees how they end."""

from collections.abc import Callable

import pytest

from clusters.port import Change, PodPhase
from controlplane.kernel.clock import now
from scheduler.core.lifecycle import State
from scheduler.loop.observing import observe
from scheduler.models import Placement, Workload
from scheduler.services import workloads
from tests.flows.world import World, spec

GRACEFUL = ("sh", "-c", "trap 'exit 0' TERM; sleep 600 & wait")
HEEDLESS = ("sleep", "600")


def follow(world: World, *, do: Callable[[], None]) -> list[PodPhase]:
    """Act, and take in what the watch tells until one pod is gone; the phases in which it was
    seen."""
    seen = []
    with world.port.watch_pods(resource_version=world.port.list_pods().resource_version) as events:
        do()
        for event in events:
            if event.report is None:
                continue
            gone = event.change is Change.DELETE
            seen.append(event.report.phase)
            observe.pods(
                cluster_id=world.cluster.id,
                reports=[event.report],
                gone=[event.report.uid] if gone else [],
                at=now(),
            )
            if gone:
                break
    return seen


def running(world: World, command: tuple[str, ...]) -> Workload:
    [workload] = world.submit(spec("h100", gpus=8, command=command, name="long"))
    return world.until_state(workload, State.RUNNING)


def outcomes(workload: Workload) -> list[str]:
    workload.refresh_from_db()
    return list(workload.attempts.order_by("number").values_list("outcome", flat=True))


@pytest.mark.parametrize("command", [GRACEFUL, HEEDLESS], ids=["exits 0", "is killed"])
def test_a_victim_that(command: tuple[str, ...], world: World) -> None:
    """It has not done its work: it runs again."""
    world.quota(world.vision, "h100", 8, borrowing=0)
    victim = running(world, command)
    world.submit(spec("h100", gpus=8, priority_class="urgent", command=HEEDLESS, name="urgent"))
    world.cycle()
    seen = follow(world, do=world.dispatch)
    assert (PodPhase.SUCCEEDED in seen) == (command is GRACEFUL)
    assert outcomes(victim) == ["preempted"]
    assert (victim.state, victim.failures) == (State.PENDING, 0)
    assert Placement.objects.get(workload=victim).end_reason == "Deleted"


def test_what_exits_0_when_it_is_cancelled_is_cancelled(world: World) -> None:
    workload = running(world, GRACEFUL)
    workloads.cancel(actor=world.ada, workload=workload, at=now())
    follow(world, do=world.dispatch)
    assert outcomes(workload) == ["cancelled"]
    assert workload.state == State.CANCELLED


@pytest.mark.parametrize("command", [GRACEFUL, HEEDLESS], ids=["exits 0", "is killed"])
def test_a_drained_pod_that(command: tuple[str, ...], world: World) -> None:
    """`kubectl drain` deletes with grace: the work is tried again."""
    workload = running(world, command)
    pod = Placement.objects.get()

    def drain() -> None:
        world.port.delete_pod(
            namespace=world.vision.namespace, name=pod.pod_name, uid=pod.pod_uid, grace_s=10
        )

    follow(world, do=drain)
    assert outcomes(workload) == ["lost"]
    assert (workload.state, workload.failures) == (State.PENDING, 1)
