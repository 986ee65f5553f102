"""The main flow: submit → admit → bind → run → end → charge."""

from datetime import timedelta
from decimal import Decimal

import pytest

from controlplane.audit.models import AuditEvent
from controlplane.kernel.clock import now
from controlplane.kernel.errors import Invalid
from scheduler.core.lifecycle import State
from scheduler.models import Placement, PlacementSpan, Workload, WorkloadEvent
from scheduler.services import workloads
from tenants.models import Charge, Quota, UsageInterval
from tests.flows.world import World, spec


def test_a_workload_runs_on_a_named_node_and_is_charged_for_exactly_its_time(world: World) -> None:
    [workload] = world.submit(spec("h100", gpus=2))
    world.until_state(workload, State.SUCCEEDED)

    placement = Placement.objects.get()
    assert placement.node.name.startswith("h100")
    assert placement.released_at is not None
    assert placement.started_at
    assert placement.ended_at
    held = placement.ended_at - placement.started_at
    assert held == timedelta(seconds=1)
    usage = UsageInterval.objects.get()
    assert (usage.amount_milli, usage.during.upper - usage.during.lower) == (2000, held)
    assert Charge.objects.get().amount == Decimal(2)  # 3,600 an hour is 1 a second
    assert Quota.objects.get(project=world.vision, flavor__name="h100").used_milli == 0


def test_its_timeline_and_the_audit_tell_each_state_once(world: World) -> None:
    [workload] = world.submit(spec())
    world.until_state(workload, State.SUCCEEDED)

    states = list(WorkloadEvent.objects.order_by("id").values_list("after", flat=True))
    assert states[0] == "PENDING"
    assert states[-2:] == ["RUNNING", "SUCCEEDED"]
    assert len(states) == len(set(states))
    audited = AuditEvent.objects.filter(action="workload.state").values_list("after", flat=True)
    assert [after["state"] for after in audited.order_by("id")] == states[1:]


def test_a_mig_slice_is_held_where_the_device_has_one(world: World) -> None:
    [workload] = world.submit(spec("a100.3g", command=("sleep", "60")))
    world.until_state(workload, State.RUNNING)

    span = PlacementSpan.objects.get()
    assert span.device.slices.filter(profile="3g.40gb", span=span.span).exists()


def test_a_gang_of_sixteen_gpus_starts_whole_over_two_nodes(world: World) -> None:
    [workload] = world.submit(spec("h100", gpus=8, count=2, command=("sleep", "60")))
    world.until_state(workload, State.RUNNING)

    nodes = set(Placement.objects.values_list("node__name", flat=True))
    assert len(nodes) == 2
    assert PlacementSpan.objects.filter(released_at__isnull=True).count() == 16


def test_what_does_not_fit_waits_with_a_reason_and_starts_when_something_ends(
    world: World,
) -> None:
    world.quota(world.vision, "h100", 8, borrowing=0)
    [first, second] = world.submit(
        spec("h100", gpus=8, name="first"), spec("h100", gpus=8, name="second")
    )
    world.cycle()
    second.refresh_from_db()
    assert second.state == State.PENDING
    assert second.reason is not None
    assert second.reason["code"] == "quota-used"
    assert "8" in second.reason["text"]

    world.until_state(second, State.SUCCEEDED)
    first.refresh_from_db()
    assert first.state == State.SUCCEEDED


def test_what_fails_is_failed_with_its_exit_code_and_charged(world: World) -> None:
    [workload] = world.submit(spec(command=("false",)))
    world.until_state(workload, State.FAILED)
    assert "exit code 1" in WorkloadEvent.objects.get(after="FAILED").message
    assert Placement.objects.get().exit_code == 1


def test_one_failed_pod_ends_its_gang(world: World) -> None:
    [workload] = world.submit(spec("h100", gpus=1, count=3, command=("false",)))
    world.until_state(workload, State.FAILED)
    assert not Placement.objects.filter(released_at__isnull=True).exists()


def test_a_cancelled_run_gives_everything_back_once_its_pods_are_gone(world: World) -> None:
    [workload] = world.submit(spec(command=("sleep", "600")))
    world.until_state(workload, State.RUNNING)
    cancelled = workloads.cancel(actor=world.ada, workload=workload, at=now())
    assert cancelled.state == State.CANCELLING
    assert PlacementSpan.objects.filter(released_at__isnull=True).exists()
    world.until_state(workload, State.CANCELLED)
    assert not PlacementSpan.objects.filter(released_at__isnull=True).exists()


def test_higher_priority_in_the_project_preempts_and_the_victim_runs_again(world: World) -> None:
    world.quota(world.vision, "h100", 32, borrowing=0)
    [victim] = world.submit(spec("h100", gpus=8, count=4, command=("sleep", "3"), name="victim"))
    world.until_state(victim, State.RUNNING)
    [urgent] = world.submit(spec("h100", gpus=8, priority_class="urgent", name="urgent"))
    world.until_state(urgent, State.SUCCEEDED)
    world.until_state(victim, State.SUCCEEDED)
    assert victim.attempts.count() == 2
    assert list(victim.attempts.order_by("number").values_list("outcome", flat=True)) == [
        "preempted",
        "succeeded",
    ]


def test_a_guarantee_is_taken_back_from_what_was_borrowed_of_it(world: World) -> None:
    long = ("sleep", "600")
    [own, borrowed] = world.submit(
        spec("h100", gpus=8, count=2, command=long, name="own"),
        spec("h100", gpus=8, count=2, command=long, name="borrowed"),
    )
    world.until_state(own, State.RUNNING)
    world.until_state(borrowed, State.RUNNING)
    [guaranteed] = world.submit(spec("h100", gpus=8, count=2), project=world.speech)
    world.until_state(guaranteed, State.SUCCEEDED)
    event = WorkloadEvent.objects.get(after="PREEMPTING")
    assert "borrowed" in event.message
    assert event.workload.submitted_by.username == "ada"
    assert Workload.objects.filter(state=State.RUNNING).exists()


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (spec("h100", gpus=16), "16"),
        (spec("h100", gpus=8, count=9), "72"),
        (spec("nope"), "no flavor"),
    ],
    ids=["larger than a node", "larger than the fleet's quota", "unknown flavor"],
)
def test_what_could_never_start_is_refused_with_numbers_and_nothing_is_stored(
    world: World, asked: object, words: str
) -> None:
    with pytest.raises(Invalid, match=words):
        world.submit(asked)  # type: ignore[arg-type]  # parametrised specs
    assert not Workload.objects.exists()
