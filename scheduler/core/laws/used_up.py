"""What must hold of a plan that stops work for budgets, checked apart from the code that does (see
`invariants`)."""

from collections.abc import Iterator

from scheduler.core.laws.budgets import below, part
from scheduler.core.laws.enforce import gone
from scheduler.core.plan import Plan
from scheduler.core.reasons import PreemptRule
from scheduler.core.snapshot import Snapshot
from scheduler.core.stopping.enforce import MOST_VICTIMS


def used_up(snapshot: Snapshot, plan: Plan) -> Iterator[str]:
    """Under a budget in hard mode that is used up all that holds devices goes, but for the rest
    of very many; and nobody else goes for a budget, nor pods by themselves."""
    parts = {flavor.id: part(flavor) for flavor in snapshot.flavors}
    under: set[str] = set()
    for budget in snapshot.budgets:
        is_over = budget.used_milli_s >= budget.limit_milli_s
        if budget.hard and is_over and budget.ends_at > snapshot.at:
            under |= below(snapshot, budget)
    wanted = {
        held.id
        for held in snapshot.holding
        if held.project in under and not held.releasing
        if any(parts.get(p.flavor) for p in held.placements if not p.leaving)
    }
    whole, pods = gone(plan, PreemptRule.BUDGET)
    for id in sorted(whole - wanted):
        yield f"{id} is stopped for a budget, and holds no devices under one that stops it"
    for id in sorted(wanted - whole) if len(whole) < MOST_VICTIMS else ():
        yield f"{id} holds devices under a budget that is used up, and is not stopped"
    for pod in sorted(pods):
        yield f"the pod {pod} is stopped by itself for a budget"
