"""Who starts, grows, and is evicted for: on what takes them, of who may start."""

from scheduler.core.plan import Admit, Grow, Plan, Preempt
from scheduler.core.reasons import PreemptRule, ReasonCode
from scheduler.core.snapshot import HeldView, HoldingView
from scheduler.core.units import WorkloadId
from tests.core.reference import portions
from tests.core.reference.gangs import of_set
from tests.core.reference.quotas import evicting, gone, stopping, waits
from tests.core.reference.tried import Case
from tests.core.reference.world import World


def check(world: World, made: Plan) -> None:
    decided = [
        *(a.workload for a in made.admits),
        *(id for hold in made.holds for id in hold.workloads),
    ]
    assert sorted(decided) == sorted(world.waiting), "each is decided once"
    for admit in made.admits:
        _check_start(world, admit)
    for grow in made.grows:
        _check_growth(world, grow)
    _check_evictions(world, made)
    _check_nothing_is_done_for_who_may_not_start(world, made)
    _count_spared(world, made)


def may_start(world: World, workload: WorkloadId) -> bool:
    """By the queues of its project and of those above it, and its gate."""
    return not world.held_above(world.asks[workload].project) and workload not in world.shut


def _check_start(world: World, admit: Admit) -> None:
    asked = world.asks[admit.workload]
    assert may_start(world, admit.workload), "from a held queue, or behind a gate"
    for place in admit.places:
        assert world.nodes[place.node][0] == admit.cluster, "a gang over two clusters"
        portions.check(world, asked, place)


def _check_growth(world: World, grow: Grow) -> None:
    held, asked = world.holding[grow.workload], world.asks[grow.workload]
    assert not held.releasing, "grew on its way out"
    assert not any(p.leaving for p in held.placements), "grew while pods of it go"
    assert may_start(world, grow.workload), "grew in a held queue"
    for pod_set in asked.pod_sets:
        own, more = of_set(held.placements, pod_set), of_set(grow.places, pod_set)
        assert len(own) + len(more) <= pod_set.count, "grew too large"
        assert len({pod.flavor for pod in (*own, *more)}) == 1, "of another flavor"
    for place in grow.places:
        assert world.nodes[place.node][0] == held.cluster, "grew into another cluster"
        portions.check(world, asked, place)


def _check_evictions(world: World, made: Plan) -> None:
    assert len({p.victim for p in made.preempts}) == len(made.preempts), "evicted twice"
    for shrink in made.shrinks:
        held = world.holding[shrink.victim]
        beyond = {pod.id for pod in surplus(world, held)}
        assert beyond >= {*shrink.placements}, "shrunk by what it has to keep"
        ranks = [p.rank for p in held.placements if p.id in shrink.placements]
        assert len(ranks) == len(shrink.placements) > 0, "shrunk by pods that it has not"
    for preempt in stopping(made):
        victim, by = world.holding[preempt.victim], world.asks[preempt.preemptor]
        moves_up = preempt.rule is PreemptRule.BETTER
        assert moves_up or by.id in waits(made), "evicted for one who does not wait"
        assert not victim.releasing, "evicted before"
        if isinstance(preempt, Preempt):
            check_may_go(world, victim)
    for preempt in evicting(made):
        victim, by = world.holding[preempt.victim], world.asks[preempt.preemptor]
        if preempt.rule is PreemptRule.PRIORITY:
            assert victim.project == by.project, "by priority, of another project"
            assert victim.priority < by.priority, "by priority, and not lower"
        else:
            assert victim.project != by.project, "reclaimed from itself"
            of = {pod.flavor for pod in gone(preempt, victim)}
            asked = {flavor for pod_set in by.pod_sets for flavor in pod_set.flavors}
            assert of & asked, "reclaimed what is not asked for"


def surplus(world: World, held: HoldingView) -> list[HeldView]:
    """What may go by itself of what stays: pods beyond the least of their set, of the highest
    ranks."""
    found: list[HeldView] = []
    for pod_set in world.asks[held.id].pod_sets:
        own = [p for p in held.placements if p.pod_set == pod_set.id and not p.leaving]
        found += sorted(own, key=lambda pod: pod.rank)[pod_set.min_count :]
    return found


def check_may_go(world: World, victim: HoldingView) -> None:
    assert victim.preemptible, "stopped though it is not preemptible"
    assert has_run(world, victim), "stopped too early"


def has_run(world: World, held: HoldingView) -> bool:
    """For as long as is granted to it."""
    ran_s = world.at - (held.started_at or world.at)
    return ran_s >= world.queues[held.project].min_run_time_s


def _count_spared(world: World, made: Plan) -> None:
    """Who waits in vain, and may have been kept from it by one rule alone."""
    for id, reason in made.reasons().items() if world.policy.preemption else ():
        asked = world.asks[id]
        if not may_start(world, id) or reason.code is ReasonCode.WAITING_FOR_PREEMPTION:
            continue
        world.tried[Case.FIRM] += "guaranteed_milli" in dict(reason.numbers)
        for held in world.holding.values():
            if held.project == asked.project and held.priority < asked.priority:
                young = not has_run(world, held)
                world.tried[Case.LEAST_RUN] += held.preemptible and young
                world.tried[Case.FIRM_SPARED] += not held.preemptible and not young


def _check_nothing_is_done_for_who_may_not_start(world: World, made: Plan) -> None:
    stopped_for = {each.preemptor for each in stopping(made)}
    for id in stopped_for | waits(made) | {keep.workload for keep in made.keeps}:
        assert may_start(world, id), "room is made for what may not start"
