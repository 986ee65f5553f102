"""What must hold of a plan, before it is carried out."""

from scheduler.core.plan import Plan
from tests.core.reference import (
    better,
    budgets,
    gangs,
    guarded,
    keeps,
    moves,
    quotas,
    reasons,
    starts,
    stops,
    windows,
)
from tests.core.reference.tried import decided
from tests.core.reference.world import World


def check(world: World, made: Plan) -> None:
    world.tried.update(decided(made))
    stops.check(world, made)
    then, rest = stops.obeyed(world, made)
    laws = starts, gangs, quotas, keeps, guarded, windows, budgets, moves, better, reasons
    for law in laws:
        law.check(then, rest)
