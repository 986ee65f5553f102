"""Budgets: under one that is used up nothing starts on devices, and one in safe mode covers what
starts to its end."""

from fractions import Fraction

from scheduler.core.plan import Plan
from scheduler.core.snapshot import BudgetView
from tests.core.reference.tried import Case
from tests.core.reference.world import World, begun, devices_milli, ends_at, path


def check(world: World, made: Plan) -> None:
    for member, budget in world.budgets.items():
        if budget.ends_at > world.at:
            _check(world, made, member, budget)


def coming_milli_s(world: World, member: str, budget: BudgetView) -> Fraction:
    """What runs below the member may use still before the budget ends."""
    return sum(
        (
            devices_milli(held.placements)
            * (min(ends_at(held) or budget.ends_at, budget.ends_at) - world.at)
            for held in world.holding.values()
            if member in path(held.project)
        ),
        Fraction(0),
    )


def _check(world: World, made: Plan, member: str, budget: BudgetView) -> None:
    left = budget.limit_milli_s - world.used[member]
    coming, starts = coming_milli_s(world, member, budget), False
    for workload, places in begun(made):
        asked, rate = world.asks[workload], devices_milli(places)
        if member not in path(asked.project) or not rate:
            continue
        starts = True
        assert left > 0, "starts under a budget that is used up"
        assert asked.run_time_limit_s is not None or not budget.safe, "has no end to be covered"
        end = world.at + (asked.run_time_limit_s or budget.ends_at)
        if workload in world.holding:
            end = ends_at(world.holding[workload]) or budget.ends_at
        if budget.safe:
            world.tried[Case.COVERED_GROWTH if workload in world.holding else Case.COVERED] += 1
        coming += rate * (min(end, budget.ends_at) - world.at)
    assert not starts or not budget.safe or coming <= left, (
        "starts, and a budget does not cover it"
    )


def check_kept(world: World) -> None:
    """At any time: one in safe mode is never used beyond its limit."""
    for member, budget in world.budgets.items():
        within = world.used[member] <= budget.limit_milli_s
        assert within or not budget.safe, f"the budget of {member} is overdrawn"
