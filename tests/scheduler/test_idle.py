"""Work that leaves its devices unused: seen, told, freed; and what is not known is not idle."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from pytest_django import Settings

from clusters.models import FlavorKind
from clusters.port import PodPhase
from clusters.use import PodUse
from scheduler.core.cycle import plan
from scheduler.core.failures import FailureClass
from scheduler.core.lifecycle import State
from scheduler.core.policy import Policy
from scheduler.loop import lease, run
from scheduler.loop.measuring import idle
from scheduler.models import CycleRecord, Idleness, InvariantCheck, Placement, Workload
from scheduler.selectors import idleness, losses
from scheduler.selectors.load import load_here
from tenants.models import Project
from tests import factories
from tests.factories import AT
from tests.scheduler.stage import SHARD, Stage

TIMEOUT_S, WARNING_S = 3600, 600
BEGAN = AT + timedelta(minutes=5)


def limited(timeout_s: int = TIMEOUT_S, warning_s: int = WARNING_S) -> None:
    Project.objects.update(idle_timeout_s=timeout_s, idle_warning_s=warning_s)


def after(seconds: int) -> datetime:
    """As long after it began to be idle."""
    return BEGAN + timedelta(seconds=seconds)


def see(stage: Stage, *percents: Sequence[float], at: datetime = BEGAN) -> None:
    """Of each pod that runs, by name, how much it uses each of its devices. Where fewer are given,
    the last are not measured."""
    pods = Placement.objects.filter(released_at=None).order_by("pod_name")
    namespace = stage.project.namespace
    names = pods.values_list("pod_name", flat=True)
    uses = [PodUse(namespace, *each) for each in zip(names, map(tuple, percents), strict=False)]
    idle.note(cluster=stage.cluster, uses=uses, at=at)


def silent_for(seconds: int) -> None:
    """As time does: use was seen as long ago."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE clusters_cluster SET use_seen_at = clock_timestamp() - %s * interval '1 s'",
            [seconds],
        )


def since() -> list[tuple[datetime, datetime | None]]:
    return list(Idleness.objects.order_by("since").values_list("since", "warned_at"))


def told(workload: Workload) -> list[str]:
    found = workload.events.filter(kind__in=[idle.EVENT, idle.USED]).order_by("id")
    return list(found.values_list("message", flat=True))


def free(stage: Stage, at: datetime) -> set[str]:
    """Plan and free; the names of what is on its way then."""
    loaded = load_here(at=at)
    made = plan(loaded.snapshot, Policy())
    held = lease.acquire(shard=SHARD)
    assert held is not None
    moved = idle.free(lease=held, loaded=loaded, frees=made.frees, at=at)
    lease.release(held)
    return set(Workload.objects.filter(id__in=moved).values_list("name", flat=True))


def freed(stage: Stage, **asked: Any) -> Workload:  # Any: as `spec`
    """It was told, and it is being freed an hour after it began to be idle."""
    limited()
    workload = stage.running(**asked)
    see(stage, [0])
    idle.warn(at=after(TIMEOUT_S - WARNING_S))
    assert free(stage, after(TIMEOUT_S)) == {"train"}
    workload.refresh_from_db()
    return workload


def test_it_is_idle_since_all_its_devices_were_first_seen_unused(stage: Stage) -> None:
    stage.running(gpus=2, count=2)
    see(stage, [0, 4.9], [0, 0])
    see(stage, [0, 0], [1, 1], at=after(60))
    assert since() == [(BEGAN, None)]
    [held] = load_here(at=after(60)).snapshot.holding
    assert (held.idle_since, held.idle_warned_at) == (int(BEGAN.timestamp()), None)


@pytest.mark.parametrize(
    "percents",
    [
        [[0, 5], [0, 0]],
        [[0], [0, 0]],  # one device is not measured
        [[0, 0]],  # nor is a whole pod
        [],
    ],
    ids=str,
)
def test_it_is_not_idle_while_one_is_used_or_not_measured(
    stage: Stage, percents: list[list[float]]
) -> None:
    stage.running(gpus=2, count=2)
    see(stage, [0, 0], [0, 0])
    see(stage, *percents, at=after(60))
    assert since() == []
    see(stage, [0, 0], [0, 0], at=after(120))
    assert since() == [(after(120), None)]


def test_how_little_is_unused_is_a_setting(stage: Stage, settings: Settings) -> None:
    stage.running()
    settings.BERTH_IDLE_PERCENT = 50
    see(stage, [49])
    assert since() == [(BEGAN, None)]


def test_work_without_devices_is_never_idle(stage: Stage) -> None:
    cpu = factories.flavor("cpu", FlavorKind.CPU)
    factories.quota(stage.project, cpu, 64_000)
    stage.running(gpus=0, flavor="cpu")
    see(stage, [0])
    assert since() == []


def test_what_does_not_run_yet_is_not_idle(stage: Stage) -> None:
    stage.started()
    see(stage, [0])
    assert since() == []


def test_when_use_has_not_been_seen_for_a_while_nothing_is_idle_and_all_begin_anew(
    stage: Stage,
) -> None:
    limited()
    workload = stage.running()
    see(stage, [0])
    assert idleness.of_running(workload=workload) is not None
    silent_for(idleness.STALE_S + 1)
    assert idleness.of_running(workload=workload) is None
    assert load_here(at=after(9000)).snapshot.holding[0].idle_since is None
    assert not idle.warn(at=after(9000))
    assert told(workload) == []
    see(stage, [0], at=after(9000))
    assert since() == [(after(9000), None)]


def test_its_submitter_is_told_once_when_it_is_time(stage: Stage) -> None:
    limited()
    workload = stage.running()
    see(stage, [0])
    for seconds in (TIMEOUT_S - WARNING_S - 1, TIMEOUT_S - WARNING_S, TIMEOUT_S - WARNING_S + 60):
        assert not idle.warn(at=after(seconds))
    assert told(workload) == [
        f"all its devices are unused since {BEGAN:%Y-%m-%d %H:%M} UTC; it is freed in 600 s"
        " unless it uses them"
    ]
    assert since() == [(BEGAN, after(TIMEOUT_S - WARNING_S))]


def test_who_uses_its_devices_again_after_it_was_told_keeps_them_and_reads_so(
    stage: Stage,
) -> None:
    limited()
    workload = stage.running()
    see(stage, [0])
    idle.warn(at=after(3000))
    see(stage, [80], at=after(3060))
    assert not idle.warn(at=after(TIMEOUT_S))
    assert told(workload)[1:] == ["its devices are used again, or not measured any more"]
    assert free(stage, after(TIMEOUT_S)) == set()


def test_a_limit_that_is_set_late_tells_first_and_frees_after_the_warning(stage: Stage) -> None:
    stage.running()
    see(stage, [0])
    assert not idle.warn(at=after(9000))
    limited()
    assert not idle.warn(at=after(9000))
    assert free(stage, after(9000 + WARNING_S - 1)) == set()
    assert idle.warn(at=after(9000 + WARNING_S))
    assert free(stage, after(9000 + WARNING_S)) == {"train"}


def test_work_is_told_and_freed_no_sooner_than_it_has_run_as_long_as_it_is_granted(
    committed: Stage,
) -> None:
    limited()
    Project.objects.update(min_run_time_s=86_400)
    workload = committed.running()
    see(committed, [0])
    for seconds in (TIMEOUT_S - WARNING_S, TIMEOUT_S, TIMEOUT_S + WARNING_S):
        assert run.run_cycle(at=after(seconds)) is None
    assert told(workload) == []
    found = idleness.of_running(workload=workload)
    assert found is not None
    workload.refresh_from_db()
    assert workload.started_at is not None
    assert found.frees_at == workload.started_at + timedelta(days=1)
    assert found.warns_at == found.frees_at - timedelta(seconds=WARNING_S)
    run.run_cycle(at=found.warns_at)
    assert told(workload)[0].endswith("it is freed in 600 s unless it uses them")
    assert run.run_cycle(at=found.frees_at - timedelta(seconds=1)) is None
    run.run_cycle(at=found.frees_at)
    workload.refresh_from_db()
    assert workload.state == State.PREEMPTING


def test_while_admission_is_stopped_nothing_is_planned_for_who_is_idle(committed: Stage) -> None:
    limited()
    committed.running()
    see(committed, [0])
    assert run.run_cycle(at=after(3000)) is None
    InvariantCheck.objects.create(at=AT, took_ms=1, violations=["P1 is broken."])
    assert run.run_cycle(at=after(TIMEOUT_S)) is None
    InvariantCheck.objects.all().delete()
    assert run.run_cycle(at=after(TIMEOUT_S)) is not None


def test_what_may_not_be_preempted_is_told_and_never_freed(stage: Stage) -> None:
    limited()
    workload = stage.running(preemptible=False)
    see(stage, [0])
    assert not idle.warn(at=after(9000))
    assert told(workload)[0].endswith("it is not freed, as it may not be preempted")
    assert not idle.warn(at=after(99_000))
    assert free(stage, after(99_000)) == set()


def test_the_shortest_limit_holds_and_a_time_out_of_0_is_never(
    stage: Stage, settings: Settings
) -> None:
    settings.BERTH_IDLE_TIMEOUT_S, settings.BERTH_IDLE_WARNING_S = 100, 10
    workload = stage.running()
    see(stage, [0])

    def limit() -> tuple[int | None, int | None]:
        found = idleness.of_running(workload=workload)
        [queue] = load_here(at=AT).snapshot.queues
        assert found is not None
        assert queue.idle_timeout_s == (found.limit.timeout_s or None)
        return queue.idle_timeout_s, queue.idle_warning_s

    assert limit() == (100, 10)
    tenant = stage.project.tenant
    tenant.idle_timeout_s, tenant.idle_warning_s = 200, 20
    tenant.save()
    assert limit() == (200, 20)
    limited(150, 15)
    assert limit() == (150, 15)
    limited(0, 0)
    assert limit() == (200, 20)
    tenant.idle_timeout_s, tenant.idle_warning_s = 0, 0
    tenant.save()
    assert limit() == (None, 0)
    assert not idle.warn(at=after(10**6))


def test_what_may_be_evicted_late_is_freed_by_the_shortest_time_that_is_said(stage: Stage) -> None:
    limited(100, 10)
    workload = stage.running()
    see(stage, [0])
    tenant = stage.project.tenant

    def frees_at() -> datetime | None:
        found = idleness.of_running(workload=workload)
        assert found is not None
        return found.frees_at

    assert workload.started_at
    Project.objects.update(min_run_time_s=80_000)
    assert frees_at() == workload.started_at + timedelta(seconds=80_000)
    tenant.min_run_time_s = 40_000
    tenant.save()
    assert frees_at() == workload.started_at + timedelta(seconds=40_000)


def test_freed_work_gets_its_notice_and_ends_as_idle_and_is_not_tried_again(
    stage: Stage,
) -> None:
    workload = freed(stage, notice_s=60)
    assert workload.state == State.PREEMPTING
    assert workload.notice_until == after(TIMEOUT_S + 60)
    stage.dispatch()
    assert len(stage.port.notices) == 1
    stage.release_claims()
    stage.dispatch()
    stage.relist(at=after(TIMEOUT_S + 60))
    workload.refresh_from_db()
    attempt = workload.attempts.get()
    assert (workload.state, attempt.outcome) == (State.FAILED, "failed")
    assert (attempt.failure, attempt.trouble) == (
        FailureClass.IDLE, "freed: idle, its devices were unused for 3600 s",
    )  # fmt: skip
    ran_s = int((after(TIMEOUT_S + 60) - AT).total_seconds())
    assert attempt.lost_milli_s == ran_s * 1000
    last = workload.events.filter(kind="state").order_by("-id")[0]
    assert "not tried again: its retries do not include idle" in last.message
    assert idleness.freed_milli() == 1000


def test_work_that_says_so_is_tried_again_after_it_was_freed(stage: Stage) -> None:
    workload = freed(stage)
    Workload.objects.update(retry_on=["idle"], retry_limit=1)
    stage.dispatch()
    stage.relist(at=after(TIMEOUT_S))
    workload.refresh_from_db()
    assert (workload.state, workload.failures) == (State.PENDING, 1)


def test_work_that_is_done_during_its_notice_has_succeeded(stage: Stage) -> None:
    workload = freed(stage, notice_s=60)
    stage.dispatch()
    report = stage.report(workload.placements.get(), PodPhase.SUCCEEDED, exit_code=0)
    stage.observe(report, at=after(TIMEOUT_S + 5))
    workload.refresh_from_db()
    assert workload.state == State.SUCCEEDED
    assert (losses.by_cause()["idle"].count, idleness.freed_milli()) == (0, 0)


def test_what_is_on_its_way_back_is_not_said_to_use_its_devices_again(stage: Stage) -> None:
    workload = freed(stage, notice_s=60)
    before = told(workload)
    see(stage, [0], at=after(TIMEOUT_S + 30))
    assert told(workload) == before


def test_nothing_is_kept_of_the_idleness_of_what_has_ended(stage: Stage) -> None:
    limited()
    workload = stage.running()
    see(stage, [0])
    idle.warn(at=after(TIMEOUT_S - WARNING_S))
    before = told(workload)
    report = stage.report(workload.placements.get(), PodPhase.SUCCEEDED, exit_code=0)
    stage.observe(report, at=after(TIMEOUT_S - WARNING_S + 5))
    see(stage, at=after(TIMEOUT_S - WARNING_S + 60))
    assert since() == []
    assert told(workload) == before


def test_what_is_used_again_between_plan_and_rows_is_left_alone(stage: Stage) -> None:
    limited()
    workload = stage.running()
    see(stage, [0])
    idle.warn(at=after(3000))
    loaded = load_here(at=after(TIMEOUT_S))
    made = plan(loaded.snapshot, Policy())
    assert made.frees == (str(workload.id),)
    see(stage, [70], at=after(TIMEOUT_S))
    held = lease.acquire(shard=SHARD)
    assert held is not None
    assert not idle.free(lease=held, loaded=loaded, frees=made.frees, at=after(TIMEOUT_S))
    workload.refresh_from_db()
    assert workload.state == State.RUNNING


def test_a_cycle_frees_though_nothing_waits_and_its_inputs_are_kept(committed: Stage) -> None:
    limited()
    workload = committed.running()
    see(committed, [0])
    assert run.run_cycle(at=after(3000)) is None
    record = run.run_cycle(at=after(TIMEOUT_S))
    workload.refresh_from_db()
    assert workload.state == State.PREEMPTING
    assert record is not None
    assert record.plan["frees"] == [str(workload.id)]
    assert CycleRecord.objects.filter(input__isnull=False).count() == 1
    assert run.run_cycle(at=after(TIMEOUT_S + 2)) is None
