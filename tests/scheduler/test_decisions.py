"""Who waits, starts or is evicted is told the cycle that decided so, and no other."""

import zlib
from datetime import timedelta
from uuid import UUID

import pytest
from pytest_django import Settings

from controlplane.kernel.queues import QueueState
from scheduler.loop.applying import apply
from scheduler.loop.recording import faults, inputs
from scheduler.models import CycleInput, CycleRecord, Workload, WorkloadEvent
from scheduler.selectors import decisions
from tenants.models import Project, Quota
from tests.factories import AT
from tests.scheduler.replaying import cycle, replay
from tests.scheduler.stage import Stage

SOON = AT + timedelta(seconds=2)


@pytest.fixture(autouse=True)
def every_one(settings: Settings) -> None:
    settings.BERTH_INPUTS_S = settings.BERTH_INPUTS_HOLDS_S = 0


@pytest.fixture
def first(committed: Stage) -> CycleRecord:
    """A cycle that started `train` and `other`, and held `third`."""
    for name in ("train", "other", "third"):
        committed.submit(name, gpus=8)
    return cycle()


def _decided(waiting: Workload) -> tuple[UUID, bool]:
    waiting.refresh_from_db()
    found = decisions.of_waiting(workload=waiting)
    assert found is not None
    return found.cycle, found.replayable


def test_what_was_told_too_soon_to_be_kept_is_kept_as_soon_as_it_may_be(
    first: CycleRecord, committed: Stage, settings: Settings
) -> None:
    settings.BERTH_INPUTS_HOLDS_S = 3600
    late = committed.submit("late", gpus=8)
    cycle(at=SOON)
    assert CycleInput.objects.get().outdated
    late.refresh_from_db()
    told = decisions.of_waiting(workload=late)
    assert told is not None
    assert (told.at, told.replayable) == (SOON, False)
    settings.BERTH_INPUTS_HOLDS_S = 0
    owed = cycle(at=SOON + timedelta(seconds=1))
    late.refresh_from_db()
    told = decisions.of_waiting(workload=late)
    assert told is not None
    assert (told.cycle, told.replayable) == (owed.id, True)
    assert late.reason_at == SOON
    assert "It is held: " in replay(told.cycle, "--workload", late.id)[1]


def test_what_was_told_while_nothing_is_kept_is_not_laid_to_the_last_cycle_that_is(
    first: CycleRecord, committed: Stage, settings: Settings
) -> None:
    settings.BERTH_INPUTS_MIB = 0
    third = Workload.objects.get(name="third")
    Project.objects.update(
        queue_state=QueueState.HELD,
        queue_note="New racks.",
        queue_changed_at=AT,
        queue_changed_by=committed.ada,
    )
    late = committed.submit("late", gpus=8)
    told = cycle(at=SOON)
    for waiting in (third, late):
        assert _decided(waiting) == (told.id, False)


def test_who_was_refused_its_places_is_not_told_the_plan_that_gave_them(
    committed: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = committed.submit("waiting", gpus=8)
    Quota.objects.update(nominal_milli=0, borrowing_limit_milli=0)
    held = cycle()
    Quota.objects.update(nominal_milli=16_000)
    with monkeypatch.context() as patch:
        patch.setattr(apply, "still_fitting", lambda *_: [])
        refused = cycle(at=SOON)
    assert refused.refused_count == 1
    assert _decided(waiting) == (held.id, True)
    CycleInput.objects.get(cycle=held).delete()
    assert _decided(waiting) == (held.id, False)
    Quota.objects.update(nominal_milli=0)
    again = cycle(at=SOON + timedelta(seconds=1))
    assert _decided(waiting) == (again.id, True)


def test_what_a_cycle_told_that_died_before_its_record_is_laid_to_no_other(
    first: CycleRecord, committed: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    third = Workload.objects.get(name="third")
    late = committed.submit("late", gpus=8)
    Quota.objects.update(nominal_milli=0, borrowing_limit_milli=0)

    class Died(BaseException): ...

    def die(_: object) -> None:
        raise Died

    with monkeypatch.context() as patch:
        patch.setattr(faults, "log", die)
        with pytest.raises(Died):
            cycle(at=SOON)
    for waiting in (third, late):
        waiting.refresh_from_db()
        assert waiting.reason_at == SOON
        assert decisions.of_waiting(workload=waiting) is None
    again = cycle(at=SOON + timedelta(seconds=1))
    for waiting in (third, late):
        assert _decided(waiting) == (again.id, True)


def test_inputs_larger_than_all_that_may_be_kept_drive_nothing_out(
    first: CycleRecord,
    committed: Stage,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings.BERTH_INPUTS_MIB = 1
    compress = zlib.compress
    monkeypatch.setattr(zlib, "compress", lambda *_, **__: bytes((1 << 20) + 1))
    late = committed.submit("late", gpus=8)
    large = cycle(at=SOON)
    committed.submit("later", priority_class="high")
    cycle(at=SOON + timedelta(seconds=1))
    assert [len(row.payload) > 0 for row in CycleInput.objects.order_by("pk")] == [
        True,
        False,
        False,
    ]
    assert inputs.kept(large.id) is None
    assert _decided(late) == (large.id, False)
    told = [said for said in caplog.messages if "BERTH_INPUTS_MIB" in said]
    assert len(told) == 1
    assert "1048577 bytes" in told[0]
    monkeypatch.setattr(zlib, "compress", compress)
    committed.submit("last", priority_class="high")
    assert inputs.kept(cycle(at=SOON + timedelta(seconds=2)).id)


def test_a_start_and_an_eviction_name_their_cycles(committed: Stage) -> None:
    Quota.objects.update(nominal_milli=8000, borrowing_limit_milli=0)
    low = committed.submit("low", gpus=8, priority_class="low")
    started = cycle()
    committed.submit("high", gpus=8, priority_class="high")
    evicted = cycle(at=SOON)
    events = WorkloadEvent.objects.filter(workload=low).order_by("id")
    found = decisions.of_events(events)
    told = [(e.after, found[e.id].cycle, found[e.id].replayable) for e in events if e.id in found]
    assert told == [("ADMITTED", started.id, True), ("PREEMPTING", evicted.id, True)]
    CycleInput.objects.filter(cycle=started).delete()
    assert [one.replayable for one in decisions.of_events(events).values()] == [False, True]
