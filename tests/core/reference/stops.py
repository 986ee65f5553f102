"""What a plan takes back for nobody: what lies idle, what a budget stops that is used up, and what
passes an enforced quota."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from scheduler.core.plan import Plan
from scheduler.core.reasons import PreemptRule
from scheduler.core.snapshot import HeldView, HoldingView
from scheduler.core.units import WorkloadId
from tests.core.reference.moves import lost_milli_s
from tests.core.reference.quotas import most, usage, used
from tests.core.reference.starts import surplus
from tests.core.reference.tried import Case
from tests.core.reference.world import World, devices_milli, path

FOR_NOBODY = {PreemptRule.QUOTA, PreemptRule.BUDGET}


def obeyed(world: World, made: Plan) -> tuple[World, Plan]:
    """When all these have been told to go: the world then, and the plan made for it."""
    stops = Plan(
        frees=made.frees,
        preempts=tuple(p for p in made.preempts if p.rule in FOR_NOBODY),
        shrinks=tuple(s for s in made.shrinks if s.rule in FOR_NOBODY),
    )
    rest = replace(
        made,
        frees=(),
        preempts=tuple(p for p in made.preempts if p.rule not in FOR_NOBODY),
        shrinks=tuple(s for s in made.shrinks if s.rule not in FOR_NOBODY),
    )
    return world.after(stops), rest


def check(world: World, made: Plan) -> None:
    freed = set(made.frees)
    assert len(freed) == len(made.frees), "freed twice"
    assert freed == set(_idle(world)), "freed is who was idle for too long, and was told"
    idle_gone = world.after(Plan(frees=made.frees))
    by_budget = [p for p in made.preempts if p.rule is PreemptRule.BUDGET]
    stopped = [p.victim for p in by_budget]
    assert sorted(stopped) == sorted(_used_up(idle_gone)), "stopped is what a budget stops"
    assert not [s for s in made.shrinks if s.rule is PreemptRule.BUDGET], "stopped in part"
    then = world.after(Plan(frees=made.frees, preempts=tuple(by_budget)))
    _check_enforced(then, obeyed(world, made)[0])


def _used_up(world: World) -> Iterator[WorkloadId]:
    """Who holds devices under a budget in hard mode of which nothing is left."""
    over = {
        member
        for member, budget in world.budgets.items()
        if budget.hard and budget.ends_at > world.at
        if world.used[member] >= budget.limit_milli_s
    }
    for held, pods in world.stays():
        if over.isdisjoint(path(held.project)):
            continue
        if devices_milli(pods):
            world.tried[Case.FIRM_STOPPED] += not held.preemptible
            yield held.id
        else:
            world.tried[Case.BUDGET_ON] += 1


def _idle(world: World) -> Iterator[WorkloadId]:
    for id, held in world.holding.items() if world.policy.preemption else ():
        of = world.queues[held.project]
        if held.releasing or not held.preemptible or of.idle_timeout_s is None:
            continue
        if held.idle_since is None or held.idle_warned_at is None or held.started_at is None:
            continue
        idle_s, told_s = world.at - held.idle_since, world.at - held.idle_warned_at
        ran_s = world.at - held.started_at
        if (
            idle_s >= of.idle_timeout_s
            and told_s >= of.idle_warning_s
            and ran_s >= of.min_run_time_s
        ):
            yield id
        else:
            world.tried[Case.IDLE_ON] += 1


def _check_enforced(before: World, after: World) -> None:
    """Who goes for a quota has to: with it more would be held than the quota allows. And nothing
    stays that may go and without which less would be."""
    passed = _passed(after, ())
    was = {held.id: pods for held, pods in before.stays()}
    staying = {held.id: pods for held, pods in after.stays()}
    for id, pods in was.items():
        held, stays = before.holding[id], staying.get(id, [])
        beyond = {pod.id for pod in surplus(before, held)}
        if not stays:
            assert held.preemptible, "stopped for a quota, and is not preemptible"
            assert _is_more(_passed(after, _signed(held, pods)), passed), "stopped for no quota"
            _check_least_harm(after, held, staying)
            continue
        gone = [pod for pod in pods if pod not in stays]
        for pod in gone:
            assert pod.id in beyond, "shrunk for a quota by what it has to keep"
            assert _is_more(_passed(after, _signed(held, [pod])), passed), "shrunk for no quota"
        may_go = stays if held.preemptible else surplus(after, after.holding[id])
        without = _passed(after, _signed(held, may_go, sign=-1))
        assert not _is_more(passed, without), "it stays, and an enforced quota is passed"
        under = {(member, flavor) for member, flavor, _ in _due(after)}
        limited = {(above, pod.flavor) for above in path(held.project) for pod in may_go}
        after.tried[Case.ENFORCED] += bool(under & limited)
        after.tried[Case.SPARED] += held.preemptible and any(
            _harm(before.holding[other], after.at) > _harm(held, after.at)
            for other in was.keys() - staying.keys()
        )


def _check_least_harm(
    after: World, gone: HoldingView, staying: Mapping[WorkloadId, Sequence[HeldView]]
) -> None:
    """None like it stays that has lower priority, or loses less by it."""
    alike = (held for held in after.holding.values() if _is_like(after, held, gone))
    for held in alike:
        if len(staying.get(held.id, ())) == len(held.placements):
            after.tried[Case.ENFORCED_ORDER] += 1
            assert _harm(gone, after.at) <= _harm(held, after.at), "stopped before one like it"


def _is_like(world: World, held: HoldingView, gone: HoldingView) -> bool:
    """Of the same project, as much of the same flavor, of which no pod goes by itself."""
    alike = held.preemptible and held.project == gone.project
    return (
        alike
        and dict(_signed(held, held.placements)) == dict(_signed(gone, gone.placements))
        and all(
            not surplus(world, each) and not any(pod.leaving for pod in each.placements)
            for each in (held, gone)
        )
    )


def _harm(held: HoldingView, at: int) -> tuple[int, int, int, WorkloadId]:
    return held.priority, lost_milli_s(held, at), len(held.placements), held.id


def _passed(world: World, also: Iterable[tuple[tuple[str, str], int]]) -> list[int]:
    """By how much each quota that is enforced by now is passed once all has left that leaves."""
    holds = usage(world, releasing=False)
    for key, amount in also:
        holds[key] += amount
    found = []
    for member, flavor, bound in _due(world):
        found.append(max(0, used(world, member, flavor, holds) - bound))
    return found


def _due(world: World) -> Iterator[tuple[str, str, int]]:
    """The quotas that are enforced by now, and what each allows."""
    for (member, flavor), since in sorted(world.enforced.items()):
        bound = most(world, member, flavor)
        if since <= world.at and bound is not None:
            yield member, flavor, bound


def _is_more(some: list[int], others: list[int]) -> bool:
    return any(one > other for one, other in zip(some, others, strict=True))


def _signed(
    held: HoldingView, pods: Iterable[HeldView], *, sign: int = 1
) -> Iterator[tuple[tuple[str, str], int]]:
    amounts: Counter[tuple[str, str]] = Counter()
    for pod in pods:
        amounts[held.project, pod.flavor] += sign * pod.amount_milli
    yield from amounts.items()
