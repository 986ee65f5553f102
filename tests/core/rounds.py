"""Plan after plan, each carried out before the next: what is there then, and who evicted whom."""

from collections import defaultdict
from dataclasses import replace

from scheduler.core.plan import Plan
from scheduler.core.snapshot import HoldingView, PendingView, Snapshot
from tests.core.build import holds
from tests.core.elastic import resized


def carried_out(of: Snapshot, made: Plan) -> tuple[Snapshot, bool]:
    """A minute later, and whether anything changed: what was leaving has left and asks again,
    victims leave, what was admitted runs, and gangs have their new sizes."""
    victims = {preempt.victim for preempt in made.preempts}
    asks = {pending.id: pending for pending in of.pending}
    started = [
        replace(holds(admit, asks.pop(admit.workload)), admitted_at=of.at, started_at=of.at)
        for admit in made.admits
    ]
    leaving = [held for held in of.holding if held.releasing]
    stays = [
        replace(resized(held, made), releasing=held.id in victims)
        for held in of.holding
        if not held.releasing
    ]
    again = [waiting_again(held) for held in leaving if held.pod_sets]
    later = replace(
        of, at=of.at + 60, pending=(*asks.values(), *again), holding=(*stays, *started)
    )
    return later, bool(started or victims or leaving or made.shrinks or made.grows)


class Evicted:
    """By whom each was evicted, in all plans so far."""

    def __init__(self) -> None:
        self._by: dict[str, set[str]] = defaultdict(set)

    def no_ring_with(self, made: Plan) -> bool:
        """Whether nobody of it evicts who evicted it, or who evicted that one, and so on."""
        for preempt in made.preempts:
            self._by[preempt.victim].add(preempt.preemptor)
        return all(p.victim not in self._up(p.preemptor) for p in made.preempts)

    def _up(self, workload: str) -> set[str]:
        found: set[str] = set()
        ahead = [workload]
        while ahead:
            new = self._by[ahead.pop()] - found
            found |= new
            ahead += new
        return found


def waiting_again(held: HoldingView) -> PendingView:
    """A victim back in its queue."""
    return PendingView(
        held.id,
        held.project,
        held.priority,
        held.preemptible,
        held.admitted_at,
        held.pod_sets,
        held.run_time_limit_s,
        user=held.user,
        topology=held.topology,
        array=held.array,
    )
