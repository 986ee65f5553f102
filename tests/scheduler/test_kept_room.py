"""Room that the loop keeps for who has waited long, and how that is told."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from controlplane.counts import Counts
from controlplane.kernel import clock
from scheduler.loop import run
from scheduler.loop.recording import kept
from scheduler.models import KeptRoom, Workload
from scheduler.selectors import load, policy
from tenants.models import Quota, Role
from tests import factories
from tests.factories import AT
from tests.scheduler.locks import until_somebody_waits
from tests.scheduler.stage import Stage
from tests.waiting import PATIENCE_S

LONG_AGO = AT - timedelta(seconds=1800)


def idle() -> float:
    found = next(m for m in Counts().collect() if m.name == "berth_kept_idle_devices")
    return found.samples[0].value


@pytest.fixture
def crowded(committed: Stage) -> Stage:
    """One of two nodes of eight GPUs is in use, for an hour; work for both has waited."""
    Quota.objects.update(nominal_milli=32_000)
    committed.running("busy", gpus=8, run_time_limit_s=3600)
    waits = committed.submit("waits", gpus=8, count=2)
    Workload.objects.filter(id=waits.id).update(submitted_at=LONG_AGO)
    return committed


def counted() -> float:
    """In device-seconds, since ever."""
    name = "berth_kept_idle_device_seconds"
    return next(m for m in Counts().collect() if m.name == name).samples[0].value


def codes() -> dict[str, str]:
    rows = Workload.objects.filter(state="PENDING").values_list("name", "reason__code")
    return dict(rows)


def test_what_could_delay_it_does_not_go_ahead(crowded: Stage) -> None:
    crowded.submit("late", gpus=1)
    crowded.submit("short", gpus=1, run_time_limit_s=600)
    record = run.run_cycle(at=AT)
    assert record is not None
    assert codes() == {"waits": "room-kept", "late": "kept-for-others"}
    [(whom, starts_at, idle_milli)] = record.plan["keeps"]
    waits = Workload.objects.get(name="waits")
    assert (whom, starts_at) == (str(waits.id), int(AT.timestamp()) + 3600)
    assert idle_milli == 8000
    assert idle() == 8
    assert "the last of them is free in 60 min" in str((waits.reason or {})["text"])


def test_the_attempt_of_what_goes_ahead_says_so(crowded: Stage) -> None:
    crowded.submit("short", gpus=1, run_time_limit_s=600)
    run.run_cycle(at=AT)
    ahead_of = {held.id: held.ahead_of for held in load.load(at=AT).snapshot.holding}
    ids = {name: str(id) for name, id in Workload.objects.values_list("name", "id")}
    assert ahead_of == {ids["short"]: (ids["waits"],), ids["busy"]: ()}


def test_an_installation_may_keep_none(crowded: Stage, settings: Settings) -> None:
    settings.BERTH_GUARD_S = 0
    crowded.submit("late", gpus=1)
    run.run_cycle(at=AT)
    assert codes() == {"waits": "no-free-capacity"}
    assert (policy.current().guard_s, idle()) == (None, 0)


def test_quota_of_its_project_is_kept_and_whoever_waits_behind_it_is_told_so(
    crowded: Stage, client: Client
) -> None:
    Quota.objects.update(nominal_milli=16_000)
    crowded.submit("late", gpus=1)
    crowded.submit("short", gpus=1, run_time_limit_s=600)
    run.run_cycle(at=AT)
    assert codes() == {"waits": "cohort-used", "late": "quota-kept"}
    late = Workload.objects.get(name="late")
    client.force_login(crowded.ada)
    page = client.get(reverse("workload-detail", args=[late.id])).content.decode()
    assert "16 are kept for work of its project that comes first and has waited long" in page


def test_an_installation_says_for_how_many(settings: Settings) -> None:
    settings.BERTH_GUARD_S, settings.BERTH_KEPT_FOR = 60, 3
    assert (policy.current().guard_s, policy.current().most_kept) == (60, 3)


def test_what_stands_idle_for_it_is_counted_from_cycle_to_cycle(crowded: Stage) -> None:
    for after_s, told in ((0, 0), (5, 40), (20, 160), (21, 168)):
        run.run_cycle(at=AT + timedelta(seconds=after_s))
        assert counted() == told
    row = KeptRoom.objects.get()
    assert (row.workload.name, row.idle_milli, row.idle_milli_s) == ("waits", 8000, 168_000)


def test_no_more_than_a_minute_is_counted_between_two_cycles(crowded: Stage) -> None:
    for after_s, told in ((0, 0), (3600, 480)):
        run.run_cycle(at=AT + timedelta(seconds=after_s))
        assert counted() == told


def test_a_clock_that_goes_faster_counts_its_own_seconds(crowded: Stage) -> None:
    for after_s in (0, 600):
        run.run_cycle(at=AT + timedelta(seconds=after_s), speed=10.0)
    assert counted() == 4800


def test_two_that_count_lock_the_rows_in_one_order(committed: Stage) -> None:
    """Who waits for the first row holds none of the others."""
    rooms = [
        KeptRoom.objects.create(
            workload=committed.submit(name), counted_at=AT, idle_milli=1000, idle_milli_s=0
        )
        for name in ("first", "second", "third")
    ]
    KeptRoom.objects.filter(id=rooms[0].id).update(idle_milli=2000)  # stored behind the others

    def beside() -> None:
        try:
            kept.count(keeps=(), at=AT + timedelta(seconds=5))
        finally:
            connection.close()

    rows = KeptRoom.objects.select_for_update(nowait=True)
    with ThreadPoolExecutor(1) as threads:
        with transaction.atomic():
            rows.get(id=rooms[0].id)
            other = threads.submit(beside)
            until_somebody_waits()
            assert len(rows.filter(id__in=[room.id for room in rooms[1:]])) == 2
        other.result(PATIENCE_S)
    assert counted() == 20


def test_what_is_kept_no_more_is_counted_until_then(crowded: Stage) -> None:
    run.run_cycle(at=AT)
    waits = Workload.objects.get(name="waits")
    crowded.cancel(waits)
    crowded.submit("other", gpus=1)
    for after_s in (10, 20):
        run.run_cycle(at=AT + timedelta(seconds=after_s))
    row = KeptRoom.objects.get()
    assert (row.idle_milli, counted()) == (0, 80)


def test_what_is_kept_is_counted_until_then_also_where_nothing_waits_any_more(
    crowded: Stage,
) -> None:
    run.run_cycle(at=AT)
    crowded.cancel(Workload.objects.get(name="waits"))
    for after_s in (10, 20):
        assert run.run_cycle(at=AT + timedelta(seconds=after_s)) is None
    row = KeptRoom.objects.get()
    assert (row.idle_milli, counted()) == (0, 80)


def test_where_clusters_are_listed_operators_read_the_sum_and_the_workload_its_own(
    crowded: Stage, client: Client
) -> None:
    run.run_cycle(at=AT)
    KeptRoom.objects.update(idle_milli_s=8000 * 5400, counted_at=clock.now())
    waits = Workload.objects.get(name="waits")
    client.force_login(crowded.ada)
    page = client.get(reverse("workload-detail", args=[waits.id])).content.decode()
    assert "<dt>Kept idle for it</dt><dd>12 GPU-hours</dd>" in page
    listed = reverse("cluster-list")
    assert "stood idle" not in client.get(listed).content.decode()
    oz = factories.user("oz")
    factories.member(oz, Role.OPERATOR)
    client.force_login(oz)
    told = "12 GPU-hours stood idle, kept for 1 workload that had waited longest"
    assert told in client.get(listed).content.decode()
