"""Estimates: rows for what waits, none for what does not."""

from datetime import timedelta

import pytest

from scheduler.core.lifecycle import State
from scheduler.loop import forecast
from scheduler.models import Estimate
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
