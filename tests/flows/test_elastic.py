"""A gang that starts with its least, grows, gives way to an owner, and grows again."""

from decimal import Decimal

from django.db.models import Sum

from clusters.port import PodPhase
from controlplane.kernel.clock import now
from scheduler.core.lifecycle import State
from scheduler.models import Operation, Placement, PlacementSpan, Workload, WorkloadEvent
from scheduler.services import workloads
from tenants.models import Charge, Quota, UsageInterval
from tests.flows.world import World, spec

LONG = ("sleep", "600")
FULL = "4 of 4 pods"


def live(workload: Workload) -> list[Placement]:
    return list(Placement.objects.filter(workload=workload, released_at=None).order_by("rank"))


def run_with(world: World, workload: Workload, pods: int) -> None:
    """Turn until exactly so many of its pods run, and nothing of it is on its way."""

    def reached() -> bool:
        found = live(workload)
        due = Operation.objects.filter(done_at=None).exists()
        return len(found) == pods and all(p.started_at for p in found) and not due

    world.until(reached)


def test_it_grows_gives_way_and_grows_again_and_is_charged_for_what_it_held(
    world: World,
) -> None:
    [owner] = world.submit(
        spec("h100", gpus=8, count=2, command=LONG, name="owner"), project=world.speech
    )
    world.until_state(owner, State.RUNNING)
    [elastic] = world.submit(spec("h100", gpus=8, count=4, least=2, command=LONG, name="elastic"))
    run_with(world, elastic, 2)
    world.until_state(elastic, State.RUNNING)
    assert [placement.rank for placement in live(elastic)] == [0, 1]

    workloads.cancel(actor=world.ada, workload=owner, at=now())
    world.until_state(owner, State.CANCELLED)
    run_with(world, elastic, 4)
    assert [placement.rank for placement in live(elastic)] == [0, 1, 2, 3]
    used = Quota.objects.get(project=world.vision, flavor__name="h100")
    assert used.used_milli == 32_000

    [back] = world.submit(
        spec("h100", gpus=8, count=2, command=("sleep", "1"), name="back"), project=world.speech
    )
    world.until_state(back, State.RUNNING)
    assert [placement.rank for placement in live(elastic)] == [0, 1]
    used.refresh_from_db()
    assert used.used_milli == 16_000

    world.until_state(back, State.SUCCEEDED)
    run_with(world, elastic, 4)
    # A rank is given once: what comes back is another pod.
    assert [placement.rank for placement in live(elastic)] == [0, 1, 4, 5]
    elastic.refresh_from_db()
    assert (elastic.state, elastic.attempts.count()) == (State.RUNNING, 1)
    told = WorkloadEvent.objects.filter(workload=elastic, kind__in=["grown", "shrunk"])
    messages = list(told.order_by("id").values_list("message", flat=True))
    [shrunk] = [at for at, message in enumerate(messages) if "fewer" in message]
    assert messages[shrunk] == (
        "2 fewer because its project borrowed what another project is guaranteed; 2 of 4 pods"
    )
    # Where the pods that leave are not seen gone at once, neither does it grow at once.
    grew = ([f"2 more; {FULL}"], ["1 more; 3 of 4 pods", f"1 more; {FULL}"])
    assert messages[:shrunk] in grew
    assert messages[shrunk + 1 :] in grew

    workloads.cancel(actor=world.ada, workload=elastic, at=now())
    world.until_state(elastic, State.CANCELLED)
    assert not PlacementSpan.objects.filter(released_at=None).exists()
    used.refresh_from_db()
    assert used.used_milli == 0
    held = Decimal()
    for placement in Placement.objects.filter(workload=elastic):
        assert placement.started_at
        assert placement.ended_at
        seconds = Decimal((placement.ended_at - placement.started_at).total_seconds())
        held += seconds * placement.amount_milli / 1000
    usage = UsageInterval.objects.filter(workload_id=elastic.id)
    charged = Charge.objects.filter(usage__in=usage).aggregate(total=Sum("amount"))["total"]
    assert abs(charged - held) < Decimal("0.01")  # 3,600 an hour is 1 a second


def test_a_pod_beyond_the_least_that_is_lost_fails_nothing_and_comes_back(world: World) -> None:
    [elastic] = world.submit(spec("h100", count=3, least=2, command=LONG, name="elastic"))
    world.until_state(elastic, State.RUNNING)
    run_with(world, elastic, 3)
    second = live(elastic)[1]
    world.port.delete_pod(
        namespace=world.vision.namespace, name=second.pod_name, uid=second.pod_uid, grace_s=0
    )
    world.until(lambda: 3 in {placement.rank for placement in live(elastic)})
    run_with(world, elastic, 3)
    assert [placement.rank for placement in live(elastic)] == [0, 2, 3]
    elastic.refresh_from_db()
    assert (elastic.state, elastic.attempts.count()) == (State.RUNNING, 1)
    assert len([p for p in world.observe() if p.phase is PodPhase.RUNNING]) == 3


def test_without_its_first_pod_it_starts_again(world: World) -> None:
    """The others find each other there."""
    [elastic] = world.submit(spec("h100", count=3, least=2, command=LONG, name="elastic"))
    world.until_state(elastic, State.RUNNING)
    run_with(world, elastic, 3)
    first = live(elastic)[0]
    world.port.delete_pod(
        namespace=world.vision.namespace, name=first.pod_name, uid=first.pod_uid, grace_s=0
    )
    world.until(lambda: elastic.attempts.filter(outcome="lost").exists())
