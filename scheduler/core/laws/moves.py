"""What must hold of moves, checked apart from the code that makes them (see `invariants`)."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from scheduler.core.plan import Admit, Place, Plan
from scheduler.core.reasons import PreemptRule, ReasonCode
from scheduler.core.snapshot import HeldView, HoldingView, PendingView, Snapshot
from scheduler.core.units import PodSetId, WorkloadId

_LACKS = (ReasonCode.NO_FREE_CAPACITY, ReasonCode.WAITING_FOR_NODE)


def moves(snapshot: Snapshot, plan: Plan) -> Iterator[str]:
    """Whoever is moved, or has others moved for it, has places to go to, and lands once."""
    landing = {each.workload: each for each in plan.landings}
    if len(landing) != len(plan.landings):
        yield "a workload lands twice"
    known = {each.workload for each in snapshot.landings}
    moved = [p for p in plan.preempts if p.rule is PreemptRule.CONSOLIDATE]
    for preempt in moved:
        for workload in (preempt.victim, preempt.preemptor):
            if workload not in landing or workload in known:
                yield f"{workload} is moved, or has {preempt.victim} moved, and lands nowhere"
    up = [p for p in plan.preempts if p.rule is PreemptRule.BETTER]
    yield from _up(snapshot, plan, [p.victim for p in up])
    new = {workload for p in moved + up for workload in (p.victim, p.preemptor)}
    for workload in landing.keys() - known - new:
        yield f"{workload} lands, and nobody is moved"
    staying = {h.id for h in snapshot.holding if not h.releasing} - {
        p.victim for p in plan.preempts
    }
    started = {admit.workload for admit in plan.admits}
    for workload in landing.keys() & (staying | started):
        yield f"{workload} lands, and runs"


def _up(snapshot: Snapshot, plan: Plan, victims: list[WorkloadId]) -> Iterator[str]:
    """Who moves to better flavors has asked for it, and gets no worse one; nobody waits for any of
    its new model."""
    holding = {held.id: held for held in snapshot.holding}
    landing = {each.workload: each for each in plan.landings}
    known = {each.workload for each in snapshot.landings}
    models = {flavor.id: flavor.model for flavor in snapshot.flavors}
    reasons = plan.reasons()
    wanted = {
        models.get(flavor)
        for pending in snapshot.pending
        if pending.id in reasons and reasons[pending.id].code in _LACKS
        for pod_set in pending.pod_sets
        for flavor in pod_set.flavors
    }
    granted = {queue.project: queue.min_run_time_s for queue in snapshot.queues}
    for id in victims:
        held, to = holding.get(id), landing.get(id)
        if held is None or to is None or id in known:
            yield f"{id} moves up, and has no new place"
            continue
        ran_s = -1 if held.started_at is None else snapshot.at - held.started_at
        if not (held.move_to_better and held.preemptible) or held.releasing or ran_s < 0:
            yield f"{id} moves up, and may not be moved"
        if ran_s < granted.get(held.project, 0):
            yield f"{id} moves up before it has run for its least time"
        had, gets = _ranks(held, held.placements), _ranks(held, to.places)
        counts = Counter(p.pod_set for p in held.placements)
        if counts != Counter(p.pod_set for p in to.places):
            yield f"{id} moves up with other pods than it has"
        elif any(gets[each] > had[each] for each in had) or gets == had:
            yield f"{id} moves, and not up"
        if wanted & {models.get(place.flavor) for place in to.places}:
            yield f"{id} moves up to what somebody waits for"


def _ranks(
    held: HoldingView, places: tuple[HeldView, ...] | tuple[Place, ...]
) -> dict[PodSetId, int]:
    """By pod set, the last in its order of the flavors of these places."""
    accepted = {pod_set.id: pod_set.flavors for pod_set in held.pod_sets}
    found: dict[PodSetId, int] = {}
    for place in places:
        of = accepted.get(place.pod_set, ())
        rank = of.index(place.flavor) if place.flavor in of else len(of)
        found[place.pod_set] = max(rank, found.get(place.pod_set, 0))
    return found


def landed(snapshot: Snapshot, plan: Plan) -> tuple[Snapshot, Plan]:
    """When all that leaves has left: the snapshot then, and the plan in which they start."""
    gone = {h.id for h in snapshot.holding if h.releasing} | {p.victim for p in plan.preempts}
    back = tuple(_again(held) for held in snapshot.holding if held.id in gone)
    pods = {pod for shrink in plan.shrinks for pod in shrink.placements}
    staying = tuple(
        replace(h, placements=tuple(p for p in h.placements if not p.leaving and p.id not in pods))
        for h in snapshot.holding
        if h.id not in gone
    )
    then = replace(snapshot, holding=staying, pending=(*snapshot.pending, *back))
    lands = (Admit(each.workload, each.cluster, each.places) for each in plan.landings)
    return then, Plan(admits=(*plan.admits, *lands))


def _again(held: HoldingView) -> PendingView:
    return PendingView(
        id=held.id,
        project=held.project,
        priority=held.priority,
        preemptible=held.preemptible,
        submitted_at=held.admitted_at,
        pod_sets=held.pod_sets,
        clusters=held.clusters,
        topology=held.topology,
    )
