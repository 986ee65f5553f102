"""Budgets in hard mode for which a plan stops work: which one, as that work is told, and that they
are used up from then on.

Who is stopped is in the plan (`core/stopping/used_up`), and goes as whoever is preempted does.
"""

from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

from scheduler.core.bounds.budgets import HOUR_S
from scheduler.core.plan import Preempt
from scheduler.core.reasons import PreemptRule
from scheduler.core.snapshot import BudgetView, Snapshot
from scheduler.core.stopping.used_up import stopping
from scheduler.core.units import ONE_MILLI, WorkloadId
from tenants.services import budgets


def by_victim(
    snapshot: Snapshot, preempts: Iterable[Preempt]
) -> dict[WorkloadId, tuple[BudgetView, ...]]:
    """For each that is stopped for a budget: those over it that are used up, the nearest first."""
    victims = {each.victim for each in preempts if each.rule is PreemptRule.BUDGET}
    if not victims:
        return {}
    over = stopping(snapshot)
    return {held.id: over[held.project] for held in snapshot.holding if held.id in victims}


def why(budget: BudgetView) -> str:
    """As who is stopped for it is told."""
    return f"because the budget of {budget.name} is used up, and stops what runs on GPUs"


def mark(over: Iterable[BudgetView], *, at: datetime) -> None:
    """Work was told to go for these: they are used up to the end of their period, or until they
    are raised, whatever is counted anew. In the caller's transaction."""
    limits_h = {UUID(budget.id): budget.limit_milli_s // (HOUR_S * ONE_MILLI) for budget in over}
    if limits_h:
        budgets.mark_used_up(limits_h=limits_h, at=at)
