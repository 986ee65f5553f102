"""Work that is stopped for others, and goes on elsewhere at once."""

from dataclasses import replace
from datetime import timedelta

from controlplane.kernel.clock import now
from scheduler.core.lifecycle import State
from scheduler.models import Defragmentation, Landing, Placement, Workload, WorkloadEvent
from scheduler.services import defragmentations, workloads
from tenants.models import UsageInterval
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


def test_work_that_asks_for_it_goes_to_the_flavor_that_it_prefers_and_pays_for_what_it_held(
    world: World,
) -> None:
    [full] = world.submit(
        spec("a100", gpus=8, count=2, command=LONG, name="full"), project=world.speech
    )
    world.until_state(full, State.RUNNING)
    asks = spec("h100", gpus=8, command=LONG, name="asks")
    pod_set = replace(asks.pod_sets[0], flavors=("a100", "h100"))
    asks = replace(asks, pod_sets=(pod_set,), move_to_better=True)
    row, stays = world.submit(asks, replace(asks, name="stays", move_to_better=False))
    for each in (row, stays):
        world.until_state(each, State.RUNNING)
    world.turn()
    assert [flavors(row), flavors(stays)] == ["h100", "h100"]
    assert row.attempts.count() == 1

    workloads.cancel(actor=world.ada, workload=full, at=now())
    world.until(lambda: flavors(row) == "a100")
    world.until_state(row, State.RUNNING)
    world.until_state(full, State.CANCELLED)
    world.turn()
    assert [flavors(row), flavors(stays)] == ["a100", "h100"]
    assert [row.attempts.count(), stays.attempts.count()] == [2, 1]
    assert row.moved_at is not None
    told = WorkloadEvent.objects.get(after="PREEMPTING").message
    assert told == "preempted to start again at once on a flavor that it prefers, as it asked"
    assert not Landing.objects.exists()

    workloads.cancel(actor=world.ada, workload=row, at=now())
    world.until_state(row, State.CANCELLED)
    usage = UsageInterval.objects.filter(workload_id=row.id)
    assert set(usage.values_list("flavor__name", flat=True)) == {"a100", "h100"}


def flavors(row: Workload) -> str:
    held = Placement.objects.filter(workload=row, released_at__isnull=True)
    return " ".join(sorted({placement.flavor.name for placement in held.select_related("flavor")}))
