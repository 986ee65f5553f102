"""What fails in a cluster, by its class: what is tried again, what is not, and what is told."""

import pytest
from pytest_django import Settings

from clusters.port import PodPhase
from controlplane.kernel.clock import now
from scheduler.core.failures import Retries
from scheduler.core.lifecycle import State
from scheduler.loop.observing import starts
from scheduler.loop.watching import watch
from scheduler.models import Attempt, Placement, Workload, WorkloadEvent
from scheduler.services import workloads
from tests.flows.test_deleted import follow
from tests.flows.world import World, spec
from tests.scheduler.watching import watching

LONG = ("sleep", "600")


def running(world: World, **asked: object) -> Workload:
    [workload] = world.submit(spec("h100", command=LONG, **asked))  # type: ignore[arg-type]
    return world.until_state(workload, State.RUNNING)


def pod(workload: Workload) -> str:
    placement = Placement.objects.get(workload=workload, released_at=None)
    return f"{workload.project.namespace}/{placement.pod_name}"


def ended(workload: Workload) -> tuple[str, str]:
    attempt = Attempt.objects.get(workload=workload, number=1)
    return attempt.outcome, attempt.failure


def message(workload: Workload) -> str:
    return WorkloadEvent.objects.filter(workload=workload).order_by("-id")[0].message


def test_what_ran_out_of_memory_has_failed_at_once(world: World) -> None:
    [workload] = world.submit(spec("h100", command=("sh", "-c", "sleep 1; tail /dev/zero")))
    world.until_state(workload, State.FAILED)
    assert ended(workload) == ("failed", "out-of-memory")
    assert message(workload).startswith("out of memory: OOMKilled; exit code 137; not tried again")
    assert workload.attempts.count() == 1


def test_what_exits_with_a_code_that_is_listed_runs_again_until_that_is_used_up(
    world: World,
) -> None:
    retries = Retries(limit=1, exit_codes=(42,))
    [workload] = world.submit(spec("h100", command=("sh", "-c", "exit 42"), retries=retries))
    world.until_state(workload, State.PENDING)
    world.until(lambda: workload.attempts.filter(ended_at__isnull=False).exists())
    workload.refresh_from_db()
    assert (workload.failures, ended(workload)) == (1, ("failed", "exit-code"))
    Workload.objects.update(not_before=None)
    world.until_state(workload, State.FAILED)
    assert message(workload) == "its work failed: exit code 42; given up after 2 tries"
    assert workload.attempts.count() == 2


def test_what_outlives_its_limit_is_told_so(world: World) -> None:
    [workload] = world.submit(spec("h100", command=LONG, run_time_limit_s=1))
    world.until_state(workload, State.FAILED)
    assert ended(workload) == ("failed", "run-time-limit")


def test_what_a_node_evicts_runs_again(world: World) -> None:
    workload = running(world)
    world.simulator.fault(kind="evict-pod", pod=pod(workload))
    world.observe()
    workload.refresh_from_db()
    assert (workload.state, workload.failures, workload.node_losses) == (State.PENDING, 1, 0)
    assert ended(workload) == ("lost", "evicted")


def test_what_somebody_drains_runs_again(world: World) -> None:
    workload = running(world)
    act = {"kind": "disrupt-pod", "pod": pod(workload), "by": "EvictionByEvictionAPI"}
    follow(world, do=lambda: world.simulator.fault(**act))
    assert ended(workload) == ("lost", "evicted")
    assert "EvictionByEvictionAPI" in message(workload)


def test_what_went_with_its_node_runs_again_by_a_budget_of_its_own(world: World) -> None:
    workload = running(world, retries=Retries(limit=0))
    node = Placement.objects.get(workload=workload).node
    world.simulator.fault(kind="delete-node", node=node.name)
    world.sync()
    world.observe()
    workload.refresh_from_db()
    assert (workload.state, workload.failures, workload.node_losses) == (State.PENDING, 0, 1)
    assert ended(workload) == ("lost", "node-lost")


def test_what_is_never_tried_again_is_not_even_when_its_node_is_lost(world: World) -> None:
    workload = running(world, retries=Retries(on=()))
    node = Placement.objects.get(workload=workload).node
    world.simulator.fault(kind="delete-node", node=node.name)
    world.sync()
    world.observe()
    workload.refresh_from_db()
    assert (workload.state, ended(workload)) == (State.FAILED, ("failed", "node-lost"))


def test_a_gang_of_which_one_pod_can_not_be_opened_starts_whole_or_not_at_all(
    world: World, settings: Settings
) -> None:
    [workload] = world.submit(spec("h100", count=2, command=LONG))
    world.cycle()
    last = Placement.objects.filter(workload=workload).order_by("rank")[1].pod_name
    world.simulator.fault(kind="error", status=500, verb="patch", name=last, count=0)
    world.dispatch()
    world.until(lambda: len({pod.phase for pod in world.observe()}) == 2)
    workload.refresh_from_db()
    assert workload.state == State.ADMITTED
    settings.BERTH_START_S = 1
    world.until(lambda: starts.give_up_late(at=now()) == 1)
    world.until_state(workload, State.PENDING)
    assert not any(pod.workload == str(workload.id) for pod in world.observe())
    assert ended(workload) == ("lost", "refused")
    world.simulator.heal()
    Workload.objects.update(not_before=None)
    world.until_state(workload, State.RUNNING)


def test_an_image_that_is_not_there_gives_its_room_back(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "START_ERROR_S", 0)
    [workload] = world.submit(spec("h100", image="lab/train:missing"))
    with watching(world):
        world.cycle()
        world.dispatch()
        world.until(lambda: workload.attempts.filter(failure="start-error").exists())
        world.until_state(workload, State.FAILED)
    assert "it could not start: ErrImagePull" in message(workload)
    assert "do not include start-error" in message(workload)


def test_who_is_evicted_saves_its_work_in_its_notice_and_loses_nothing(world: World) -> None:
    world.quota(world.vision, "h100", 8, borrowing=0)
    victim = running(world, gpus=8, notice_s=600, name="victim")
    [urgent] = world.submit(spec("h100", gpus=8, priority_class="urgent", name="urgent"))
    world.turn()
    world.turn()
    victim.refresh_from_db()
    assert (victim.state, victim.notice_until is not None) == (State.PREEMPTING, True)
    [report] = [p for p in world.port.list_pods().items if p.workload == str(victim.id)]
    assert (report.phase, report.deleting) == (PodPhase.RUNNING, False)

    workloads.checkpoint(actor=world.ada, workload=victim, at=now())
    follow(world, do=world.dispatch)
    attempt = Attempt.objects.get(workload=victim)
    assert attempt.outcome == "preempted"
    assert attempt.lost_milli_s <= 2 * 8000
    world.until_state(urgent, State.SUCCEEDED)
