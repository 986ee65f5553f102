"""A GPU goes sick under work that runs: nothing is placed that its node has no room for, and who
was on it goes on elsewhere, whole."""

import pytest

from clusters.models import Device
from clusters.port import PodPhase
from controlplane.kernel.clock import now
from scheduler.core.lifecycle import State
from scheduler.loop.watching import doubts
from scheduler.models import Attempt, Placement, Workload, WorkloadEvent
from scheduler.services import workloads
from tests.flows.world import World, spec
from tests.scheduler.watching import all_in, watching

LONG = ("sleep", "600")
GPU = "nvidia.com/gpu"


def running(
    world: World,
    name: str,
    *,
    gpus: int,
    count: int = 1,
    command: tuple[str, ...] = LONG,
    flavor: str = "h100",
) -> Workload:
    [row] = world.submit(spec(flavor, name=name, gpus=gpus, count=count, command=command))
    return world.until_state(row, State.RUNNING)


def nodes(row: Workload) -> list[str]:
    live = Placement.objects.filter(workload=row, released_at__isnull=True)
    return list(live.order_by("rank").values_list("node__name", flat=True))


def goes_sick(world: World, node: str, *, well: int) -> None:
    """As the device plugin tells: so many are allocatable, and nobody says which is sick."""
    world.simulator.fault(kind="set-allocatable", node=node, resources={GPU: str(well)})
    world.sync()


def test_no_pod_is_placed_that_a_node_with_a_sick_device_has_no_room_for(world: World) -> None:
    world.quota(world.vision, "h100", 64)
    for nth in range(3):
        running(world, f"full-{nth}", gpus=8)
    ends, stays = running(world, "ends", gpus=4), running(world, "stays", gpus=4)
    [node] = {*nodes(ends), *nodes(stays)}
    lost = Device.objects.get(node__name=node, ordinal=7)
    assert lost.spans.filter(placement__workload=stays, released_at=None).exists()
    goes_sick(world, node, well=7)
    workloads.cancel(actor=world.ada, workload=ends, at=now())
    world.until_state(ends, State.CANCELLED)

    [four] = world.submit(spec("h100", name="four", gpus=4, command=LONG))
    world.turn()
    four.refresh_from_db()
    assert (four.state, four.attempts.count()) == (State.PENDING, 0)
    three = running(world, "three", gpus=3)
    assert nodes(three) == [node]
    taken = Placement.objects.get(workload=three).spans.values_list("device__ordinal", flat=True)
    assert sorted(taken) == [0, 1, 2]

    goes_sick(world, node, well=8)  # and is well again
    [one] = world.submit(spec("h100", name="one", command=LONG))
    world.until_state(one, State.RUNNING)
    assert nodes(one) == [node]
    assert not Attempt.objects.exclude(failure="").exists()


def test_a_gang_whose_program_dies_of_its_device_runs_elsewhere_though_its_node_tells_later(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others of it die of the connection, which may be told first."""
    monkeypatch.setattr(doubts, "DOUBT_S", 5)
    world.quota(world.vision, "h100", 64)
    dies = ("sh", "-c", "sleep 2; exit 1")
    with watching(world):
        gang = running(world, "gang", gpus=8, count=2, command=dies)
        first, second = nodes(gang)
        assert first != second
        later = running(world, "later", flavor="cpu", gpus=0, command=dies)
        all_in(State.FAILED, later)  # which holds no device, and is told at once
        pods = [p.phase for p in world.port.list_pods().items if p.workload == str(gang.id)]
        assert pods == [PodPhase.FAILED] * 2
        goes_sick(world, second, well=7)
        all_in(State.PENDING, gang)
    gang.refresh_from_db()
    assert (gang.failures, gang.node_losses) == (0, 1)
    lost = Attempt.objects.get(workload=gang)
    assert (lost.outcome, lost.failure) == ("lost", "node-lost")
    told = WorkloadEvent.objects.get(workload=gang, before="RUNNING", after="PENDING").message
    assert told.startswith(f"its device was lost: its node {second} has lost devices")
    Workload.objects.update(not_before=None)
    world.until_state(gang, State.RUNNING)
    assert second not in nodes(gang)
    assert len(set(nodes(gang))) == 2
