"""Whom to evict, at least harm, so that a workload can start: and what it then waits for.

Everything here happens in the draft called *soon*: the fleet once all that is on its way back
(`releasing`, and the victims of this plan) is back, with the places of those that wait for it
already taken. A workload that fits there waits; a later plan admits it, when the release is seen.

Rules. PRIORITY: preemptible work of lower priority in the same project. RECLAIM: preemptible work
of another project that is over its nominal quota in a flavor that the workload asks for, while the
workload stays within its own nominal; no victim may bring its project below nominal there.

Harm, least first: borrowers before the project's own work, lower priority, less device-time lost,
id. The search is greedy: pod by pod the cheapest node, then quota, then victims that turn out not
to be needed are let go.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heapreplace

from scheduler.core.draft import Draft
from scheduler.core.place import clusters_for, place_gang, seat
from scheduler.core.plan import Place
from scheduler.core.quota import Book
from scheduler.core.reasons import PreemptRule
from scheduler.core.request import Option, Request
from scheduler.core.snapshot import FlavorView, HeldView, HoldingView, PendingView, PodSetView
from scheduler.core.units import ClusterId, FlavorId, NodeId, ProjectId, WorkloadId

Harm = tuple[bool, int, int, str]


@dataclass(frozen=True, slots=True, eq=False)
class Victim:
    """Someone who may be evicted. `amounts` is what it gives back, in thousandths per flavor."""

    holding: HoldingView
    rule: PreemptRule
    harm: Harm
    amounts: dict[FlavorId, int]


@dataclass(frozen=True, slots=True)
class Wait:
    """The places a workload gets once the releases are seen, and the victims taken for it now."""

    places: tuple[Place, ...]
    victims: tuple[Victim, ...]


def lost_milli_s(*, holding: HoldingView, at: int) -> int:
    """The work lost by eviction: thousandths of devices x seconds run (of cores without any)."""
    held = [p.amount_milli for p in holding.placements if p.spans]
    held = held or [p.amount_milli for p in holding.placements]
    since = at if holding.started_at is None else holding.started_at
    return sum(held) * max(0, at - since)


class Candidates:
    """All work that may be evicted at all, less what has been evicted in this plan."""

    def __init__(self, *, holding: Iterable[HoldingView], at: int) -> None:
        self._at = at
        self._of: dict[ProjectId, dict[WorkloadId, HoldingView]] = {}
        for held in holding:
            if held.preemptible and not held.releasing:
                self._of.setdefault(held.project, {})[held.id] = held

    def forget(self, victim: Victim) -> None:
        """It is being evicted: not there for anyone else."""
        del self._of[victim.holding.project][victim.holding.id]

    def exist_for(self, *, pending: PendingView, option: Option, book: Book) -> bool:
        """Whether there is anyone to evict, by the rules alone."""
        own = self._of.get(pending.project, {}).values()
        if any(held.priority < pending.priority for held in own):
            return True
        return any(
            project != pending.project and held and _over(book, project, flavor) > 0
            for flavor in _reclaimable(pending.project, option, book, {})
            for project, held in self._of.items()
        )

    def victims(self, *, pending: PendingView, option: Option, book: Book) -> list[Victim]:
        """Who may be evicted for `pending`, least harm first."""
        found = [
            self._victim(held, PreemptRule.PRIORITY)
            for held in self._of.get(pending.project, {}).values()
            if held.priority < pending.priority
        ]
        own: dict[FlavorId, int] = {}
        for victim in found:
            for flavor, amount in victim.amounts.items():
                own[flavor] = own.get(flavor, 0) + amount
        flavors = _reclaimable(pending.project, option, book, own)
        for project, of_project in self._of.items():
            over = {flavor for flavor in flavors if _over(book, project, flavor) > 0}
            if project != pending.project and over:
                victims = [self._victim(h, PreemptRule.RECLAIM) for h in of_project.values()]
                found += [victim for victim in victims if not over.isdisjoint(victim.amounts)]
        return sorted(found, key=_harm)

    def _victim(self, held: HoldingView, rule: PreemptRule) -> Victim:
        amounts: dict[FlavorId, int] = {}
        for placement in held.placements:
            amount = amounts.get(placement.flavor, 0) + placement.amount_milli
            amounts[placement.flavor] = amount
        lost = lost_milli_s(holding=held, at=self._at)
        harm = rule is PreemptRule.PRIORITY, held.priority, lost, held.id
        return Victim(held, rule, harm, amounts)


def find(
    *,
    soon: Draft,
    pending: PendingView,
    request: Request,
    options: Sequence[Option],
    candidates: Candidates,
    most_victims: int,
) -> Wait | None:
    """Places in `soon`, evicting whom it takes; `soon` has them then, without the victims.

    The first of `options` that works is taken, in the cluster where it does least harm: fewest victims,
    then the least harmful. None leaves `soon` as it was.
    """
    for option in options:
        victims = candidates.victims(pending=pending, option=option, book=soon.book)
        if not _quota_could_do(pending.project, option, victims, soon.book):
            continue
        clusters = clusters_for(draft=soon, request=request, option=option)
        best: tuple[int, list[Harm], ClusterId] | None = None
        for cluster in clusters:
            mark = soon.checkpoint()
            wait = _Search(soon, pending, request, option, cluster, victims, most_victims).run()
            if wait is not None and len(clusters) == 1:
                return wait
            soon.rollback(mark)
            if wait is not None:
                harm = len(wait.victims), [_harm(victim) for victim in wait.victims], cluster
                best = harm if best is None else min(best, harm)
        if best is not None:
            return _Search(soon, pending, request, option, best[2], victims, most_victims).run()
    return None


def _quota_could_do(
    project: ProjectId, option: Option, victims: Sequence[Victim], book: Book
) -> bool:
    """Whether the quota would do if all victims went: a quick no."""
    for flavor, asked in option.needs:
        available = book.available(project=project, flavor=flavor)
        if available is None:
            return False
        if available + sum(victim.amounts.get(flavor, 0) for victim in victims) < asked:
            return False
    return True


def _harm(victim: Victim) -> Harm:
    return victim.harm


def _over(book: Book, project: ProjectId, flavor: FlavorId) -> int:
    used = book.used(project=project, flavor=flavor)
    return used - book.nominal(project=project, flavor=flavor)


def _reclaimable(
    project: ProjectId, option: Option, book: Book, own: Mapping[FlavorId, int]
) -> list[FlavorId]:
    """The flavors in which the least start, less `own` victims, stays within nominal."""
    return [
        flavor
        for flavor, asked in option.needs
        if asked and _over(book, project, flavor) + asked <= own.get(flavor, 0)
    ]


_Cost = tuple[tuple[bool, int, int, int, int], tuple[Victim, ...]]
"""Any of the project's own work?, highest priority, device-time lost, count, rank; and who."""


class _Search:
    """One attempt: a workload, an option, a cluster."""

    def __init__(
        self,
        soon: Draft,
        pending: PendingView,
        request: Request,
        option: Option,
        cluster: ClusterId,
        victims: Sequence[Victim],
        most_victims: int,
    ) -> None:
        self._soon = soon
        self._pending = pending
        self._request = request
        self._option = option
        self._cluster = cluster
        self._asked = [flavor for flavor, asked in option.needs if asked]
        self._left = {victim.holding.id: victim for victim in victims}
        self._taken: list[Victim] = []
        self._most = most_victims
        self._here: dict[NodeId, list[tuple[Victim, list[HeldView]]]] | None = None
        self._heaps: dict[int, list[tuple[_Cost, NodeId]]] = {}

    def run(self) -> Wait | None:
        """Pods first, each where that costs least; then quota; then let go of whom it can."""
        mark = self._soon.checkpoint()
        places = self._place(evicting=True)
        if places is None:
            self._soon.rollback(mark)
            return None
        if not all(self._free_quota(flavor) for flavor, _ in self._option.needs):
            self._soon.rollback(mark)
            return None
        return self._let_go(places)

    def _place(self, *, evicting: bool) -> tuple[Place, ...] | None:
        return place_gang(
            draft=self._soon,
            pending=self._pending,
            request=self._request,
            option=self._option,
            cluster=self._cluster,
            spare={},
            make_room=self._make_room if evicting else None,
        )

    def _free_quota(self, flavor: FlavorId) -> bool:
        """Evict until what has been charged to the workload's project is lawful."""
        book, project = self._soon.book, self._pending.project
        while not self._is_lawful(flavor):
            limit = book.borrowing_limit(project=project, flavor=flavor)
            own = self._over_by_reclaim(flavor) or (
                limit is not None and _over(book, project, flavor) > limit
            )
            victim = next(
                (
                    v
                    for v in self._left.values()
                    if flavor in v.amounts
                    and self._lawful(v, ())
                    and (v.rule is PreemptRule.PRIORITY or not own)
                ),
                None,
            )
            if victim is None or len(self._taken) == self._most:
                return False
            self._evict(victim)
        return True

    def _let_go(self, places: tuple[Place, ...]) -> Wait:
        """Put back each victim without whom it works as well, the most harmful first."""
        for victim in sorted(self._taken, key=_harm, reverse=True):
            if len(self._taken) < 2:
                break
            mark = self._soon.checkpoint()
            for place in places:
                self._soon.remove(project=self._pending.project, holder=place)
            for placement in victim.holding.placements:
                self._soon.add(project=victim.holding.project, holder=placement)
            self._taken.remove(victim)
            again = self._place(evicting=False)
            if again is not None and all(self._is_lawful(f) for f, _ in self._option.needs):
                places = again
            else:
                self._taken.append(victim)
                self._soon.rollback(mark)
        return Wait(places, tuple(sorted(self._taken, key=_harm)))

    def _is_lawful(self, flavor: FlavorId) -> bool:
        """Whether the project may hold what it has now been charged."""
        left = self._soon.book.available(project=self._pending.project, flavor=flavor)
        return (left or 0) >= 0 and not self._over_by_reclaim(flavor)

    def _over_by_reclaim(self, flavor: FlavorId) -> bool:
        """Whether others give back the flavor for a project that is itself over nominal."""
        return _over(self._soon.book, self._pending.project, flavor) > 0 and any(
            victim.rule is PreemptRule.RECLAIM and flavor in victim.amounts
            for victim in self._taken
        )

    def _evict(self, victim: Victim) -> None:
        for placement in victim.holding.placements:
            self._soon.remove(project=victim.holding.project, holder=placement)
        self._taken.append(victim)
        del self._left[victim.holding.id]

    def _lawful(self, victim: Victim, before: Sequence[Victim]) -> bool:
        """Whether its project stays at nominal without it and those evicted `before`."""
        if victim.rule is PreemptRule.PRIORITY:
            return True
        project = victim.holding.project
        for flavor in self._asked:
            gone = victim.amounts.get(flavor, 0)
            if gone:
                gone += sum(
                    v.amounts.get(flavor, 0) for v in before if v.holding.project == project
                )
                if gone > _over(self._soon.book, project, flavor):
                    return False
        return True

    def _make_room(self, pod_set: PodSetView, flavor: FlavorView) -> bool:
        """Evict the least harmful victims on one node after which the pod fits there."""
        i = self._pending.pod_sets.index(pod_set)
        heap = self._heaps.get(i)
        if heap is None:
            heap = self._heaps[i] = []
            for node in self._nodes():
                cost = self._cost(node, pod_set, flavor)
                if cost is not None:
                    heap.append((cost, node))
            heapify(heap)
        while heap:
            stored, node = heap[0]
            cost = self._cost(node, pod_set, flavor)
            if cost is None:
                heappop(heap)
            elif cost[0] != stored[0]:
                heapreplace(heap, (cost, node))
            elif len(self._taken) + len(cost[1]) > self._most:
                return False
            else:
                for victim in cost[1]:
                    self._evict(victim)
                return True
        return False

    def _nodes(self) -> dict[NodeId, list[tuple[Victim, list[HeldView]]]]:
        """Who could go from each node of the cluster, least harm first."""
        if self._here is None:
            self._here = {}
            for victim in self._left.values():
                if victim.holding.cluster != self._cluster:
                    continue
                on: dict[NodeId, list[HeldView]] = {}
                for placement in victim.holding.placements:
                    on.setdefault(placement.node, []).append(placement)
                for node, held in on.items():
                    self._here.setdefault(node, []).append((victim, held))
        return self._here

    def _cost(self, node: NodeId, pod_set: PodSetView, flavor: FlavorView) -> _Cost | None:
        """The cheapest way found to make the pod fit on the node; None when there is none."""
        room = self._soon.rooms.get(node)
        if room is None or room.rank < 0:
            return None
        trial = room.copy()
        flavors = self._soon.flavors
        gone: list[tuple[Victim, list[HeldView]]] = []
        for victim, held in self._nodes()[node]:
            if victim.holding.id in self._left and self._lawful(victim, [v for v, _ in gone]):
                gone.append((victim, held))
                for placement in held:
                    trial.give(holder=placement, flavor=flavors.get(placement.flavor))
                if seat(room=trial, pod_set=pod_set, flavor=flavor) is not None:
                    break
        else:
            return None
        for victim, held in reversed(gone[:-1]):
            for placement in held:
                trial.take(holder=placement, flavor=flavors.get(placement.flavor))
            if seat(room=trial, pod_set=pod_set, flavor=flavor) is not None:
                gone.remove((victim, held))
            else:
                for placement in held:
                    trial.give(holder=placement, flavor=flavors.get(placement.flavor))
        victims = tuple(victim for victim, _ in gone)
        harms = [victim.harm for victim in victims]
        lost = sum(harm[2] for harm in harms)
        worst = max(harm[0] for harm in harms), max(harm[1] for harm in harms)
        return (*worst, lost, len(victims), room.rank), victims
