"""Work that is stopped for others, and goes on elsewhere at once."""

from datetime import timedelta

from controlplane.kernel.clock import now
from scheduler.core.lifecycle import State
from scheduler.models import Defragmentation, Landing, Placement, Workload, WorkloadEvent
from scheduler.services import defragmentations
from tests.flows.world import World, spec

LONG = ("sleep", "600")


def fragments(world: World) -> list[Workload]:
    """Half of each of the four nodes is taken, by work that lasts."""
    world.quota(world.vision, "h100", 32)
    pairs = [
        spec("h100", gpus=4, command=command, name=f"{name}{i}")
        for i in range(4)
        for name, command in (("stays", LONG), ("ends", ("true",)))
    ]
    made = world.submit(*pairs)
    world.until(lambda: Workload.objects.filter(state=State.SUCCEEDED).count() == 4)
    for row in made:
        row.refresh_from_db()
    stays = [row for row in made if row.state != State.SUCCEEDED]
    for row in stays:
        world.until_state(row, State.RUNNING)
    assert len({nodes(row) for row in stays}) == 4
    return stays


def nodes(row: Workload) -> str:
    held = Placement.objects.filter(workload=row, released_at__isnull=True)
    return " ".join(sorted({placement.node.name for placement in held.select_related("node")}))


def test_work_moves_so_that_a_whole_node_is_free_and_goes_on_elsewhere(world: World) -> None:
    stays = fragments(world)
    before = {row.id: nodes(row) for row in stays}
    [large] = world.submit(spec("h100", gpus=8, command=LONG, name="large"))
    world.until_state(large, State.RUNNING)
    for row in stays:
        world.until_state(row, State.RUNNING)
    [moved] = [row for row in stays if nodes(row) != before[row.id]]
    assert nodes(large) == before[moved.id]
    assert moved.attempts.count() == 2
    assert moved.moved_at is not None
    event = WorkloadEvent.objects.get(kind="preempted")
    assert (event.workload_id, event.message) == (moved.id, "rule: consolidate")
    told = WorkloadEvent.objects.get(after="PREEMPTING").message
    assert told == "preempted to start again elsewhere at once, so that other work has room"
    world.cycle()
    assert not Landing.objects.exists()


def test_a_planned_defragmentation_frees_whole_nodes_in_its_window(world: World) -> None:
    stays = fragments(world)
    defragmentations.plan(
        cluster=world.cluster,
        budget_s=99_999,
        starts_at=now(),
        ends_at=now() + timedelta(hours=1),
        actor="user:1",
        actor_name="oz",
        at=now(),
    )
    world.until(lambda: Workload.objects.filter(moved_at__isnull=False).count() == 2)
    for row in stays:
        world.until_state(row, State.RUNNING)
    assert len({nodes(row) for row in stays}) == 2
    [made] = Defragmentation.objects.all()
    assert made.outcome is not None
    before, after = made.outcome["free_nodes"]
    assert after == before + 2
    told = [event.message for event in WorkloadEvent.objects.filter(after="PREEMPTING")]
    assert len(told) == 2
    assert all("the planned defragmentation of north, planned by oz" in one for one in told)
