"""A GPU goes sick under work that runs: nothing is placed that its node has no room for, and who
was on it goes on elsewhere, whole."""

from clusters.models import Device
from controlplane.kernel.clock import now
from scheduler.core.lifecycle import State
from scheduler.models import Attempt, Placement, Workload
from scheduler.services import workloads
from tests.flows.world import World, spec

LONG = ("sleep", "600")
GPU = "nvidia.com/gpu"


def running(world: World, name: str, *, gpus: int) -> Workload:
    [row] = world.submit(spec("h100", name=name, gpus=gpus, command=LONG))
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
