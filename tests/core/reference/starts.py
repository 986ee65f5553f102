"""Who starts, grows, and is evicted for: whole gangs, on what takes them, of who may start."""

from scheduler.core.plan import Admit, Grow, Plan, Preempt
from scheduler.core.reasons import PreemptRule, ReasonCode
from scheduler.core.snapshot import HeldView, HoldingView
from scheduler.core.units import WorkloadId
from tests.core.reference import portions
from tests.core.reference.quotas import evicting, stopping, waits
from tests.core.reference.tried import Case
from tests.core.reference.world import World


def check(world: World, made: Plan) -> None:
    decided = [
        *(a.workload for a in made.admits),
        *(id for hold in made.holds for id in hold.workloads),
    ]
    assert sorted(decided) == sorted(world.waiting), "each is decided once"
    for admit in made.admits:
        _check_gang(world, admit)
    for grow in made.grows:
        _check_growth(world, grow)
    _check_evictions(world, made)
    _check_nothing_is_done_for_who_may_not_start(world, made)
    _count_spared(world, made)


def may_start(world: World, workload: WorkloadId) -> bool:
    """By the queues of its project and of those above it, and its gate."""
    return not world.held_above(world.asks[workload].project) and workload not in world.shut


def _check_gang(world: World, admit: Admit) -> None:
    asked = world.asks[admit.workload]
    (pod_set,) = asked.pod_sets
    assert pod_set.min_count <= len(admit.places) <= pod_set.count, "a gang in part"
    assert [place.rank for place in admit.places] == list(range(len(admit.places)))
    world.tried[Case.PART] += len(admit.places) < pod_set.count
    assert may_start(world, admit.workload), "from a held queue, or behind a gate"
    for place in admit.places:
        assert world.nodes[place.node][0] == admit.cluster, "a gang over two clusters"
        portions.check(world, asked, place)


def _check_growth(world: World, grow: Grow) -> None:
    held, asked = world.holding[grow.workload], world.asks[grow.workload]
    (pod_set,) = asked.pod_sets
    assert not held.releasing, "grew on its way out"
    assert not any(p.leaving for p in held.placements), "grew while pods of it go"
    assert may_start(world, grow.workload), "grew in a held queue"
    assert len(held.placements) + len(grow.places) <= pod_set.count, "grew too large"
    for place in grow.places:
        assert world.nodes[place.node][0] == held.cluster, "grew into another cluster"
        assert {place.flavor} == {p.flavor for p in held.placements}, "of another flavor"
        portions.check(world, asked, place)


def _check_evictions(world: World, made: Plan) -> None:
    assert len({p.victim for p in made.preempts}) == len(made.preempts), "evicted twice"
    for shrink in made.shrinks:
        held, asked = world.holding[shrink.victim], world.asks[shrink.victim]
        beyond = {pod.id for pod in surplus(held, asked.pod_sets[0].min_count)}
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
            of = {placement.flavor for placement in victim.placements}
            assert of <= {*by.pod_sets[0].flavors}, "reclaimed what is not asked for"


def surplus(held: HoldingView, least: int) -> list[HeldView]:
    """What may go by itself of what stays: pods beyond its least, of the highest ranks."""
    staying = [pod for pod in held.placements if not pod.leaving]
    return sorted(staying, key=lambda pod: pod.rank)[least:]


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
