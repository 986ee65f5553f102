"""Budgets in hard mode for which a plan stops work: which one, as that work is told, and that they
are used up from then on.

Who is stopped is in the plan (`core/used_up`), and goes as whoever is preempted does.
"""

from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

from scheduler.core.budgets import HOUR_S
from scheduler.core.plan import Preempt
from scheduler.core.reasons import PreemptRule
from scheduler.core.snapshot import Snapshot
from scheduler.core.units import ONE_MILLI, WorkloadId
from scheduler.core.used_up import stopping
from tenants.services import budgets


def why(snapshot: Snapshot, preempts: Iterable[Preempt]) -> dict[WorkloadId, str]:
    """For each that is stopped for a budget: which one that is."""
    over, projects = stopping(snapshot), {held.id: held.project for held in snapshot.holding}
    return {
        each.victim: (
            f"because the budget of {over[projects[each.victim]][0].name} is used up, and stops"
            " what runs on GPUs"
        )
        for each in preempts
        if each.rule is PreemptRule.BUDGET
    }


def mark(*, snapshot: Snapshot, stopped: Iterable[WorkloadId], at: datetime) -> None:
    """These are told to go: their budgets are used up to the end of their period, or until they
    are raised, whatever is counted anew. In the caller's transaction."""
    over, projects = stopping(snapshot), {held.id: held.project for held in snapshot.holding}
    limits_h = {
        UUID(budget.id): budget.limit_milli_s // (HOUR_S * ONE_MILLI)
        for workload in stopped
        for budget in over[projects[workload]]
    }
    if limits_h:
        budgets.mark_used_up(limits_h=limits_h, at=at)
