"""What must hold of the pods that come and go in a plan, checked apart from the code that made it.

Part of `invariants`, which asks that what comes has room, quota and stays below the caps.
"""

from collections import Counter
from collections.abc import Collection, Iterator

from scheduler.core.plan import Grow, Place, Plan, Shrink
from scheduler.core.reasons import PreemptRule, ReasonCode
from scheduler.core.snapshot import (
    HeldView,
    HoldingView,
    PendingView,
    SetTopologyView,
    Snapshot,
    TopologyView,
)
from scheduler.core.units import PlacementId, PodSetId, WorkloadId


def begun(plan: Plan) -> list[tuple[WorkloadId, tuple[Place, ...]]]:
    """What starts, and what comes to what runs."""
    return [(a.workload, a.places) for a in plan.admits] + [
        (g.workload, g.places) for g in plan.grows
    ]


def lost(
    snapshot: Snapshot, plan: Plan, rule: PreemptRule, by: WorkloadId | None = None
) -> Iterator[tuple[HoldingView, HeldView]]:
    """What goes by the rule, with whom it is of; for all, or for one that waits."""
    holding = {h.id: h for h in snapshot.holding}
    for preempt in plan.preempts:
        if preempt.rule is rule and by in (None, preempt.preemptor) and preempt.victim in holding:
            victim = holding[preempt.victim]
            yield from ((victim, placement) for placement in victim.placements)
    for shrink in plan.shrinks:
        if shrink.rule is rule and by in (None, shrink.preemptor) and shrink.victim in holding:
            victim = holding[shrink.victim]
            pods = (p for p in victim.placements if p.id in shrink.placements)
            yield from ((victim, placement) for placement in pods)


def elastic(snapshot: Snapshot, plan: Plan) -> Iterator[str]:
    """A sentence for each broken law."""
    holding = {h.id: h for h in snapshot.holding}
    pending = {p.id: p for p in snapshot.pending}
    waits = {
        id for id, why in plan.reasons().items() if why.code is ReasonCode.WAITING_FOR_PREEMPTION
    }
    evicted = {preempt.victim for preempt in plan.preempts}
    shrunk = Counter((s.victim, pod) for s in plan.shrinks for pod in s.placements)
    for (workload, pod), times in shrunk.items():
        if times > 1:
            yield f"pod {pod} of {workload} goes {times} times"
    for shrink in plan.shrinks:
        victim, by = holding.get(shrink.victim), pending.get(shrink.preemptor)
        if victim is None or by is None or by.id not in waits:
            yield f"{shrink.victim} shrinks for {shrink.preemptor}, which does not wait"
            continue
        if victim.releasing or victim.id in evicted:
            yield f"{victim.id} shrinks and goes as a whole"
        yield from _shrunk(victim, by, shrink)
    for workload in {s.victim for s in plan.shrinks} & holding.keys():
        gone = {pod for of, pod in shrunk if of == workload}
        yield from _least(holding[workload], gone)
    for grow in plan.grows:
        grown = holding.get(grow.workload)
        if grown is None:
            yield f"{grow.workload} grows and does not run"
            continue
        if grown.id in evicted or grown.id in {s.victim for s in plan.shrinks}:
            yield f"{grown.id} grows and gives something up"
        yield from _grown(snapshot, grown, grow)


def _shrunk(victim: HoldingView, by: PendingView, shrink: Shrink) -> Iterator[str]:
    here = {p.id for p in victim.placements if not p.leaving}
    if not shrink.placements or not here.issuperset(shrink.placements):
        yield f"{victim.id} gives up pods that it does not have"
    own = victim.project == by.project
    if shrink.rule is PreemptRule.PRIORITY and not (own and victim.priority < by.priority):
        yield f"{victim.id} shrinks by priority and is not of lower priority there"
    if shrink.rule is PreemptRule.RECLAIM and own:
        yield f"{victim.id} is reclaimed from by its own project"


def _least(victim: HoldingView, gone: Collection[PlacementId]) -> Iterator[str]:
    for pod_set in victim.pod_sets:
        here = [p for p in victim.placements if p.pod_set == pod_set.id and not p.leaving]
        left = [p for p in here if p.id not in gone]
        if len(left) < len(here) and len(left) < pod_set.min_count:
            yield f"{victim.id} keeps {len(left)} pods of {pod_set.id}"
    known = {pod_set.id for pod_set in victim.pod_sets}
    if any(p.id in gone and p.pod_set not in known for p in victim.placements):
        yield f"{victim.id} gives up pods of an unknown pod set"


def _grown(snapshot: Snapshot, held: HoldingView, grow: Grow) -> Iterator[str]:
    """What is new is like what runs, in the same cluster and domain, and not too much."""
    open_to = {queue.project for queue in snapshot.queues if not queue.held}
    on = {n.id: n for c in snapshot.clusters if c.id == held.cluster and c.usable for n in c.nodes}
    if held.project not in open_to:
        yield f"{held.id} grows, and the queue of {held.project} is not open"
    if held.started_at is None or held.releasing or any(p.leaving for p in held.placements):
        yield f"{held.id} grows before all of it runs, or while something of it leaves"
    if [place.rank for place in grow.places] != list(range(len(grow.places))) or not grow.places:
        yield f"the ranks of what {held.id} gets do not count from 0"
    for place in grow.places:
        like = {
            (p.flavor, p.amount_milli, p.cpu_milli, p.memory_mib)
            for p in held.placements
            if p.pod_set == place.pod_set
        }
        if like != {(place.flavor, place.amount_milli, place.cpu_milli, place.memory_mib)}:
            yield f"a new pod of {held.id} is not like the others of {place.pod_set}"
        if place.node not in on:
            yield f"{held.id} grows outside of cluster {held.cluster}"
    counts = Counter([p.pod_set for p in held.placements] + [p.pod_set for p in grow.places])
    for pod_set in held.pod_sets:
        if counts[pod_set.id] > pod_set.count:
            yield f"{held.id} grows to {counts[pod_set.id]} pods of {pod_set.id}"
    asked: list[tuple[TopologyView | SetTopologyView | None, Collection[PodSetId]]] = [
        (held.topology, {pod_set.id for pod_set in held.pod_sets}),
        *((pod_set.topology, {pod_set.id}) for pod_set in held.pod_sets),
    ]
    for topology, of in asked:
        if topology is not None and topology.required and topology.level in snapshot.levels:
            depth = snapshot.levels.index(topology.level) + 1
            had = [p.node for p in held.placements if p.pod_set in of]
            gets = [p.node for p in grow.places if p.pod_set in of]
            where = {on[node].topology[:depth] for node in had if node in on}
            new = {on[node].topology[:depth] for node in gets if node in on}
            if not new <= where or any(not path or not path[-1] for path in new):
                yield f"{held.id} grows out of its {topology.level}"
