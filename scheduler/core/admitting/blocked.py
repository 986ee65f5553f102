"""What keeps a workload from starting whatever there is room for."""

from collections.abc import Callable, Collection, Iterable, Mapping

from scheduler.core.bounds.limits import because
from scheduler.core.reasons import Reason, ReasonCode, listed
from scheduler.core.snapshot import PendingView, Snapshot
from scheduler.core.units import ProjectId, WorkloadId
from scheduler.core.waits import GateView


def why_blocked(
    *, pending: PendingView, closed: Mapping[ProjectId, str], at: int
) -> Reason | None:
    """The first reason, None when there is none. Of the `closed` projects nothing starts: who is
    held is told of each."""
    if pending.project in closed:
        return because(ReasonCode.QUEUE_HELD, held=closed[pending.project])
    if pending.gate is not None:
        return _gated(pending.gate)
    if pending.strays is not None:
        count, cluster = pending.strays.count, pending.strays.cluster
        return because(ReasonCode.STRAYS, strays_count=count, cluster=cluster)
    unmet = pending.waits_for
    if unmet is not None:
        in_vain = {"in_vain_count": unmet.in_vain_count} if unmet.in_vain_count else {}
        return because(
            ReasonCode.DEPENDENCY, unmet_count=unmet.count, first=unmet.first, **in_vain
        )
    if pending.gathering is not None:
        missing, wanted = pending.gathering.missing, pending.gathering.wanted
        return because(ReasonCode.GATHERING, missing_count=missing, wanted_count=wanted)
    if pending.not_before > max(at, 0):  # 0 holds nothing back, whatever the clock says
        return because(ReasonCode.BACKOFF, retry_in_s=pending.not_before - at)
    return None


def _gated(gate: GateView) -> Reason:
    until = {} if gate.deadline is None else {"deadline_at": gate.deadline}
    return because(
        ReasonCode.GATE,
        gate=gate.name,
        owner=gate.owner,
        since_at=gate.since,
        gates_count=gate.count,
        **until,
    )


def blocked(
    snapshot: Snapshot,
    doubtful: Callable[[Collection[ProjectId]], Iterable[PendingView]] | None,
) -> dict[WorkloadId, Reason]:
    """All of them, in any order. `doubtful` tells, from the closed projects, who may be; None
    where nobody knows."""
    closed = {queue.project: listed(queue.held_by) for queue in snapshot.queues if queue.held}
    looked_at = snapshot.pending if doubtful is None else doubtful(closed)
    found = {p.id: why_blocked(pending=p, closed=closed, at=snapshot.at) for p in looked_at}
    return {id: reason for id, reason in found.items() if reason is not None}
