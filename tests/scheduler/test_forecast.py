"""Estimates: rows for what waits, none for what does not."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from clusters.models import Cluster
from scheduler.core.lifecycle import State
from scheduler.core.units import WorkloadId
from scheduler.loop import retention, run
from scheduler.loop.recording import forecast
from scheduler.models import CycleRecord, Estimate, NodeAsk, Workload
from scheduler.selectors import node_asks
from tenants.models import Quota
from tests import factories
from tests.factories import AT
from tests.scheduler.stage import Stage


@pytest.fixture
def busy(committed: Stage) -> Stage:
    """All that the project may hold is held since AT, by work that may run for ten minutes."""
    Quota.objects.update(nominal_milli=8000, borrowing_limit_milli=0)
    committed.running("holder", gpus=8, run_time_limit_s=600)
    return committed


def test_what_waits_gets_a_range_and_what_runs_gets_none(busy: Stage) -> None:
    waits = busy.submit("waits", gpus=8, run_time_limit_s=600)
    assert forecast.run(at=AT + timedelta(minutes=1)) == 1
    estimate = Estimate.objects.get()
    assert (estimate.workload_id, estimate.passes) == (waits.id, forecast.PASSES)
    assert estimate.p50_s is not None
    assert estimate.p90_s is not None
    assert 0 < estimate.p50_s <= estimate.p90_s <= 540


def test_it_is_drawn_from_how_long_the_projects_finished_work_ran(busy: Stage) -> None:
    busy.submit("waits", gpus=8, run_time_limit_s=600)
    for number in range(20):
        factories.workload(
            busy.project,
            busy.ada,
            [busy.flavor],
            f"past-{number}",
            state=State.SUCCEEDED,
            started_at=AT - timedelta(hours=1),
            ended_at=AT - timedelta(hours=1) + timedelta(seconds=90),
        )
    forecast.run(at=AT + timedelta(seconds=30))
    estimate = Estimate.objects.get()
    assert estimate.p90_s is not None
    assert estimate.p90_s <= 90
    assert estimate.basis != "none"


def test_without_any_ground_there_is_no_number(committed: Stage) -> None:
    Quota.objects.update(nominal_milli=8000, borrowing_limit_milli=0)
    committed.running("holder", gpus=8)
    committed.submit("waits", gpus=8)
    forecast.run(at=AT + timedelta(minutes=1))
    estimate = Estimate.objects.get()
    assert (estimate.p50_s, estimate.p90_s) == (None, None)


def test_nothing_is_written_when_nothing_waits(busy: Stage) -> None:
    assert forecast.run(at=AT) == 0
    assert not Estimate.objects.exists()


def test_one_estimate_a_moment_is_kept_and_each_moment_has_its_own(busy: Stage) -> None:
    busy.submit("waits", gpus=8, run_time_limit_s=600)
    for at in (AT, AT, AT + timedelta(minutes=1)):
        forecast.run(at=at)
    assert Estimate.objects.count() == 2


def aged(days: int, like: Estimate | CycleRecord) -> UUID:
    """A copy that was made so many days ago, as its id tells."""
    made = datetime.now(UTC) - timedelta(days=days)
    id = UUID(int=int(made.timestamp() * 1000) << 80 | 0x7 << 76 | 0b10 << 62 | days)
    like.pk = id
    if isinstance(like, Estimate):
        like.as_of = AT - timedelta(days=days)
    like.save(force_insert=True)
    return id


def test_old_estimates_are_forgotten_a_bounded_number_a_time(
    busy: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "MOST", 2)
    waits = busy.submit("waits", gpus=8, run_time_limit_s=600)
    made = factories.estimate(waits)
    Estimate.objects.all().delete()
    [_, _, third, young] = [aged(days, made) for days in (40, 30, 29, 27)]
    busy.cancel(waits)
    forecast.run(at=AT)
    assert set(Estimate.objects.values_list("id", flat=True)) == {third, young}
    forecast.run(at=AT)
    assert [one.id for one in Estimate.objects.all()] == [young]


def test_records_of_cycles_are_forgotten_after_two_weeks(busy: Stage) -> None:
    busy.submit("waits", gpus=8, run_time_limit_s=600)
    record = run.run_cycle(at=AT)
    assert record is not None
    [_, young] = [aged(days, record) for days in (15, 13)]
    again = run.run_cycle(at=AT)
    assert again is not None
    kept = list(CycleRecord.objects.order_by("id").values_list("id", flat=True))
    assert [kept[0], kept[-1], len(kept)] == [young, again.id, 3]


def test_what_is_evicted_is_loaded_to_queue_again_and_what_is_cancelled_is_not(
    stage: Stage,
) -> None:
    evicted = stage.submit("evicted", priority_class="low")
    evicted.clusters.add(stage.cluster)
    cancelled = stage.running("cancelled")
    stage.cancel(cancelled)
    stage.submit("next", gpus=8, count=2, priority_class="high")
    stage.cycle()
    holding = {held.id: held for held in stage.decide()[0].snapshot.holding}
    low, gone = holding[WorkloadId(str(evicted.id))], holding[WorkloadId(str(cancelled.id))]
    assert (low.releasing, len(low.pod_sets)) == (True, 1)
    assert low.clusters == (str(stage.cluster.id),)
    assert (gone.releasing, gone.pod_sets) == (True, ())


@pytest.mark.parametrize(("takes_s", "basis"), [(240, "node"), (1200, "limit")])
def test_who_waits_for_nodes_that_were_asked_for_starts_when_they_are_there(
    busy: Stage, takes_s: int, basis: str
) -> None:
    waits = busy.submit("waits", gpus=8, run_time_limit_s=600)
    pool = factories.node_pool(
        Cluster.objects.get(), start_p50_s=takes_s, start_p90_s=takes_s + 60, start_count=9
    )
    NodeAsk.objects.create(workload=waits, pool=pool, nodes=[{}], asked_at=AT)
    Workload.objects.filter(id=waits.id).update(reason={"code": "waiting-for-node", "numbers": {}})
    forecast.run(at=AT + timedelta(minutes=1))
    estimate = Estimate.objects.get()
    assert estimate.basis == basis
    assert ((estimate.p50_s, estimate.p90_s) == (180, 240)) == (basis == "node")


def test_nodes_that_are_overdue_say_nothing_of_the_start(busy: Stage) -> None:
    waits = busy.submit("waits", gpus=8, run_time_limit_s=600)
    pool = factories.node_pool(
        Cluster.objects.get(), start_p50_s=240, start_p90_s=300, start_count=9
    )
    NodeAsk.objects.create(workload=waits, pool=pool, nodes=[{}], asked_at=AT)
    Workload.objects.filter(id=waits.id).update(reason={"code": "waiting-for-node", "numbers": {}})
    waits.refresh_from_db()
    assert node_asks.expected(at=AT + timedelta(seconds=301)) == {}
    [told] = node_asks.of_waiting(workload=waits, at=AT + timedelta(seconds=301))
    assert told.is_late
    [told] = node_asks.of_waiting(workload=waits, at=AT + timedelta(seconds=300))
    assert not told.is_late
