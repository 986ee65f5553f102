"""Attacks on where work runs: attempts, placements, spans, the outbox and the cycles' records."""

from datetime import timedelta

from scheduler.models import Attempt, CycleRecord, Operation, Placement, PlacementSpan
from tests.constraints.attack import Attack, negative
from tests.constraints.moves import Statement, change, copy, update
from tests.constraints.rows import NOON, make

ENDED = {"ended_at": NOON, "outcome": "failed"}


def _span_comes_back() -> Statement:
    released = make(PlacementSpan, released_at=NOON)
    make(PlacementSpan, device=released.device)
    return update(released, released_at=None)


ATTEMPTS = (
    Attack("attempt_number_once", "two attempts are the first", copy(Attempt, ENDED)),
    Attack("attempt_one_live", "a workload runs twice at once", copy(Attempt, number=2)),
    Attack("attempt_outcome_at_end", "it failed and goes on", change(Attempt, outcome="failed")),
    Attack("attempt_outcome_at_end", "it ended somehow", change(Attempt, ended_at=NOON)),
    Attack(
        "attempt_outcome_at_end",
        "it ended in no known way",
        change(Attempt, ended_at=NOON, outcome="vanished"),
    ),
    negative("scheduler_attempt_number_check", Attempt, "number"),
)

PLACEMENTS = (
    Attack("placement_rank_once", "two pods have one rank", copy(Placement)),
    *(
        Attack(
            "placement_amounts_positive", f"it holds no {column}", change(Placement, **{column: 0})
        )
        for column in ("amount_milli", "cpu_milli", "memory_mib")
    ),
    Attack(
        "placement_opened_has_uid",
        "a gate is open on no known pod",
        change(Placement, opened_at=NOON),
    ),
    Attack(
        "placement_ends_after_start",
        "a pod ends before it starts",
        change(Placement, started_at=NOON, ended_at=NOON - timedelta(seconds=1)),
    ),
    negative("scheduler_placement_rank_check", Placement, "rank"),
    Attack("span_held_once", "two pods hold one span", copy(PlacementSpan)),
    Attack("span_held_once", "two pods overlap in one slice", copy(PlacementSpan, span="[3,8)")),
    Attack("span_held_once", "a released span comes back to a taken place", _span_comes_back),
    Attack("span_on_axis", "a span is empty", change(PlacementSpan, span="empty")),
    Attack("span_on_axis", "a span begins below 0", change(PlacementSpan, span="[-1,4)")),
    Attack("span_on_axis", "a span is more than a device", change(PlacementSpan, span="[0,1001)")),
    Attack("span_on_axis", "a span has no end", change(PlacementSpan, span="[0,)")),
)

RECORDS = (
    Attack("operation_once_an_attempt", "an attempt starts twice", copy(Operation)),
    Attack("operation_kind_known", "an operation is a dance", change(Operation, kind="dance")),
    negative("scheduler_operation_failures_check", Operation, "failures"),
    *(
        negative(f"scheduler_cyclerecord_{column}_check", CycleRecord, column)
        for column in (
            "pending_count",
            "holding_count",
            "admitted_count",
            "refused_count",
            "preempted_count",
            "load_ms",
            "plan_ms",
            "apply_ms",
        )
    ),
)

ATTACKS = ATTEMPTS + PLACEMENTS + RECORDS
