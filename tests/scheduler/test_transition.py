"""The one place where a workload's state changes: compare-and-set, timeline and audit."""

from collections.abc import Sequence
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.db.models import F

from controlplane.audit.models import AuditEvent
from controlplane.kernel.errors import Conflict
from scheduler.core.lifecycle import State
from scheduler.models import Workload, WorkloadEvent
from scheduler.services import workloads
from scheduler.services.transition import Step, transition
from tests.factories import AT
from tests.scheduler.locks import at_once
from tests.scheduler.stage import Stage

LATER = AT + timedelta(minutes=5)


def step(workload: Workload, before: State, after: State, **fields: object) -> Step:
    return Step(workload.id, workload.project_id, before, after, **fields)  # type: ignore[arg-type]  # a step's fields


def move(*steps: Step) -> frozenset[object]:
    return frozenset(transition(steps, actor="system:test", actor_name="test", at=LATER))


def told(workload: Workload) -> tuple[list[tuple[str, str]], int]:
    """Its timeline and how many audit rows of states it has."""
    events = WorkloadEvent.objects.filter(workload=workload).order_by("id")
    audited = AuditEvent.objects.filter(target_id=workload.id, action="workload.state")
    return list(events.values_list("before", "after")), audited.count()


def test_a_step_writes_one_line_of_the_timeline_and_one_audit_row(stage: Stage) -> None:
    workload = stage.submit()
    assert move(step(workload, State.PENDING, State.ADMITTED, message="it fits"))
    assert told(workload) == ([("", "PENDING"), ("PENDING", "ADMITTED")], 1)
    row = AuditEvent.objects.get(target_id=workload.id, action="workload.state")
    assert (row.before, row.after) == (
        {"state": "PENDING"},
        {"state": "ADMITTED", "why": "it fits"},
    )
    assert (row.actor, row.at) == ("system:test", LATER)
    assert (row.tenant_id, row.project_id) == (stage.project.tenant_id, stage.project.id)
    workload.refresh_from_db()
    assert (workload.state, workload.version, workload.admitted_at) == ("ADMITTED", 2, LATER)


def test_who_is_no_longer_where_the_step_begins_stays_and_nothing_is_written(stage: Stage) -> None:
    here, gone = stage.submit("here"), stage.submit("gone")
    move(step(gone, State.PENDING, State.CANCELLED))
    moved = move(
        step(here, State.PENDING, State.ADMITTED), step(gone, State.PENDING, State.ADMITTED)
    )
    assert moved == {here.id}
    assert told(gone) == ([("", "PENDING"), ("PENDING", "CANCELLED")], 1)


def test_a_version_that_has_passed_stays(stage: Stage) -> None:
    workload = stage.submit()
    assert not move(step(workload, State.PENDING, State.ADMITTED, version=workload.version + 1))
    assert move(step(workload, State.PENDING, State.ADMITTED, version=workload.version))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (State.SUCCEEDED, State.PENDING),
        (State.PENDING, State.RUNNING),
        (State.CANCELLING, State.PENDING),
        (State.RUNNING, State.RUNNING),
    ],
)
def test_a_step_that_the_lifecycle_does_not_know_raises(
    before: State, after: State, stage: Stage
) -> None:
    good, bad = stage.submit("good"), stage.submit("bad")
    with pytest.raises(ValueError, match=f"{before} → {after}"):
        move(step(good, State.PENDING, State.ADMITTED), step(bad, before, after))
    assert told(good) == ([("", "PENDING")], 0)


def test_its_moments_are_those_of_its_last_way_through(stage: Stage) -> None:
    workload = stage.submit()
    ran_at, ended_at = LATER + timedelta(minutes=1), LATER + timedelta(minutes=2)
    move(step(workload, State.PENDING, State.ADMITTED))
    move(step(workload, State.ADMITTED, State.RUNNING, at=ran_at))
    workload.refresh_from_db()
    assert (workload.admitted_at, workload.started_at) == (LATER, ran_at)
    move(step(workload, State.RUNNING, State.PENDING))
    workload.refresh_from_db()
    assert (workload.admitted_at, workload.started_at, workload.ended_at) == (None, None, None)
    move(step(workload, State.PENDING, State.ADMITTED))
    move(step(workload, State.ADMITTED, State.SUCCEEDED, at=ended_at, started_at=ran_at))
    workload.refresh_from_db()
    assert (workload.started_at, workload.ended_at) == (ran_at, ended_at)


def test_why_it_waited_is_forgotten_once_it_moves(stage: Stage) -> None:
    workload = stage.submit()
    Workload.objects.update(reason={"code": "no-room"}, reason_at=AT)
    move(step(workload, State.PENDING, State.ADMITTED))
    workload.refresh_from_db()
    assert (workload.reason, workload.reason_at) == (None, None)


def test_it_goes_back_with_its_transaction(stage: Stage) -> None:
    workload = stage.submit()

    def fail() -> None:
        with transaction.atomic():
            move(step(workload, State.PENDING, State.ADMITTED))
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert told(workload) == ([("", "PENDING")], 0)


def test_two_that_move_the_same_workloads_in_other_orders_do_not_block_each_other(
    committed: Stage,
) -> None:
    made = [committed.submit(f"w{number}") for number in range(40)]

    def move_all(workloads: Sequence[Workload], before: State, after: State) -> int:
        with transaction.atomic(), connection.cursor() as cursor:
            # As in a large table: rows are looked up one by one, in the order of the steps.
            cursor.execute("SET LOCAL enable_hashjoin = off")
            cursor.execute("SET LOCAL enable_mergejoin = off")
            cursor.execute("SET LOCAL enable_seqscan = off")
            return len(move(*[step(workload, before, after) for workload in workloads]))

    for before, one, other in [
        (State.PENDING, State.ADMITTED, State.ADMITTED),
        *[(State.ADMITTED, State.PENDING, State.BOUND)] * 8,
    ]:
        Workload.objects.update(state=before, version=F("version") + 1)
        moved = at_once(
            lambda before=before, after=one: move_all(made, before, after),  # type: ignore[misc]  # mypy knows no lambda's defaults
            lambda before=before, after=other: move_all(made[::-1], before, after),  # type: ignore[misc]
        )
        assert sorted(moved) == [0, 40]


def test_its_foreign_keys_are_looked_up_by_key_however_small_the_tables_are(stage: Stage) -> None:
    workload = stage.submit()
    with transaction.atomic(), connection.cursor() as cursor:
        move(step(workload, State.PENDING, State.ADMITTED))
        cursor.execute("SHOW enable_seqscan")
        assert cursor.fetchone() == ("off",)


def test_what_others_moved_meanwhile_is_cancelled_from_where_it_is(stage: Stage) -> None:
    """Who cancels looked at it just before."""
    workload = stage.submit()
    move(step(workload, State.PENDING, State.ADMITTED))
    assert workload.state == State.PENDING  # as it was looked at
    cancelled = workloads.cancel(actor=stage.actor, workload=workload, at=LATER)
    assert cancelled.state == State.CANCELLING
    assert told(workload)[0][-1] == ("ADMITTED", "CANCELLING")


def test_what_has_ended_meanwhile_is_not_cancelled(stage: Stage) -> None:
    workload = stage.submit()
    move(step(workload, State.PENDING, State.ADMITTED))
    workload.refresh_from_db()
    move(step(workload, State.ADMITTED, State.FAILED))
    with pytest.raises(Conflict, match="has ended already"):
        workloads.cancel(actor=stage.actor, workload=workload, at=LATER)
