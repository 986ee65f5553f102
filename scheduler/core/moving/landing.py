"""Landings that plans before have decided: who is moved, or has others moved for it, goes first.

Each keeps its very places until all of them are free, so whoever moves finds what was found for
it, and needs no further eviction. A landing is over when its workload has started or is gone, when
its places are not to be had any more, where it would take from a reservation by the time it
starts, or after KEPT_S: then it waits like everybody else.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from scheduler.core.admitting.admission import Admission
from scheduler.core.bounds import firm
from scheduler.core.bounds.caps import Caps
from scheduler.core.bounds.limits import waits_for
from scheduler.core.evicting.preempt import Evictions
from scheduler.core.fleet.draft import Draft
from scheduler.core.node.fit import let_in
from scheduler.core.plan import Admit, Landing, Place
from scheduler.core.reasons import Reason
from scheduler.core.request import Requests
from scheduler.core.snapshot import HoldingView, PendingView, Snapshot
from scheduler.core.units import WorkloadId

KEPT_S = 8100
"""How long places are kept for who is not seen to leave its old ones: for the longest notice, the
longest grace, and a quarter of an hour."""


@dataclass(frozen=True, slots=True)
class Landed:
    """The landings that are still to come, and the pending workloads that are decided by now."""

    landings: tuple[Landing, ...]
    decided: frozenset[WorkloadId]


def is_over(landing: Landing, *, at: int) -> bool:
    """By its time alone."""
    return at >= landing.since + KEPT_S


def land(
    *,
    snapshot: Snapshot,
    blocked: Collection[WorkloadId],
    admission: Admission,
    evictions: Evictions | None,
    started: Callable[[PendingView, Admit], None],
    promised: Callable[[Sequence[Place], Evictions], None],
    hold: Callable[[PendingView, Reason], None],
) -> Landed:
    """Start those that can and are not `blocked`, the landing first that was decided first, and
    keep places.

    `started` is told who starts, `promised` what is taken in what `evictions` expects, and `hold`
    who waits for what.
    """
    if not snapshot.landings:
        return Landed((), frozenset())
    named = {landing.workload for landing in snapshot.landings}
    ready = (p for p in snapshot.pending if p.id in named)
    waiting = {pending.id: pending for pending in ready if pending.id not in blocked}
    looked_at = frozenset(waiting)
    leaving = {held.id: held for held in snapshot.holding if held.releasing and held.pod_sets}
    soon = evictions.soon if evictions is not None and evictions.coming else None
    kept = []
    for landing in sorted(snapshot.landings, key=lambda each: (each.since, each.workload)):
        pending, places = waiting.get(landing.workload), landing.places
        workload = pending or leaving.get(landing.workload)
        if workload is None or is_over(landing, at=snapshot.at):
            continue
        if not _accepts(workload, places):
            continue
        if pending is not None and not _may_start(admission.caps, pending, places):
            continue
        if soon is not None and not fits(soon, workload, places):
            continue
        if pending is not None and fits(admission.draft, workload, places):
            if _is_reserved(admission, pending, places):
                continue
            started(pending, admission.start_at(pending=pending, landing=landing))
            del waiting[pending.id]
        elif evictions is not None and soon is not None:
            evictions.promise(workload=workload, places=places)
            promised(places, evictions)
            kept.append(landing)
            if pending is not None:
                admission.caps.add(workload=pending, holds=places)
                hold(pending, waits_for(places=places, flavors=soon.flavors, victims=0))
                del waiting[pending.id]
    return Landed(tuple(kept), looked_at - waiting.keys())


def _accepts(workload: PendingView | HoldingView, places: Sequence[Place]) -> bool:
    """Whether it still accepts those flavors: what its project prefers may have changed."""
    flavors = {pod_set.id: pod_set.flavors for pod_set in workload.pod_sets}
    return all(place.flavor in flavors.get(place.pod_set, ()) for place in places)


def _may_start(caps: Caps, pending: PendingView, places: Sequence[Place]) -> bool:
    """Whether caps and budgets let it start there."""
    amounts = [(place.flavor, place.amount_milli) for place in places]
    covered = caps.budgets.covers(workload=pending, amounts=amounts)
    may_hold = caps.may_hold(workload=pending, amounts=amounts)
    return covered and may_hold and caps.reached(pending) is None


def _is_reserved(admission: Admission, pending: PendingView, places: Sequence[Place]) -> bool:
    """Whether it would take from another's reservation if it started there now."""
    draft, windows = admission.draft, admission.windows
    request = Requests(flavors=draft.flavors, book=draft.book).of(pending)
    if not windows.runs_into(pending=pending, request=request):
        return False  # as when it was decided, whatever else is lacking
    return windows.why_not(draft=draft, pending=pending, places=places) is not None


def fits(draft: Draft, workload: PendingView | HoldingView, places: Sequence[Place]) -> bool:
    """Whether the places are free, and its project may have them. The draft stays as it is."""
    nodes = {place.node for place in places}
    if any(node not in draft.rooms or draft.rooms[node].rank < 0 for node in nodes):
        return False
    rooms = {node: draft.rooms[node].copy() for node in nodes}
    if not let_in(places=places, rooms=rooms, flavors=draft.flavors):
        return False
    mark, book, project = draft.checkpoint(), draft.book, workload.project
    for place in places:
        draft.add(project=project, holder=place)
    charged = {
        flavor
        for place in places
        for flavor, _ in book.parts.charges(project=project, flavor=place.flavor, amount_milli=0)
    }
    needs = sorted((flavor, 0) for flavor in charged)
    lawful = all(book.is_lawful(project=project, flavor=flavor) for flavor in charged) and (
        workload.preemptible or firm.rooms(book, project=project, needs=needs) is not None
    )
    draft.rollback(mark)
    return lawful
