"""What no plan may do to guarantees in the tree, by definition: a part of `invariants`.

Shares no arithmetic with `quota` and `guarantees`.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from fractions import Fraction

from scheduler.core.laws.elastic import lost
from scheduler.core.node import mig
from scheduler.core.plan import Plan, Preempt, Shrink
from scheduler.core.quota.cohorts import FLEET, Cohorts
from scheduler.core.quota.portions import as_given
from scheduler.core.reasons import PreemptRule
from scheduler.core.snapshot import FlavorKind, Snapshot
from scheduler.core.units import FlavorId, ProjectId, WorkloadId

type Usage = Counter[tuple[ProjectId, FlavorId]]


class Law:
    """The law of quota for one flavor, by definition: each value from its children's."""

    def __init__(
        self, cohorts: Cohorts, flavor: FlavorId, usage: Mapping[tuple[ProjectId, FlavorId], int]
    ) -> None:
        self._children: dict[int, list[int]] = {}
        for member, parent in enumerate(cohorts.parents):
            self._children.setdefault(parent, []).append(member)
        self._quotas = [quotas.get(flavor) for quotas in cohorts.quotas]
        self._own = {n: usage.get((project, flavor), 0) for project, n in cohorts.number.items()}

    def drawn(self, member: int) -> int:
        """What is drawn on its own nominal: its own use, and what its children draw beyond."""
        below = (max(0, self.drawn(c) - self.nominal(c)) for c in self._children.get(member, ()))
        return self._own.get(member, 0) + sum(below)

    def nominal(self, member: int) -> int:
        quota = self._quotas[member]
        return quota.nominal_milli if quota else 0

    def used(self, member: int) -> int:
        below = (max(0, self.used(c) - self._kept(c)) for c in self._children.get(member, ()))
        return self._own.get(member, 0) + sum(below)

    def most(self, member: int) -> int | None:
        quota = self._quotas[member]
        if member == FLEET:
            return self.capacity(member)
        if quota is None or quota.borrowing_limit_milli is None:
            return None
        return self.capacity(member) + quota.borrowing_limit_milli

    def capacity(self, member: int) -> int:
        lent = (self.capacity(c) - self._kept(c) for c in self._children.get(member, ()))
        return self.nominal(member) + sum(lent)

    def _kept(self, member: int) -> int:
        quota = self._quotas[member]
        if quota is None or quota.lending_limit_milli is None:
            return 0
        return max(0, self.capacity(member) - quota.lending_limit_milli)


def add_models(snapshot: Snapshot, usage: Counter[tuple[ProjectId, FlavorId]]) -> None:
    """What is used of whole models, in sevenths of their devices, by who has a quota of that."""
    flavors = {flavor.id: flavor for flavor in snapshot.flavors}
    wholes = {f.model: f.id for f in snapshot.flavors if f.kind is FlavorKind.MODEL}
    has = {(queue.project, quota.flavor) for queue in snapshot.queues for quota in queue.quotas}
    for (project, flavor), amount in sorted(usage.items()):
        of = flavors.get(flavor)
        if of is None or (project, wholes.get(of.model)) not in has:
            continue
        taken = Fraction(1)
        board, part = mig.board(model=of.model), mig.profile(model=of.model, name=of.profile)
        if board is not None and part is not None:
            by_compute = Fraction(part.compute, board.compute)
            taken = max(by_compute, Fraction(part.memory, board.memory))
        usage[project, wholes[of.model]] += int(amount * taken * 7)


def usage(snapshot: Snapshot) -> Counter[tuple[ProjectId, FlavorId]]:
    used: Counter[tuple[ProjectId, FlavorId]] = Counter()
    for holding in snapshot.holding:
        for placement in holding.placements:
            used[holding.project, placement.flavor] += placement.amount_milli
    return used


def reclaims(snapshot: Snapshot, plan: Plan, waits: set[WorkloadId]) -> Iterator[str]:
    """In one flavor, at least, that the preemptor accepts, reclaim leaves the project and each
    member above it, up to below the nearest above both, what is guaranteed to it."""
    pending = {p.id: p for p in snapshot.pending}
    holding = {h.id: h for h in snapshot.holding}
    left = usage(snapshot)
    for admit in plan.admits:
        for place in admit.places:
            left[pending[admit.workload].project, place.flavor] += place.amount_milli
    cohorts = Cohorts(cohorts=snapshot.cohorts, queues=snapshot.queues)
    reclaimed = [
        each
        for each in _given(plan)
        if each.rule is PreemptRule.RECLAIM and each.victim in holding
    ]
    for held, placement in lost(snapshot, plan, PreemptRule.RECLAIM):
        left[held.project, placement.flavor] -= placement.amount_milli
    add_models(snapshot, left)
    waiting = [pending[w].project for w in waits if w in pending]
    # What a project waits for counts for it, so of one that waits too nothing is said here.
    unsaid = {member for project in waiting for member in _up(cohorts, project)}
    for preempt in reclaimed:
        victim, by = holding[preempt.victim], pending.get(preempt.preemptor)
        if by is None:
            continue
        above = set(_up(cohorts, by.project))
        keep = [member for member in _up(cohorts, victim.project) if member not in above]
        if unsaid.intersection(keep):
            continue
        laws = [
            Law(cohorts, flavor, left)
            for flavor in _shared(snapshot, preempt.victim, preempt.preemptor)
        ]
        if all(any(law.used(m) < law.capacity(m) for m in keep) for law in laws):
            names = " and ".join(cohorts.names[member] for member in keep)
            yield f"{victim.id} is reclaimed below what is guaranteed to {names}"


def reclaimers(snapshot: Snapshot, plan: Plan) -> Iterator[str]:
    """Who reclaims is within what is guaranteed to a member below the nearest that is above it and
    whom it takes from, once its own victims are gone. Said where it accepts one flavor a pod set.
    """
    pending = {p.id: p for p in snapshot.pending}
    holding = {h.id: h for h in snapshot.holding}
    kinds = {flavor.id: flavor for flavor in snapshot.flavors}
    cohorts = Cohorts(cohorts=snapshot.cohorts, queues=snapshot.queues)
    gives = _given(plan)
    for by in sorted({each.preemptor for each in gives} & pending.keys()):
        asks = pending[by]
        of = [each for each in gives if each.preemptor == by and each.victim in holding]
        gone = {p.id for _, p in lost(snapshot, plan, PreemptRule.PRIORITY, by)}
        used: Usage = Counter()
        for held in snapshot.holding:
            for placement in held.placements:
                if not (held.releasing or placement.leaving or placement.id in gone):
                    used[held.project, placement.flavor] += placement.amount_milli
        flavors = {flavor for pod_set in asks.pod_sets for flavor in pod_set.flavors}
        for pod_set in asks.pod_sets:
            first = pod_set.flavors[0]
            given = as_given(pod_set=pod_set, flavor=kinds[first]) if first in kinds else pod_set
            a_pod = given.gpu_count * given.gpu_milli or given.cpu_milli
            used[asks.project, first] += pod_set.min_count * a_pod
        within = set(_up(cohorts, asks.project))
        for preempt in of:
            if preempt.rule is PreemptRule.RECLAIM:
                within.difference_update(_up(cohorts, holding[preempt.victim].project))
        laws = [Law(cohorts, flavor, used) for flavor in flavors]
        reclaims = any(preempt.rule is PreemptRule.RECLAIM for preempt in of)
        one_each = all(len(pod_set.flavors) == 1 for pod_set in asks.pod_sets)
        if (
            reclaims
            and one_each
            and not any(
                all(law.used(member) <= law.capacity(member) for law in laws) for member in within
            )
        ):
            yield f"{by} reclaims beyond what is guaranteed to it"


def _given(plan: Plan) -> list[Preempt | Shrink]:
    return [*plan.preempts, *plan.shrinks]


def _shared(snapshot: Snapshot, victim: WorkloadId, by: WorkloadId) -> set[FlavorId]:
    """What the one holds and the other accepts, and models of which both have a quota."""
    (held,) = (h for h in snapshot.holding if h.id == victim)
    (asks,) = (p for p in snapshot.pending if p.id == by)
    accepted = {f for pod_set in asks.pod_sets for f in pod_set.flavors}
    holds = {placement.flavor for placement in held.placements}
    models = {flavor.id: flavor.model for flavor in snapshot.flavors}
    wholes = {f.model: f.id for f in snapshot.flavors if f.kind is FlavorKind.MODEL}
    quoted = {(q.project, n.flavor) for q in snapshot.queues for n in q.quotas}
    shared = accepted & holds
    for model in {models.get(f, "") for f in accepted} & {models.get(f, "") for f in holds}:
        whole = wholes.get(model)
        if whole and {(asks.project, whole), (held.project, whole)} <= quoted:
            shared.add(whole)
    return shared


def firm(snapshot: Snapshot, plan: Plan) -> Iterator[str]:
    """What may not be preempted starts within what is drawn on the nominal of one member above it,
    or on its project's own, by all that holds then and does not leave."""
    pending = {p.id: p for p in snapshot.pending}
    cohorts = Cohorts(cohorts=snapshot.cohorts, queues=snapshot.queues)
    used: Usage = Counter()
    for held in snapshot.holding:
        for placement in held.placements:
            if not (held.releasing or placement.leaving):
                used[held.project, placement.flavor] += placement.amount_milli
    for admit in plan.admits:
        asks = pending.get(admit.workload)
        if asks is None:
            continue
        for place in admit.places:
            used[asks.project, place.flavor] += place.amount_milli
        laws = [Law(cohorts, flavor, used) for flavor in {p.flavor for p in admit.places}]
        within = any(
            all(law.drawn(member) <= law.nominal(member) for law in laws)
            for member in _up(cohorts, asks.project)
        )
        if not asks.preemptible and not within:
            yield f"{asks.id} may not be preempted, and borrows"


def _up(cohorts: Cohorts, project: ProjectId) -> Iterator[int]:
    """Its member and those above it, up to below the fleet."""
    member = cohorts.number.get(project, FLEET)
    while member != FLEET:
        yield member
        member = cohorts.parents[member]
