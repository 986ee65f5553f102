"""A fleet once a plan of it is carried out: what simulations and replays go on with."""

from collections.abc import Sequence
from dataclasses import replace

from scheduler.core.held.elastic import asks
from scheduler.core.plan import Admit, Place, Plan
from scheduler.core.snapshot import HeldView, HoldingView, PendingView, Snapshot
from scheduler.core.units import PlacementId, WorkloadId


def carried_out(of: Snapshot, made: Plan) -> tuple[Snapshot, bool]:
    """At the same moment, and whether anything changed: what was leaving has left and waits
    again, victims leave, what was admitted runs, and gangs have their new sizes."""
    victims = {preempt.victim for preempt in made.preempts}
    waits = {pending.id: pending for pending in of.pending}
    started = [started_by(admit, waits.pop(admit.workload), at=of.at) for admit in made.admits]
    leaving = [held for held in of.holding if held.releasing]
    changes = {each.victim for each in made.shrinks} | {each.workload for each in made.grows}
    stays = [
        resized(held, made) if held.id in changes else held
        for held in of.holding
        if not held.releasing
    ]
    stays = [replace(held, releasing=True) if held.id in victims else held for held in stays]
    again = [asks(held) for held in leaving if held.pod_sets]
    then = replace(of, pending=(*waits.values(), *again), holding=(*stays, *started))
    return then, bool(started or victims or leaving or made.shrinks or made.grows)


def started_by(admit: Admit, of: PendingView, *, at: int) -> HoldingView:
    """What an admitted workload holds, and runs on, from then on."""
    return HoldingView(
        id=of.id,
        project=of.project,
        cluster=admit.cluster,
        priority=of.priority,
        preemptible=of.preemptible,
        admitted_at=at,
        placements=_held(of.id, admit.places, 0),
        started_at=at,
        run_time_limit_s=of.run_time_limit_s,
        pod_sets=of.pod_sets,
        clusters=of.clusters,
        user=of.user,
        topology=of.topology,
        array=of.array,
        ahead_of=admit.ahead_of,
    )


def resized(held: HoldingView, made: Plan) -> HoldingView:
    """It once the pods that the plan takes from it have gone, and those that it gets run."""
    gone = {pod for s in made.shrinks if s.victim == held.id for pod in s.placements}
    stay = tuple(placement for placement in held.placements if placement.id not in gone)
    for grow in made.grows:
        if grow.workload == held.id:
            first = 1 + max(placement.rank for placement in stay)
            stay += _held(held.id, grow.places, first)
    return replace(held, placements=stay)


def _held(of: WorkloadId, places: Sequence[Place], first: int) -> tuple[HeldView, ...]:
    """Pods of ranks from `first` on, each by its workload and rank."""
    return tuple(
        HeldView(
            PlacementId(f"{of}-{rank}"),
            place.pod_set,
            place.node,
            place.flavor,
            place.amount_milli,
            place.cpu_milli,
            place.memory_mib,
            place.spans,
            rank,
        )
        for rank, place in enumerate(places, first)
    )
