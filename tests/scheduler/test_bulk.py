"""Rows by one statement are the rows that the models would have made."""

import copy
from typing import Any

import pytest
from django.db import DataError, IntegrityError

from controlplane.kernel import bulk
from controlplane.kernel.ids import uuid7
from scheduler.models import Attempt, Operation, Workload, WorkloadEvent
from tests.factories import AT
from tests.scheduler.stage import Stage


def insert_events(stage: Stage, messages: list[str], **columns: Any) -> None:  # Any: of the table
    workload = stage.submit()
    bulk.insert(
        WorkloadEvent,
        id=[uuid7() for _ in messages],
        workload_id=workload.id,
        at=AT,
        kind="note",
        message=messages,
        **columns,
    )


def test_a_list_has_a_value_a_row_and_anything_else_is_every_rows(stage: Stage) -> None:
    insert_events(stage, ["one", "two, 'quoted' {and} \"more\""], after="X")
    rows = WorkloadEvent.objects.filter(kind="note").order_by("id")
    assert list(rows.values_list("message", "after", "before", "at")) == [
        ("one", "X", "", AT),
        ("two, 'quoted' {and} \"more\"", "X", "", AT),
    ]


def test_what_is_left_out_has_the_models_default_or_the_databases(stage: Stage) -> None:
    workload = stage.submit()
    made = Attempt(workload=workload, number=1, cluster=stage.cluster, epoch=1, created_at=AT)
    made.save()
    bulk.insert(
        Attempt,
        id=[uuid7()],
        workload_id=stage.submit("other").id,
        number=1,
        cluster_id=stage.cluster.id,
        epoch=1,
        created_at=AT,
    )
    names = [
        field.attname
        for field in Attempt._meta.concrete_fields
        if field.attname not in ("id", "workload_id")
    ]
    saved, inserted = Attempt.objects.order_by("id").values_list(*names)
    assert saved == inserted
    bulk.insert(Operation, id=[uuid7()], attempt_id=made.id, kind="start")
    assert Operation.objects.get().due_at is not None


def test_no_rows_are_no_statement(stage: Stage, django_assert_num_queries: Any) -> None:
    """Any: pytest-django's context manager."""
    with django_assert_num_queries(0):
        bulk.insert(WorkloadEvent, id=[], workload_id=[], at=AT, kind="note")


def test_what_is_too_long_is_refused_and_not_cut(stage: Stage) -> None:
    with pytest.raises(DataError, match="too long"):
        insert_events(stage, ["x" * 501])


def test_a_row_that_a_constraint_forbids_is_refused(stage: Stage) -> None:
    with pytest.raises(IntegrityError, match="at"):
        insert_events(stage, ["one"], before=None)


def test_a_list_of_another_length_is_a_defect(stage: Stage) -> None:
    with pytest.raises(ValueError, match="before has 1 values for 2 rows"):
        insert_events(stage, ["one", "two"], before=["x"])


def test_a_column_that_the_table_has_not_is_a_defect(stage: Stage) -> None:
    with pytest.raises(TypeError, match="WorkloadEvent has no column level"):
        insert_events(stage, ["one"], level=3)


def test_models_that_are_saved_are_as_if_each_had_been(stage: Stage) -> None:
    like = stage.submit("like")
    odd = {"k": 'a "quoted" \\ {key}, é', "n": None}
    rows = [
        Workload(
            project=like.project,
            submitted_by=like.submitted_by,
            name=f'{index}: \\ "quoted", {{braces}} NULL',
            priority_class="normal",
            priority=-index,
            labels=odd,
            retry_exit_codes=[7] * index,
            retry_on=[],
            not_before=None if index else AT,
            reason=odd if index else None,
            submitted_at=AT,
        )
        for index in range(3)
    ]
    one_by_one = copy.deepcopy(rows)
    for row in one_by_one:
        row.id = uuid7()
        row.save()
    bulk.save(rows)
    assert not rows[0]._state.adding
    names = [f.attname for f in Workload._meta.concrete_fields if f.attname != "id"]
    saved, made = (
        list(
            Workload.objects.filter(id__in=[row.id for row in each]).order_by("id").values(*names)
        )
        for each in (one_by_one, rows)
    )
    assert len(made) == 3
    assert made == saved
    assert Workload.objects.get(id=rows[0].id).retry_exit_codes == []
    assert Workload.objects.filter(id=rows[0].id, reason__isnull=True).exists()


class TestCopies:
    def test_they_are_like_the_row_but_for_what_is_given(self, stage: Stage) -> None:
        [event] = stage.submit().events.all()
        ids = [uuid7(), uuid7()]
        bulk.copy(event, id=ids, message=["one", "two"])
        rows = WorkloadEvent.objects.filter(id__in=ids).order_by("id")
        own = {"id", "message"}
        like = {k: v for k, v in WorkloadEvent.objects.filter(id=event.id).values()[0].items()}
        assert [row["message"] for row in rows.values()] == ["one", "two"]
        for row in rows.values():
            assert {k: v for k, v in row.items() if k not in own} == {
                k: v for k, v in like.items() if k not in own
            }

    def test_a_column_that_there_is_not_or_of_another_length_is_a_defect(
        self, stage: Stage
    ) -> None:
        [event] = stage.submit().events.all()
        with pytest.raises(TypeError, match="WorkloadEvent has no column colour"):
            bulk.copy(event, id=[uuid7()], colour=["red"])
        with pytest.raises(ValueError, match="a column has not 2 values"):
            bulk.copy(event, id=[uuid7(), uuid7()], message=["one"])
        bulk.copy(event, id=[], message=[])
        assert WorkloadEvent.objects.count() == 1
