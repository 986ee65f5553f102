"""Room that the loop keeps for who has waited long, and how that is told."""

from datetime import timedelta

import pytest
from pytest_django import Settings

from controlplane import health
from scheduler.loop import run
from scheduler.models import Workload
from scheduler.selectors import policy
from tenants.models import Quota
from tests.factories import AT
from tests.scheduler.stage import Stage

LONG_AGO = AT - timedelta(seconds=1800)


def idle() -> float:
    found = next(m for m in health.Counts().collect() if m.name == "berth_kept_idle_devices")
    return found.samples[0].value


@pytest.fixture
def crowded(committed: Stage) -> Stage:
    """One of two nodes of eight GPUs is in use, for an hour; work for both has waited."""
    Quota.objects.update(nominal_milli=32_000)
    committed.running("busy", gpus=8, run_time_limit_s=3600)
    waits = committed.submit("waits", gpus=8, count=2)
    Workload.objects.filter(id=waits.id).update(submitted_at=LONG_AGO)
    return committed


def codes() -> dict[str, str]:
    rows = Workload.objects.filter(state="PENDING").values_list("name", "reason__code")
    return dict(rows)


def test_what_could_delay_it_does_not_go_ahead(crowded: Stage) -> None:
    crowded.submit("late", gpus=1)
    crowded.submit("short", gpus=1, run_time_limit_s=600)
    record = run.run_cycle(at=AT)
    assert record is not None
    assert codes() == {"waits": "room-kept", "late": "kept-for-others"}
    [(kept, starts_at, idle_milli)] = record.plan["keeps"]
    waits = Workload.objects.get(name="waits")
    assert (kept, starts_at) == (str(waits.id), int(AT.timestamp()) + 3600)
    assert idle_milli == 8000
    assert idle() == 8
    assert "the last of them is free in 60 min" in str((waits.reason or {})["text"])


def test_an_installation_may_keep_none(crowded: Stage, settings: Settings) -> None:
    settings.BERTH_GUARD_S = 0
    crowded.submit("late", gpus=1)
    run.run_cycle(at=AT)
    assert codes() == {"waits": "no-free-capacity"}
    assert (policy.current().guard_s, idle()) == (None, 0)


def test_an_installation_says_for_how_many(settings: Settings) -> None:
    settings.BERTH_GUARD_S, settings.BERTH_KEPT_FOR = 60, 3
    assert (policy.current().guard_s, policy.current().most_kept) == (60, 3)
