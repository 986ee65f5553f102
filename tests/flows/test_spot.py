"""Spot first, on demand where that is full or gone: a flavor of spot nodes, one of others."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from functools import partial

from django.db.backends.postgresql.psycopg_any import DateTimeTZRange

from clusters.models import Device, FlavorKind, HardwareQueue
from clusters.origin import CapacityType
from clusters.services import flavors, queues
from controlplane.audit.models import AuditEvent
from controlplane.kernel.clock import now
from controlplane.kernel.queues import QueueState
from scheduler.core.failures import FailureClass
from scheduler.core.lifecycle import State
from scheduler.loop.checking import checks
from scheduler.models import Placement, Workload, WorkloadEvent
from scheduler.services import workloads
from scheduler.services.specs import WorkloadSpec
from tenants.models import Charge, Rate
from tests import factories
from tests.flows.world import H100, World, spec

LONG = ("sleep", "600")
SPOT = {"karpenter.sh/capacity-type": "spot"}


def some_are_spot(world: World) -> str:
    """One of the nodes with H100s is, by its labels; its name."""
    [name, *_] = sorted(
        set(Device.objects.filter(model=H100).values_list("node__name", flat=True))
    )
    label(world, name, SPOT)
    return name


def label(world: World, node: str, labels: dict[str, str]) -> None:
    world.simulator.call("PATCH", f"/api/v1/nodes/{node}", {"metadata": {"labels": labels}})
    world.sync()


def make_flavor(world: World) -> None:
    meaning = flavors.Meaning(kind=FlavorKind.WHOLE, model=H100, capacity=CapacityType.SPOT)
    made = flavors.create(
        name="h100-spot", meaning=meaning, actor="user:1", actor_name="oz", at=now()
    )
    world.flavors[made.name] = made
    world.quota(world.vision, made.name, 16)
    began = DateTimeTZRange(now() - timedelta(days=1), None)
    Rate.objects.create(flavor=made, price_per_hour=Decimal(900), currency="EUR", during=began)


def spot_first(name: str = "train", **asked: object) -> WorkloadSpec:
    made = spec(name=name, gpus=8, command=LONG, **asked)  # type: ignore[arg-type]  # of `spec`
    pods = replace(made.pod_sets[0], flavors=("h100-spot", "h100"))
    return replace(made, pod_sets=(pods,))


def held(row: Workload) -> set[tuple[str, str]]:
    """The flavors and nodes of what it holds."""
    live = Placement.objects.filter(workload=row, released_at__isnull=True)
    return set(live.values_list("flavor__name", "node__name"))


def test_work_starts_on_spot_goes_on_elsewhere_when_that_goes_and_pays_for_each(
    world: World,
) -> None:
    spot = some_are_spot(world)
    make_flavor(world)
    world.sync()
    [row] = world.submit(spot_first())
    world.until_state(row, State.RUNNING)
    assert held(row) == {("h100-spot", spot)}

    [other] = world.submit(spot_first("other"))
    world.until_state(other, State.RUNNING)
    assert {flavor for flavor, _ in held(other)} == {"h100"}
    assert spot not in {node for _, node in held(other)}

    world.simulator.fault(kind="delete-node", node=spot)
    world.sync()
    world.until(lambda: row.attempts.count() == 2)
    world.until_state(row, State.RUNNING)
    assert {flavor for flavor, _ in held(row)} == {"h100"}
    row.refresh_from_db()
    assert [row.failures, row.node_losses] == [0, 1]
    told = WorkloadEvent.objects.filter(workload=row, before="RUNNING", after="PENDING").get()
    assert f"interrupted: spot node {spot} was taken away" in told.message
    for each in (row, other):
        workloads.cancel(actor=world.ada, workload=each, at=now())
        world.until_state(each, State.CANCELLED)
    paid = Charge.objects.filter(workload_id=row.id, amount__gt=0)
    at_rates = set(paid.values_list("flavor__name", "rate__price_per_hour"))
    assert at_rates == {("h100-spot", Decimal(900)), ("h100", Decimal(3600))}


def test_a_drain_of_a_spot_node_that_is_leaving_is_none_of_the_works_failures(
    world: World,
) -> None:
    spot = some_are_spot(world)
    make_flavor(world)
    [row] = world.submit(spot_first())
    world.until_state(row, State.RUNNING)
    assert held(row) == {("h100-spot", spot)}
    notice = [{"key": "aws-node-termination-handler/spot-itn", "effect": "NoSchedule"}]
    world.simulator.call("PATCH", f"/api/v1/nodes/{spot}", {"spec": {"taints": notice}})
    world.sync()
    [pod] = [pod for pod in world.observe() if pod.workload == str(row.id)]
    world.simulator.call("DELETE", f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}")
    world.until(lambda: row.attempts.count() == 2)
    world.until_state(row, State.RUNNING)
    assert {flavor for flavor, _ in held(row)} == {"h100"}
    row.refresh_from_db()
    assert [row.failures, row.node_losses] == [0, 1]
    lost = row.attempts.get(number=1)
    assert lost.trouble == f"interrupted: spot node {spot} was taken away"


def test_a_spot_node_that_falls_silent_was_not_taken_away(world: World) -> None:
    spot = some_are_spot(world)
    make_flavor(world)
    [row] = world.submit(spot_first())
    world.until_state(row, State.RUNNING)
    assert held(row) == {("h100-spot", spot)}
    world.simulator.fault(kind="lose-node", node=spot)
    world.sync()
    [pod] = [pod for pod in world.observe() if pod.workload == str(row.id)]
    at_once = {"gracePeriodSeconds": 0}
    world.simulator.call("DELETE", f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}", at_once)
    world.until(lambda: row.attempts.count() == 2)
    lost = row.attempts.get(number=1)
    assert lost.failure == FailureClass.NODE_LOST
    assert "taken away" not in lost.trouble


def test_a_pool_that_is_held_does_not_open_when_its_spot_nodes_are_set_apart(
    world: World,
) -> None:
    some_are_spot(world)
    spot, move = f"{H100} (spot)", partial(queues.move, actor="user:1", actor_name="oz")
    factories.close(factories.cluster("spare"), H100, QueueState.DRAINING, "sold")
    move(cluster=world.cluster, model=H100, state=QueueState.HELD, note="dust", at=now())
    make_flavor(world)
    apart = HardwareQueue.objects.filter(model=spot).order_by("cluster__name")
    assert [(row.cluster.name, row.queue_state, row.queue_note) for row in apart] == [
        ("north", "held", "dust"),
        ("spare", "draining", "sold"),
    ]
    told = AuditEvent.objects.filter(action="queue.move", target_id=world.cluster.id)
    assert [event.after["model"] for event in told.order_by("id")] == [H100, spot]
    [row] = world.submit(spot_first())
    world.turn()
    assert held(row) == set()
    move(cluster=world.cluster, model=spot, state=QueueState.OPEN, note="", at=now())
    world.until_state(row, State.RUNNING)


def test_what_runs_on_a_node_keeps_it_when_its_devices_come_to_be_of_a_flavor_of_their_own(
    world: World,
) -> None:
    spot = some_are_spot(world)
    nodes = Device.objects.filter(model=H100).values("node").distinct().count()
    rows = world.submit(*(spec(name=f"n{n}", gpus=8, command=LONG) for n in range(nodes)))
    for row in rows:
        world.until_state(row, State.RUNNING)
    [there] = [row for row in rows if held(row) == {("h100", spot)}]
    make_flavor(world)
    world.turn()
    world.sync()
    assert held(there) == {("h100", spot)}
    assert set(Device.objects.filter(node__name=spot).values_list("capacity", flat=True)) == {
        "spot"
    }
    assert {device.stock for device in Device.objects.filter(node__name=spot)} == {
        f"{H100} (spot)"
    }
    assert checks.check(at=now()).violations == []

    [waits] = world.submit(spec("h100", gpus=8, command=LONG, name="waits"))
    [first] = world.submit(spot_first("first"))
    world.turn()
    assert [held(waits), held(first)] == [set(), set()]
    workloads.cancel(actor=world.ada, workload=there, at=now())
    world.until_state(first, State.RUNNING)
    assert held(first) == {("h100-spot", spot)}
    waits.refresh_from_db()
    assert waits.state == State.PENDING


def test_work_that_asks_for_it_moves_back_to_spot(world: World) -> None:
    spot = some_are_spot(world)
    label(world, spot, {"karpenter.sh/capacity-type": "on-demand"})
    make_flavor(world)
    [row] = world.submit(replace(spot_first(), move_to_better=True))
    world.until_state(row, State.RUNNING)
    assert {flavor for flavor, _ in held(row)} == {"h100"}
    free = sorted(
        set(Device.objects.filter(model=H100).values_list("node__name", flat=True))
        - {node for _, node in held(row)}
    )
    label(world, free[0], SPOT)
    world.until(lambda: held(row) == {("h100-spot", free[0])})
    world.until_state(row, State.RUNNING)
    told = WorkloadEvent.objects.get(workload=row, after="PREEMPTING").message
    assert told == "preempted to start again at once on a flavor that it prefers, as it asked"
