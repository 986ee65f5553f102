"""A snapshot without what contradicts itself: what can be planned for, and what is left out.

* A pending workload is left out; so are a flavor, a cluster, a node and a device, which then take
  nothing new.
* Whoever holds, holds, and is charged: an amount out of bounds counts as the nearest within them.
* A reservation is left out, and so is a budget.
* Of a project, a cohort or a quota listed twice one is kept, whatever the order of the input.
* A cohort on a cycle, or too deep, hangs below the fleet.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import fields, is_dataclass, replace

from scheduler.core.node.shapes import LARGEST
from scheduler.core.plan import Fault
from scheduler.core.reasons import FaultKind, Subject
from scheduler.core.snapshot import (
    BudgetView,
    ClusterView,
    CohortView,
    HeldView,
    HoldingView,
    NodeView,
    QueueView,
    QuotaView,
    ReservationView,
    Snapshot,
)
from scheduler.core.units import WorkloadId

MOST_MILLI = 1 << 40
"""The largest quota or held amount, a billion devices: 2^22 of them still add up below 2^62."""
MOST_WEIGHT = 1 << 31
MOST_MILLI_S = 1 << 60
"""The largest budget: a million devices for more than thirty years."""
LAST = 253_402_300_799
"""The last second of the year 9999: dates are told up to then."""


def refused(snapshot: Snapshot, faults: Collection[Fault]) -> dict[WorkloadId, Fault]:
    """The pending workloads that `sound` leaves out, ascending, and the first fault of each."""
    twice = [fault for fault in faults if fault.kind is FaultKind.DUPLICATE_ID]
    projects = _by_subject(twice).get(Subject.PROJECT, {})
    workloads = _by_subject(faults).get(Subject.WORKLOAD, {})
    found = {p.id: workloads.get(p.id) or projects.get(p.project) for p in snapshot.pending}
    return {id: fault for id, fault in sorted(found.items()) if fault is not None}


def why_not_kept(snapshot: Snapshot) -> Iterator[tuple[ReservationView, str]]:
    """The reservations that nobody can mean, and what is wrong with each."""
    projects = {queue.project for queue in snapshot.queues}
    cohorts = {cohort.id for cohort in snapshot.cohorts}
    flavors = {flavor.id for flavor in snapshot.flavors}
    for reservation in snapshot.reservations:
        if (reservation.project is None) == (reservation.cohort is None):
            yield reservation, "is for one project and one cohort; right would be one of the two"
        elif reservation.cohort is None and reservation.project not in projects:
            yield reservation, "is for a project that is unknown"
        elif reservation.project is None and reservation.cohort not in cohorts:
            yield reservation, "is for a cohort that is unknown"
        elif reservation.flavor not in flavors:
            yield reservation, f"is of the flavor {reservation.flavor}, which is unknown"
        elif not 1 <= reservation.amount_milli <= MOST_MILLI:
            amount = reservation.amount_milli
            yield reservation, f"has amount_milli {amount}; right would be 1 to {MOST_MILLI}"
        elif reservation.ends_at <= reservation.starts_at:
            start, end = reservation.starts_at, reservation.ends_at
            yield reservation, f"ends at {end}; right would be after it starts, at {start}"


def why_not_counted(snapshot: Snapshot) -> Iterator[tuple[BudgetView, str]]:
    """The budgets that nobody can mean, and what is wrong with each."""
    projects = {queue.project for queue in snapshot.queues}
    cohorts = {cohort.id for cohort in snapshot.cohorts}
    for budget in snapshot.budgets:
        if (budget.project is None) == (budget.cohort is None):
            yield budget, "is of one project and of one cohort; right would be one of the two"
        elif budget.project not in projects and budget.cohort not in cohorts:
            yield budget, f"is of {budget.project or budget.cohort}, which is unknown"
        elif not 0 <= budget.limit_milli_s <= MOST_MILLI_S:
            limit = budget.limit_milli_s
            yield budget, f"has limit_milli_s {limit}; right would be 0 to {MOST_MILLI_S}"
        elif not 0 <= budget.ends_at <= LAST:
            yield budget, f"has ends_at {budget.ends_at}; right would be 0 to {LAST}"
        elif budget.used_milli_s < 0:
            yield budget, f"has used_milli_s {budget.used_milli_s}; right would be 0 or more"


def sound(snapshot: Snapshot, faults: Collection[Fault]) -> Snapshot:
    """The snapshot that `faults` were found in, without what they name."""
    of = _by_subject(faults)
    out = refused(snapshot, faults)
    workloads = of.get(Subject.WORKLOAD, {})
    lost = {f.id for f in faults if f.kind in (FaultKind.COHORT_CYCLE, FaultKind.TOO_DEEP)}
    never = {budget for budget, _ in why_not_counted(snapshot)}
    wrong = {reservation for reservation, _ in why_not_kept(snapshot)}
    clusters, flavors = of.get(Subject.CLUSTER, {}), of.get(Subject.FLAVOR, {})
    return replace(
        snapshot,
        flavors=tuple(f for f in snapshot.flavors if f.id not in flavors),
        clusters=tuple(_cluster(c, of) for c in snapshot.clusters if c.id not in clusters),
        queues=tuple(map(_member, once(snapshot.queues, lambda q: q.project))),
        pending=tuple(p for p in snapshot.pending if p.id not in out),
        holding=tuple(
            _holding(h, workloads.get(h.id), of.get(Subject.PLACEMENT, {}))
            for h in snapshot.holding
        ),
        reservations=tuple(r for r in snapshot.reservations if r not in wrong),
        budgets=tuple(b for b in snapshot.budgets if b not in never),
        cohorts=tuple(
            _member(replace(c, parent=None) if c.id in lost else c)
            for c in once(snapshot.cohorts, lambda c: c.id)
        ),
    )


type _Faulty = dict[Subject, dict[str, Fault]]


def _by_subject(faults: Iterable[Fault]) -> _Faulty:
    found: _Faulty = {}
    for fault in faults:
        found.setdefault(fault.subject, {}).setdefault(fault.id, fault)
    return found


def _cluster(cluster: ClusterView, of: _Faulty) -> ClusterView:
    nodes, devices = of.get(Subject.NODE, {}), of.get(Subject.DEVICE, {})

    def node(of: NodeView) -> NodeView:
        return replace(of, devices=tuple(d for d in of.devices if d.id not in devices))

    return replace(cluster, nodes=tuple(node(n) for n in cluster.nodes if n.id not in nodes))


def _holding(holding: HoldingView, fault: Fault | None, wrong: Collection[str]) -> HoldingView:
    """What holds in a way that cannot be meant is not evicted, and does not queue again; what
    holds a placement that is `wrong` neither grows nor shrinks nor moves."""
    placements = tuple(map(_held, holding.placements))
    if fault is None and any(placement.id in wrong for placement in placements):
        return replace(holding, placements=placements, pod_sets=())
    if fault is None:
        return replace(holding, placements=placements)
    return replace(holding, placements=placements, preemptible=False, pod_sets=())


def _held(placement: HeldView) -> HeldView:
    return replace(
        placement,
        cpu_milli=_within(placement.cpu_milli, LARGEST),
        memory_mib=_within(placement.memory_mib, LARGEST),
        amount_milli=_within(placement.amount_milli, MOST_MILLI),
    )


def _member[M: (CohortView, QueueView)](member: M) -> M:
    quotas = tuple(map(_quota, once(member.quotas, lambda q: q.flavor)))
    return replace(member, weight=_within(member.weight, MOST_WEIGHT), quotas=quotas)


def _quota(quota: QuotaView) -> QuotaView:
    borrow, lend = quota.borrowing_limit_milli, quota.lending_limit_milli
    return replace(
        quota,
        nominal_milli=_within(quota.nominal_milli, MOST_MILLI),
        borrowing_limit_milli=None if borrow is None else _within(borrow, MOST_MILLI),
        lending_limit_milli=None if lend is None else _within(lend, MOST_MILLI),
    )


def _within(quantity: int, most: int) -> int:
    return min(max(0, quantity), most)


def once[T](listed: Iterable[T], id: Callable[[T], str]) -> tuple[T, ...]:
    """One of each id, of several the same whatever their order."""
    kept: dict[str, T] = {}
    for each in listed:
        other = kept.get(id(each))
        if other is None or _key(each) < _key(other):
            kept[id(each)] = each
    return tuple(kept.values())


def _key(value: object) -> str:
    """The same for two objects that are the same but for the order of their tuples."""
    if isinstance(value, tuple):
        return f"({','.join(sorted(map(_key, value)))})"
    if is_dataclass(value):
        return f"({','.join(_key(getattr(value, field.name)) for field in fields(value))})"
    return repr(value)
