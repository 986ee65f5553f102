"""Attacks on what is kept for who is moved, and on moves that are planned."""

from scheduler.models import Defragmentation, Landing
from tests.constraints.attack import Attack, negative
from tests.constraints.moves import Sql, change, copy

ATTACKS = (
    Attack("scheduler_landing_workload_id_key", "a workload lands twice", copy(Landing)),
    Attack(
        "defragmentation_window",
        "a window ends as it begins",
        change(Defragmentation, ends_at=Sql("starts_at")),
    ),
    Attack("defragmentation_planned_once", "two are planned for a cluster", copy(Defragmentation)),
    negative("scheduler_defragmentation_budget_s_check", Defragmentation, "budget_s"),
)
