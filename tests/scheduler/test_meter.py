"""Placements → usage → charges: each moment once, whatever cuts it."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.db import IntegrityError, transaction
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange

from clusters.models import Cluster
from clusters.port import PodPhase
from scheduler.loop.measuring import meter
from scheduler.models import Placement
from tenants.models import Charge, PastUse, Rate, UsageInterval
from tests import factories
from tests.factories import AT
from tests.scheduler.locks import at_once
from tests.scheduler.remembered import differing
from tests.scheduler.stage import Stage

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
QUARTER = timedelta(minutes=15)
TEN = datetime(2026, 11, 21, 10, tzinfo=UTC)
"""The first full hour after AT."""


def intervals() -> list[tuple[datetime, datetime]]:
    ranges = UsageInterval.objects.values_list("during", flat=True)
    return sorted((during.lower, during.upper) for during in ranges)


def end(stage: Stage, *, at: datetime, seen: datetime | None = None) -> None:
    """Everything that runs ends at that moment; the cluster tells it when it is `seen`."""
    for placement in Placement.objects.filter(released_at=None):
        told = stage.report(
            placement, PodPhase.SUCCEEDED, started_at=placement.started_at, finished_at=at
        )
        stage.observe(told, at=seen or at)


def test_a_run_within_an_hour_is_one_interval_and_one_charge(stage: Stage) -> None:
    stage.running(gpus=2, at=AT + QUARTER)
    end(stage, at=AT + 2 * QUARTER)
    assert intervals() == [(AT + QUARTER, AT + 2 * QUARTER)]
    assert Charge.objects.get().amount == Decimal(2 * 900)


def test_full_hours_are_closed_while_it_runs_and_the_rest_when_it_ends(stage: Stage) -> None:
    stage.running(at=AT + QUARTER)
    for _ in range(2):
        meter.tick(at=TEN + HOUR + meter.LAG)
        assert intervals() == [(AT + QUARTER, TEN + HOUR)]
    meter.tick(at=TEN + 2 * HOUR + meter.LAG)
    end(stage, at=TEN + 2 * HOUR + QUARTER)
    assert intervals() == [
        (AT + QUARTER, TEN + HOUR),
        (TEN + HOUR, TEN + 2 * HOUR),
        (TEN + 2 * HOUR, TEN + 2 * HOUR + QUARTER),
    ]
    assert sum(charge.amount for charge in Charge.objects.all()) == 3600 * 3
    assert Placement.objects.get().metered_until == TEN + 2 * HOUR + QUARTER


def test_an_hour_is_not_closed_before_its_ends_have_been_seen(stage: Stage) -> None:
    stage.running()
    assert meter.tick(at=TEN + meter.LAG - timedelta(seconds=1)) == 0
    assert meter.tick(at=TEN + meter.LAG) == 1
    assert intervals() == [(AT, TEN)]


def test_an_accelerated_clock_waits_as_long_on_the_wall(stage: Stage) -> None:
    stage.running()
    assert meter.tick(at=TEN + meter.LAG, speed=60) == 0
    assert meter.tick(at=TEN + 60 * meter.LAG, speed=60) == 1


def test_an_end_that_is_told_after_its_hour_was_closed_takes_nothing_back(stage: Stage) -> None:
    """What was charged stands: the run is counted to the full hour, and no moment twice."""
    stage.running()
    meter.tick(at=TEN + meter.LAG)
    end(stage, at=TEN - QUARTER, seen=TEN + 2 * QUARTER)
    assert intervals() == [(AT, TEN)]
    placement = Placement.objects.get()
    assert (placement.ended_at, placement.metered_until) == (TEN, TEN)


def test_what_never_started_costs_nothing(stage: Stage) -> None:
    workload = stage.started()
    meter.tick(at=TEN + meter.LAG)
    stage.cancel(workload)
    stage.dispatch()
    stage.relist()
    assert intervals() == []


def test_a_silent_clusters_hours_wait_until_it_is_heard(stage: Stage) -> None:
    stage.running()
    Cluster.objects.update(state="degraded")
    assert meter.tick(at=TEN + meter.LAG) == 0
    Cluster.objects.update(state="active")
    assert meter.tick(at=TEN + meter.LAG) == 1


def test_what_is_closed_late_is_cut_where_days_begin(stage: Stage) -> None:
    stage.running()
    midnight = AT.replace(hour=0) + DAY
    end(stage, at=midnight + 2 * DAY)
    assert intervals() == [
        (AT, midnight),
        (midnight, midnight + DAY),
        (midnight + DAY, midnight + 2 * DAY),
    ]
    assert sum(charge.amount for charge in Charge.objects.all()) == 3600 * (15 + 48)


def test_hours_of_days_that_are_closed_at_once_are_cut_where_days_begin(stage: Stage) -> None:
    stage.running()
    midnight = AT.replace(hour=0) + DAY
    meter.tick(at=midnight + HOUR + meter.LAG)
    assert intervals() == [(AT, midnight), (midnight, midnight + HOUR)]


def test_a_run_of_many_days_that_is_closed_late_is_cut_so_often_and_no_more(stage: Stage) -> None:
    stage.running()
    end(stage, at=AT + 100 * DAY)
    found = intervals()
    assert len(found) == meter.MOST_DAYS + 1
    assert (found[0][0], found[-1][1]) == (AT, AT + 100 * DAY)
    assert [before[1] for before in found[:-1]] == [after[0] for after in found[1:]]
    assert sum(charge.amount for charge in Charge.objects.all()) == 3600 * 2400


def test_a_new_price_cuts_the_interval_where_it_begins(stage: Stage) -> None:
    change = AT + QUARTER
    old = Rate.objects.get()
    old.during = DateTimeTZRange(old.during.lower, change)
    old.save()
    factories.rate(stage.flavor, "7200", during=DateTimeTZRange(change, None))
    stage.running()
    end(stage, at=AT + 2 * QUARTER)
    assert intervals() == [(AT, change), (change, AT + 2 * QUARTER)]
    amounts = Charge.objects.order_by("usage__during").values_list("amount", flat=True)
    assert list(amounts) == [900, 1800]


def test_what_had_no_price_is_charged_once_there_is_one(stage: Stage) -> None:
    Rate.objects.all().delete()
    stage.running()
    end(stage, at=AT + QUARTER)
    meter.tick(at=TEN)
    assert not Charge.objects.exists()
    factories.rate(stage.flavor, "3600")
    for _ in range(2):
        meter.tick(at=TEN)
    assert Charge.objects.get().amount == 900


def test_two_meters_at_once_meter_once(committed: Stage) -> None:
    for number in range(4):
        committed.running(f"w{number}")

    def tick() -> int:
        return meter.tick(at=TEN + meter.LAG)

    at_once(*[tick] * 4)
    assert intervals() == [(AT, TEN)] * 4
    assert Charge.objects.count() == 4
    assert PastUse.objects.get().milli_s == 4 * 3_600_000


def test_a_meter_and_an_observer_at_once_meter_once(committed: Stage) -> None:
    for number in range(4):
        committed.running(f"w{number}")

    def tick() -> None:
        meter.tick(at=TEN + meter.LAG)

    def ending() -> None:
        end(committed, at=TEN + QUARTER)

    at_once(tick, ending)
    for placement in Placement.objects.all():
        own = UsageInterval.objects.filter(placement_id=placement.id)
        held = [each.upper - each.lower for each in own.values_list("during", flat=True)]
        assert sum(held, timedelta()) == TEN + QUARTER - AT
        assert placement.metered_until == placement.ended_at
    assert PastUse.objects.get().milli_s == 4 * 1000 * int((TEN + QUARTER - AT).total_seconds())
    assert differing() == []


def test_what_ran_over_a_midnight_is_remembered_on_its_days(stage: Stage) -> None:
    stage.running(gpus=2)
    midnight = AT.replace(hour=0) + DAY
    meter.tick(at=midnight + HOUR + meter.LAG)
    end(stage, at=midnight + 2 * HOUR)
    days = PastUse.objects.order_by("day").values_list("day", "milli_s")
    assert list(days) == [
        (AT.date(), 2 * 15 * 3_600_000),
        (midnight.date(), 2 * 2 * 3_600_000),
    ]
    assert differing() == []


def test_the_database_refuses_a_moment_that_is_metered_twice(stage: Stage) -> None:
    """P6, whatever the code thinks."""
    stage.running()
    end(stage, at=AT + QUARTER)
    Placement.objects.update(metered_until=None)
    with pytest.raises(IntegrityError, match="usage_metered_once"), transaction.atomic():
        meter.close(placements=Placement.objects.values_list("id", flat=True))
