"""Rows by one statement are the rows that the models would have made."""

from typing import Any

import pytest
from django.db import DataError, IntegrityError

from controlplane.kernel import bulk
from controlplane.kernel.ids import uuid7
from scheduler.models import Attempt, Operation, WorkloadEvent
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
