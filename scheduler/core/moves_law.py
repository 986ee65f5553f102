"""What must hold of moves, checked apart from the code that makes them (see `invariants`)."""

from collections.abc import Iterator
from dataclasses import replace

from scheduler.core.plan import Admit, Plan
from scheduler.core.reasons import PreemptRule
from scheduler.core.snapshot import HoldingView, PendingView, Snapshot


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
    new = {workload for p in moved for workload in (p.victim, p.preemptor)}
    for workload in landing.keys() - known - new:
        yield f"{workload} lands, and nobody is moved"
    staying = {h.id for h in snapshot.holding if not h.releasing} - {
        p.victim for p in plan.preempts
    }
    started = {admit.workload for admit in plan.admits}
    for workload in landing.keys() & (staying | started):
        yield f"{workload} lands, and runs"


def landed(snapshot: Snapshot, plan: Plan) -> tuple[Snapshot, Plan]:
    """When all that leaves has left: the snapshot then, and the plan in which they start."""
    gone = {h.id for h in snapshot.holding if h.releasing} | {p.victim for p in plan.preempts}
    back = tuple(_again(held) for held in snapshot.holding if held.id in gone)
    staying = tuple(held for held in snapshot.holding if held.id not in gone)
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
