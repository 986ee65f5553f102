"""Which nodes of pools are lacked, and by whom: of those that wait for nodes, who would start on
those that can come, one after another, within quota, caps and limits."""

from dataclasses import dataclass, replace

from scheduler.core.admitting.admission import Admission
from scheduler.core.cycle import planned
from scheduler.core.plan import Place
from scheduler.core.policy import Policy
from scheduler.core.quota.share import Shares
from scheduler.core.reasons import ReasonCode
from scheduler.core.snapshot import PendingView, Snapshot
from scheduler.core.units import NodeId, WorkloadId


@dataclass(frozen=True, slots=True, order=True)
class NodeNeed:
    """What workloads take together of one node that is not there; a device in part counts
    whole."""

    devices_count: int
    cpu_milli: int
    memory_mib: int


@dataclass(frozen=True, slots=True)
class Need:
    """The nodes of a pool that a workload lacks beside those that are being made; a node that
    several would share is lacked by the first of them alone."""

    workload: WorkloadId
    pool: str
    nodes: tuple[NodeNeed, ...]


def needs(*, snapshot: Snapshot, policy: Policy) -> tuple[Need, ...]:
    """By priority, then by who submitted first. Only the least start of a workload is asked for:
    its surplus takes what is there. Who would not start with all that can come needs nothing."""
    made, cycle = planned(snapshot, policy)
    waits = {
        id for id, reason in made.reasons().items() if reason.code is ReasonCode.WAITING_FOR_NODE
    }
    if not waits:
        return ()
    coming, plan_of = cycle.admission.coming, cycle.admission
    draft = coming.draft()
    would = Admission(
        snapshot=cycle.snapshot,
        draft=draft,
        shares=Shares(book=draft.book),
        caps=plan_of.caps,
        windows=plan_of.windows.copy(),
    )
    would.promised = plan_of.promised
    mark = draft.checkpoint()
    first: dict[NodeId, WorkloadId] = {}
    taken: dict[NodeId, list[Place]] = {}
    for pending in sorted(
        (each for each in cycle.snapshot.pending if each.id in waits),
        key=lambda each: (-each.priority, each.submitted_at, each.id),
    ):
        request = cycle.request_of(pending)
        admit = request and would.start(pending=_least(pending), request=request)
        if not admit:
            continue
        for place in admit.places:
            if place.node in coming.of and not coming.of[place.node].made:
                first.setdefault(place.node, pending.id)
                taken.setdefault(place.node, []).append(place)
    draft.rollback(mark)  # its rooms are the plan's
    lacked: dict[tuple[WorkloadId, str], list[NodeNeed]] = {}
    for node, workload in first.items():
        of = workload, coming.of[node].pool.id
        lacked.setdefault(of, []).append(_need(taken[node]))
    return tuple(
        Need(workload, pool, tuple(sorted(nodes, reverse=True)))
        for (workload, pool), nodes in lacked.items()
    )


def _least(pending: PendingView) -> PendingView:
    sets = (replace(each, count=each.min_count) for each in pending.pod_sets)
    return replace(pending, pod_sets=tuple(sets))


def _need(places: list[Place]) -> NodeNeed:
    devices = {device for place in places for device, _ in place.spans}
    return NodeNeed(
        len(devices),
        sum(place.cpu_milli for place in places),
        sum(place.memory_mib for place in places),
    )
