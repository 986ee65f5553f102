"""What no plan may do to budgets: a part of `invariants`."""

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction

from scheduler.core.node import mig
from scheduler.core.plan import Place, Plan
from scheduler.core.snapshot import (
    BudgetView,
    FlavorKind,
    FlavorView,
    HeldView,
    HoldingView,
    PendingView,
    Snapshot,
)
from scheduler.core.units import FlavorId

type _Holds = tuple[PendingView | HoldingView, Iterable[Place | HeldView]]


def budgets(snapshot: Snapshot, plan: Plan) -> Iterator[str]:
    """What starts or grows on devices is not under a budget that is used up; under one in safe
    mode it declares its end, and goes with all that runs into what is left."""
    pending = {p.id: p for p in snapshot.pending}
    holding = {h.id: h for h in snapshot.holding}
    admits = [admit for admit in plan.admits if admit.workload in pending]
    begun: list[_Holds] = [(pending[admit.workload], admit.places) for admit in admits]
    begun += [(holding[grow.workload], grow.places) for grow in plan.grows]
    parts = {flavor.id: part(flavor) for flavor in snapshot.flavors}
    for budget in snapshot.budgets:
        if budget.ends_at <= snapshot.at:
            continue
        under = below(snapshot, budget)
        new = [(of, holds) for of, holds in begun if of.project in under]
        added = sum((_milli_s(snapshot.at, budget, parts, *each) for each in new), Fraction(0))
        if not added:
            continue
        left = budget.limit_milli_s - budget.used_milli_s
        if left <= 0:
            yield f"the budget {budget.id} is used up, and work starts"
        if not budget.safe:
            continue
        for of, holds in new:
            if of.run_time_limit_s is None and _milli_s(snapshot.at, budget, parts, of, holds):
                yield f"{of.id} starts under the budget {budget.id} and declares no run time"
        held = [(h, h.placements) for h in snapshot.holding if h.project in under]
        total = added + sum(
            (_milli_s(snapshot.at, budget, parts, *each) for each in held), Fraction(0)
        )
        if total > left:
            yield f"the budget {budget.id} has {left} left, and {float(total)} may be used"


def below(snapshot: Snapshot, budget: BudgetView) -> set[str]:
    """The projects that it is over."""
    cohorts = {budget.cohort} - {None}
    for _ in snapshot.cohorts:
        cohorts |= {cohort.id for cohort in snapshot.cohorts if cohort.parent in cohorts}
    return {
        q.project for q in snapshot.queues if q.project == budget.project or q.cohort in cohorts
    }


def _milli_s(
    at: int,
    budget: BudgetView,
    parts: Mapping[FlavorId, Fraction],
    of: PendingView | HoldingView,
    holds: Iterable[Place | HeldView],
) -> Fraction:
    """What it may use of the budget from now on."""
    ends_at = budget.ends_at
    if of.run_time_limit_s is not None:
        begins = of.started_at if isinstance(of, HoldingView) else None
        ends_at = min(ends_at, (at if begins is None else begins) + of.run_time_limit_s)
    devices = (place.amount_milli * parts.get(place.flavor, Fraction(0)) for place in holds)
    return sum(devices, Fraction(0)) * max(0, ends_at - at)


def part(flavor: FlavorView) -> Fraction:
    """Of a device, for one unit of the flavor."""
    if flavor.kind is FlavorKind.CPU:
        return Fraction(0)
    found = mig.device_equivalent(model=flavor.model, profile=flavor.profile)
    return found if flavor.profile and found is not None else Fraction(1)
