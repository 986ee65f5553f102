"""Quotas, borrowing and guarantees in the tree of cohorts and projects."""

from collections import Counter
from collections.abc import Mapping

from scheduler.core.plan import Plan, Preempt, Shrink
from scheduler.core.reasons import PreemptRule, ReasonCode
from scheduler.core.snapshot import HeldView, HoldingView, PendingView
from scheduler.core.units import FlavorId, WorkloadId
from tests.core.build import milli
from tests.core.reference.portions import least_milli
from tests.core.reference.tried import Case
from tests.core.reference.world import FLEET, MOVES, PARENTS, World, begun, children, path

type Usage = Mapping[tuple[str, str], int]
"""By project and flavor."""


def check(world: World, made: Plan) -> None:
    _check_limits(world, made)
    _check_guarantees(world, made)
    _check_firm(world, made)


def usage(world: World, *, releasing: bool = True) -> Counter[tuple[str, str]]:
    """Without what is `releasing` if that is said."""
    used: Counter[tuple[str, str]] = Counter()
    for held in world.holding.values():
        for placement in held.placements:
            if releasing or not (held.releasing or placement.leaving):
                used[held.project, placement.flavor] += placement.amount_milli
    return used


def used(world: World, member: str, flavor: str, usage: Usage) -> int:
    """What it uses of its own, and what its members use beyond what they keep."""
    below = sum(
        max(0, used(world, child, flavor, usage) - _kept(world, child, flavor))
        for child in children(member)
    )
    return usage.get((member, flavor), 0) + below


def most(world: World, member: str, flavor: str) -> int | None:
    """What it has and may borrow; None is no limit."""
    if member == FLEET:
        return capacity(world, member, flavor)
    quota = world.quotas.get((member, flavor))
    if quota is None or quota.borrow is None:
        return None
    return capacity(world, member, flavor) + milli(quota.borrow)


def waits(made: Plan) -> set[WorkloadId]:
    """Those for which something was evicted, or is on its way back."""
    waiting = ReasonCode.WAITING_FOR_PREEMPTION
    return {id for id, reason in made.reasons().items() if reason.code is waiting}


def evicting(made: Plan) -> list[Preempt | Shrink]:
    """What ends for others, and does not start again at once."""
    return [each for each in stopping(made) if each.rule not in MOVES]


def stopping(made: Plan) -> list[Preempt | Shrink]:
    """What ends, whole or in part."""
    return [*made.preempts, *made.shrinks]


def may_hold(world: World, made: Plan, project: str, flavor: str, amount_milli: int) -> bool:
    """So much more of the flavor, once the plan is carried out."""
    holds = usage(world) + _started(world, made) + Counter({(project, flavor): amount_milli})
    return may_use(world, holds, project, flavor)


def may_use(world: World, holds: Usage, project: str, flavor: str) -> bool:
    """Whether the project may hold what it does then, and those above it."""
    bounds = ((member, most(world, member, flavor)) for member in (FLEET, *path(project)))
    return (project, flavor) in world.quotas and all(
        bound is None or used(world, member, flavor, holds) <= bound for member, bound in bounds
    )


def _nominal(world: World, member: str, flavor: str) -> int:
    quota = world.quotas.get((member, flavor))
    return milli(quota.nominal) if quota else 0


def capacity(world: World, member: str, flavor: str) -> int:
    """Its nominal, and what its members lend."""
    lent = sum(
        capacity(world, child, flavor) - _kept(world, child, flavor) for child in children(member)
    )
    return _nominal(world, member, flavor) + lent


def _kept(world: World, member: str, flavor: str) -> int:
    quota = world.quotas.get((member, flavor))
    if quota is None or quota.lend is None:
        return 0
    return max(0, capacity(world, member, flavor) - milli(quota.lend))


def _started(world: World, made: Plan) -> Counter[tuple[str, str]]:
    """With who moves up, which has its new places beside the old ones."""
    more: Counter[tuple[str, str]] = Counter()
    up = {p.victim for p in made.preempts if p.rule is PreemptRule.BETTER}
    landing = ((each.workload, each.places) for each in made.landings if each.workload in up)
    for workload, places in (*begun(made), *landing):
        for place in places:
            more[world.asks[workload].project, place.flavor] += place.amount_milli
    return more


def _check_limits(world: World, made: Plan) -> None:
    """No start raises the use of a member beyond what it has and may borrow."""
    before, started = usage(world), _started(world, made)
    after = before + started
    for project, flavor in started:
        assert (project, flavor) in world.quotas, "started without any quota"
    for flavor in {flavor for _, flavor in started}:
        for member in (FLEET, *PARENTS):
            then, now = (used(world, member, flavor, of) for of in (before, after))
            bound = most(world, member, flavor)
            assert now <= then or bound is None or now <= bound, f"{member} has too much"
            if bound is not None and now > then:
                world.tried[Case.LIMIT_USED_UP if now == bound else Case.LIMIT] += 1


def _check_guarantees(world: World, made: Plan) -> None:
    """Who is reclaimed from keeps what is guaranteed, and so does each above it that is not
    above who reclaims; that one stays within what is guaranteed to it, or to one above it that
    is not above whom it takes from.

    What a project waits for counts for it, so of one that waits too nothing is said here.
    """
    waiting = {above for id in waits(made) for above in path(world.asks[id].project)}
    kept, left = usage(world, releasing=False), usage(world, releasing=False)
    left.update(_started(world, made))
    for preempt in evicting(made):
        _take(world, preempt, left)
        if preempt.rule is PreemptRule.PRIORITY:
            _take(world, preempt, kept)
    for preempt in evicting(made):
        if preempt.rule is PreemptRule.PRIORITY:
            continue
        victim, by = world.holding[preempt.victim], world.asks[preempt.preemptor]
        needs = _needs(by, {pod.flavor for pod in gone(preempt, victim)})
        then = kept + Counter({(by.project, flavor): least for flavor, least in needs.items()})
        mine, theirs = path(by.project), path(victim.project)
        assert any(
            all(
                used(world, member, flavor, then) <= capacity(world, member, flavor)
                for flavor in needs
            )
            for member in mine
            if member not in theirs
        ), "reclaimed beyond what is guaranteed"
        for flavor in needs.keys() & {pod.flavor for pod in gone(preempt, victim)}:
            for member in theirs:
                if member not in mine and member not in waiting:
                    world.tried[Case.GUARANTEE] += 1
                    stays = used(world, member, flavor, left)
                    assert stays >= capacity(world, member, flavor), "reclaimed from a guarantee"


def _needs(by: PendingView, given: set[FlavorId]) -> Counter[str]:
    """What its least start takes of each flavor: of several that a pod set accepts, of what was
    given for it."""
    needs: Counter[str] = Counter()
    for pod_set in by.pod_sets:
        [flavor, *_] = [f for f in pod_set.flavors if f in given] or pod_set.flavors
        needs[flavor] += least_milli(pod_set, flavor)
    return needs


def _check_firm(world: World, made: Plan) -> None:
    """What may not be preempted starts, and grows, on nominal of its project, or of one above
    it, that is not used up by what others below that one use beyond their own."""
    then = usage(world, releasing=False)
    for workload, places in begun(made):
        asked, flavors = world.asks[workload], {place.flavor for place in places}
        for place in places:
            then[asked.project, place.flavor] += place.amount_milli
        assert asked.preemptible or any(
            all(_drawn(world, member, f, then) <= _nominal(world, member, f) for f in flavors)
            for member in path(asked.project)
        ), "it may not be preempted, and borrows"


def _drawn(world: World, member: str, flavor: str, usage: Usage) -> int:
    beyond = (
        _drawn(world, child, flavor, usage) - _nominal(world, child, flavor)
        for child in children(member)
    )
    return usage.get((member, flavor), 0) + sum(more for more in beyond if more > 0)


def _take(world: World, preempt: Preempt | Shrink, used: Counter[tuple[str, str]]) -> None:
    victim = world.holding[preempt.victim]
    for placement in gone(preempt, victim):
        used[victim.project, placement.flavor] -= placement.amount_milli


def gone(preempt: Preempt | Shrink, victim: HoldingView) -> list[HeldView]:
    """The pods that go by it."""
    if isinstance(preempt, Shrink):
        return [pod for pod in victim.placements if pod.id in preempt.placements]
    return [pod for pod in victim.placements if not pod.leaving]
