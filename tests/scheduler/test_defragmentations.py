"""Defragmentation that is planned for a window, carried out once, and told."""

from datetime import datetime, timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from controlplane.audit.models import AuditEvent
from controlplane.kernel.errors import Conflict, Invalid
from scheduler.core.lifecycle import State
from scheduler.core.moving.defragment import Proposal
from scheduler.loop.preparing import defrag
from scheduler.loop.run import run_cycle
from scheduler.models import Defragmentation, InvariantCheck, Landing, Workload, WorkloadEvent
from scheduler.services import defragmentations
from tests.factories import AT
from tests.scheduler.stage import SHARD, Stage
from tests.scheduler.test_landings import half

HOUR = timedelta(hours=1)
pytestmark = pytest.mark.django_db(transaction=True)


def planned(
    stage: Stage, starts: datetime = AT + HOUR, *, lasts: timedelta = HOUR, budget_s: int = 99_999
) -> Defragmentation:
    return defragmentations.plan(
        cluster=stage.cluster,
        budget_s=budget_s,
        starts_at=starts,
        ends_at=starts + lasts,
        actor="user:1",
        actor_name="oz",
        at=AT,
    )


def halves(stage: Stage) -> tuple[Workload, Workload]:
    return half(stage, "p", 0), half(stage, "q", 1)


def carried_out(stage: Stage, at: datetime = AT + HOUR) -> int:
    return defrag.carry_out(shard=SHARD, at=at)


def test_it_moves_in_its_window_and_is_told_everywhere(stage: Stage) -> None:
    first, second = halves(stage)
    row = planned(stage)
    assert carried_out(stage, AT + HOUR - timedelta(seconds=1)) == 0
    assert carried_out(stage) == 1
    row.refresh_from_db()
    assert row.outcome is not None
    [moved] = row.outcome["moved"]
    assert moved in {str(first.id), str(second.id)}
    assert row.outcome["free_nodes"] == [0, 1]
    assert row.outcome["lost_s"] == 4 * 3600
    mover = Workload.objects.get(id=moved)
    assert (mover.state, mover.moved_at) == (State.PREEMPTING, AT + HOUR)
    assert Landing.objects.get().workload_id == mover.id
    told = WorkloadEvent.objects.get(workload=mover, after="PREEMPTING").message
    assert told == (
        "moved by the planned defragmentation of north, planned by oz: it starts again elsewhere"
        " at once"
    )
    events = AuditEvent.objects.filter(action__startswith="defragmentation.").order_by("id")
    assert [event.action for event in events] == [
        "defragmentation.planned",
        "defragmentation.carried-out",
    ]
    assert carried_out(stage, AT + HOUR + timedelta(minutes=1)) == 0


def test_what_no_longer_helps_is_not_moved(stage: Stage) -> None:
    first, _ = halves(stage)
    row = planned(stage)
    Workload.objects.update(preemptible=False)
    assert carried_out(stage) == 0
    row.refresh_from_db()
    assert row.outcome is not None
    assert (row.outcome["moved"], row.outcome["free_nodes"]) == ([], [0, 0])
    first.refresh_from_db()
    assert first.state == State.RUNNING


def test_no_more_is_lost_than_its_budget(stage: Stage) -> None:
    halves(stage)
    planned(stage, budget_s=4 * 3600 - 1)
    assert carried_out(stage) == 0
    assert Workload.objects.filter(state=State.PREEMPTING).count() == 0


def test_it_waits_for_moves_that_are_under_way(stage: Stage) -> None:
    first, _ = halves(stage)
    row = planned(stage)
    landing = Landing.objects.create(
        workload=first, cluster=stage.cluster, places=[], since=AT + HOUR
    )
    with CaptureQueriesContext(connection) as asked:
        assert carried_out(stage) == 0
    assert not [each for each in asked if "clusters_node" in each["sql"]], "a fleet was loaded"
    row.refresh_from_db()
    assert row.ended_at is None
    landing.delete()
    assert carried_out(stage) == 1


def test_nothing_moves_while_admission_is_stopped(stage: Stage) -> None:
    halves(stage)
    planned(stage)
    InvariantCheck.objects.create(at=AT, took_ms=1, violations=["P1"])
    assert carried_out(stage) == 0


def test_a_window_that_is_over_was_missed(stage: Stage) -> None:
    halves(stage)
    row = planned(stage)
    assert carried_out(stage, AT + 2 * HOUR) == 0
    row.refresh_from_db()
    assert (row.ended_at, row.outcome) == (AT + 2 * HOUR, {})


def test_a_cycle_carries_it_out_though_nothing_waits(stage: Stage) -> None:
    halves(stage)
    planned(stage)
    run_cycle(at=AT + HOUR)
    assert Workload.objects.filter(state=State.PREEMPTING).count() == 1


def test_one_that_cannot_be_worked_out_has_failed_and_the_cycle_goes_on(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(**_: object) -> Proposal:
        raise IndexError("no such span")

    monkeypatch.setattr(defrag, "defragment", broken)
    row = planned(stage)
    waits = stage.submit()
    run_cycle(at=AT + HOUR)
    waits.refresh_from_db()
    assert waits.state == State.ADMITTED
    row.refresh_from_db()
    assert (row.ended_at, row.outcome) == (
        AT + HOUR,
        {"failed": "IndexError('no such span')"},
    )
    [told] = [each for each in caplog.records if each.name == defrag.__name__]
    assert (told.message, bool(told.exc_info)) == ("the defragmentation of north has failed", True)
    event = AuditEvent.objects.get(action="defragmentation.failed")
    assert event.after == {"failed": "IndexError('no such span')", "planned_by": "oz"}


def test_one_is_planned_for_a_cluster_at_a_time(stage: Stage) -> None:
    planned(stage)
    with pytest.raises(Conflict, match="A defragmentation of north is planned already"):
        planned(stage)
    defragmentations.call_off(cluster=stage.cluster, actor="user:1", actor_name="oz", at=AT)
    with pytest.raises(Conflict, match="No defragmentation of north is planned"):
        defragmentations.call_off(cluster=stage.cluster, actor="user:1", actor_name="oz", at=AT)
    planned(stage)
    assert Defragmentation.objects.filter(ended_at__isnull=True).count() == 1


@pytest.mark.parametrize(
    ("starts", "lasts"),
    [(AT - HOUR, HOUR), (AT + HOUR, -HOUR), (AT + HOUR, timedelta(days=8))],
    ids=["over", "backwards", "too long"],
)
def test_a_window_that_nobody_can_mean_is_refused(
    stage: Stage, starts: datetime, lasts: timedelta
) -> None:
    with pytest.raises(Invalid, match="The window has to end after it starts"):
        planned(stage, starts, lasts=lasts)
    assert not Defragmentation.objects.exists()


def test_without_a_budget_nothing_is_planned(stage: Stage) -> None:
    with pytest.raises(Invalid, match="has to be more than 0"):
        planned(stage, budget_s=0)


def command(*args: str) -> str:
    out = StringIO()
    call_command("defragment", *args, stdout=out)
    return out.getvalue()


def test_the_command_shows_what_would_move_and_plans_nothing(stage: Stage) -> None:
    halves(stage)
    told = command("north", "--budget-s", "999999999")
    assert "moves and loses" in told
    assert "nodes with nothing on them: 0, then 1" in told
    assert not Defragmentation.objects.exists()


def test_the_command_plans_for_a_window_and_calls_it_off(stage: Stage) -> None:
    told = command("north", "--from", "2126-01-31T02:00Z", "--until", "2126-01-31T04:00Z")
    assert "Planned from 2126-01-31 02:00 to 2126-01-31 04:00 UTC." in told
    assert "Called off." in command("north", "--call-off")
    assert not Defragmentation.objects.filter(ended_at__isnull=True).exists()


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("south",), "There is no cluster south"),
        (("north", "--from", "2026-01-31T02:00"), "invalid _time value"),
        (("north", "--call-off"), "No defragmentation of north is planned"),
        (("north", "--from", "2020-01-31T02:00Z"), "The window has to end after it starts"),
    ],
)
def test_the_command_says_what_is_wrong(stage: Stage, args: tuple[str, ...], words: str) -> None:
    with pytest.raises(CommandError, match=words):
        command(*args)
