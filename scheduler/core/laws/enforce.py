"""What must hold of a plan that enforces quotas, checked apart from the code that does (see
`invariants`)."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from scheduler.core.laws.tree import Law, add_models
from scheduler.core.plan import Plan
from scheduler.core.quota.cohorts import Cohorts
from scheduler.core.reasons import PreemptRule
from scheduler.core.snapshot import HeldView, HoldingView, Snapshot
from scheduler.core.units import FlavorId, ProjectId


def obeyed(
    snapshot: Snapshot, plan: Plan, rule: PreemptRule = PreemptRule.QUOTA
) -> tuple[Snapshot, Plan]:
    """Once those have been told to go by the rule: the snapshot then, and the rest of the plan."""
    whole, pods = gone(plan, rule)
    holding = (
        replace(
            held,
            releasing=held.releasing or held.id in whole,
            placements=tuple(
                replace(p, leaving=True) if p.id in pods else p for p in held.placements
            ),
        )
        for held in snapshot.holding
    )
    rest = replace(
        plan,
        preempts=tuple(p for p in plan.preempts if p.rule is not rule),
        shrinks=tuple(s for s in plan.shrinks if s.rule is not rule),
    )
    return replace(snapshot, holding=tuple(holding)), rest


def enforced(snapshot: Snapshot, plan: Plan) -> Iterator[str]:
    """Who goes may, and has to: were any one of them left out, an enforced quota would be passed
    by more. None is passed as long as anything that may go would help."""
    whole, pods = gone(plan, PreemptRule.QUOTA)
    cohorts = Cohorts(cohorts=snapshot.cohorts, queues=snapshot.queues)
    due = [
        (number, flavor)
        for number, quotas in enumerate(cohorts.quotas)
        for flavor, quota in quotas.items()
        if quota.enforce_at is not None and quota.enforce_at <= snapshot.at
    ]
    then, _ = obeyed(snapshot, plan)
    after = _held(then, cohorts, due, ())
    for before, left in zip(snapshot.holding, then.holding, strict=True):
        goes = [p for p in before.placements if p.id in pods]
        if before.id in whole:
            if before.releasing or not before.preemptible:
                yield f"{before.id} may not be stopped for a quota"
            goes = [p for p in before.placements if not p.leaving]
        elif goes:
            yield from _keeps_least(left)
        units = [goes] if before.id in whole else [[pod] for pod in goes]
        for unit in units:
            if not _passed(after, _held(then, cohorts, due, [(before, p) for p in unit])):
                yield f"{before.id} goes for a quota that is kept without that"
        if left.preemptible and not left.releasing:
            stays = [(left, p) for p in left.placements if not p.leaving]
            if _passed(_held(then, cohorts, due, stays, sign=-1), after):
                yield f"{left.id} stays, and a quota that is enforced is passed"


def gone(plan: Plan, rule: PreemptRule) -> tuple[set[str], set[str]]:
    """The workloads that go by the rule, and the pods that go by themselves."""
    whole = {p.victim for p in plan.preempts if p.rule is rule}
    of = (s.placements for s in plan.shrinks if s.rule is rule)
    return set(whole), {pod for pods in of for pod in pods}


def _held(
    of: Snapshot,
    cohorts: Cohorts,
    due: list[tuple[int, FlavorId]],
    also: Sequence[tuple[HoldingView, HeldView]],
    *,
    sign: int = 1,
) -> list[int]:
    """By how much more is held of each, 0 where it is kept, without what leaves and with these, or
    without them."""
    used: Counter[tuple[ProjectId, FlavorId]] = Counter()
    for held in of.holding:
        for placement in held.placements:
            if not (held.releasing or placement.leaving):
                used[held.project, placement.flavor] += placement.amount_milli
    for held, placement in also:
        used[held.project, placement.flavor] += sign * placement.amount_milli
    add_models(of, used)
    found = []
    for number, flavor in due:
        law = Law(cohorts, flavor, used)
        most = law.most(number)
        found.append(0 if most is None else max(0, law.used(number) - most))
    return found


def _passed(less: list[int], more: list[int]) -> bool:
    """Whether any is passed by more in the second."""
    return any(before < after for before, after in zip(less, more, strict=True))


def _keeps_least(held: HoldingView) -> Iterator[str]:
    for pod_set in held.pod_sets:
        stays = [p for p in held.placements if p.pod_set == pod_set.id and not p.leaving]
        if len(stays) < pod_set.min_count:
            yield f"{held.id} keeps {len(stays)} pods of {pod_set.id} for a quota"
