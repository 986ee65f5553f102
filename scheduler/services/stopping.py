"""Who would be stopped at once if a budget were hard: worked out by the core on what there is now,
and stored nowhere."""

from dataclasses import dataclass, replace
from datetime import datetime

from scheduler.core.faults import faults
from scheduler.core.sound import sound
from scheduler.core.stopping.used_up import found
from scheduler.selectors.budgets import Standing, standings, view
from scheduler.selectors.load import load
from scheduler.services import asking
from scheduler.services.lowering import Loss, losses
from tenants.access import Actor
from tenants.models import BudgetMode, Period, Project, Tenant
from tenants.services import budgets
from tenants.services.budgets import Terms


@dataclass(frozen=True, slots=True)
class Stops:
    """`losses` in the order in which they would go. `standing` is how the budget would stand, None
    on other days than those of one for once."""

    losses: tuple[Loss, ...]
    standing: Standing | None

    @property
    def lost_milli_s(self) -> int:
        return sum(loss.lost_milli_s for loss in self.losses)


def preview(
    *,
    actor: Actor,
    of: Project | Tenant,
    period: Period,
    terms: Terms,
    at: datetime,
    version: int | None = None,
) -> Stops:
    """If the budget of the project or tenant for such periods were this, from now on.

    Raises what `budgets.set_budget` does, and TooOften.
    """
    budget = budgets.as_set(actor=actor, of=of, period=period, terms=terms, version=version)
    standing = next(iter(standings(budgets=[budget], at=at)), None)
    if standing is None or standing.left_milli_s or terms.mode != BudgetMode.HARD:
        return Stops((), standing)
    with asking.turn(actor=actor, at=at):
        snapshot = load(at=at).snapshot
        alone = replace(sound(snapshot, faults(snapshot)), budgets=(view(standing),))
        return Stops(losses(found(alone)), standing)
