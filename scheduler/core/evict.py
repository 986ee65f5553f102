"""One search for victims: a workload, an option, a cluster.

Greedy: pod by pod the cheapest node, then quota, then victims that turn out not to be needed are
let go. No victim of RECLAIM may bring its project below nominal in a flavor that is asked for, and
whoever reclaims ends within its own nominal.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heapify, heappop, heapreplace

from scheduler.core.draft import Draft
from scheduler.core.fit import Room
from scheduler.core.place import place_gang, seat
from scheduler.core.plan import Place
from scheduler.core.reasons import PreemptRule
from scheduler.core.request import Option, Request
from scheduler.core.snapshot import FlavorView, PendingView, PodSetView
from scheduler.core.units import ClusterId, FlavorId, NodeId, WorkloadId
from scheduler.core.victims import Eligible, Harm, Victim, over_milli

_SECOND_LOOKS = 16
"""Victims of one search that are put back on trial; each trial places the workload anew."""


@dataclass(frozen=True, slots=True)
class Wait:
    """The places a workload gets once the releases are seen, and the victims taken for it now."""

    places: tuple[Place, ...]
    victims: tuple[Victim, ...]


@dataclass(order=True, slots=True)
class _Node:
    """What eviction costs on one node: at least that, or just that `as_of` so many evictions."""

    cost: tuple[bool, int, int, int, int]
    node: NodeId = field(compare=False)
    victims: tuple[Victim, ...] = field(compare=False, default=())
    as_of: int = field(compare=False, default=-1)


class Search:
    """One attempt in the draft `soon`; without `eligible` nobody is evicted."""

    def __init__(
        self,
        soon: Draft,
        pending: PendingView,
        request: Request,
        option: Option,
        cluster: ClusterId,
        eligible: Eligible | None,
    ) -> None:
        self._soon = soon
        self._pending = pending
        self._request = request
        self._option = option
        self._cluster = cluster
        self._eligible = eligible
        self._taken: dict[WorkloadId, Victim] = {}
        self._most = 0
        self._heaps: dict[int, list[_Node]] = {}

    def run(self, most_victims: int) -> Wait | None:
        """The places, then in `soon` in the victims' stead; None leaves `soon` as it was.

        Pods first, each where that costs least; then quota; then let go of whom it can.
        """
        self._most = most_victims
        mark = self._soon.checkpoint()
        places = self._place(evicting=self._eligible is not None)
        if places is None or not self._free_quota():
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

    def _free_quota(self) -> bool:
        """Evict until what has been charged to the workload's project is lawful."""
        for flavor, _ in self._option.needs:
            if self._is_lawful(flavor):
                continue
            if self._eligible is None:
                return False
            for victim in self._eligible.with_flavor(flavor):
                if victim.id in self._taken or not self._eligible.may_go(victim, ()):
                    continue
                if victim.rule is PreemptRule.PRIORITY or not self._must_be_own(flavor):
                    if len(self._taken) == self._most:
                        return False
                    self._evict(victim)
                if self._is_lawful(flavor):
                    break
            else:
                return False
        return True

    def _let_go(self, places: tuple[Place, ...]) -> Wait:
        """Put back each victim without whom it works as well: the most harmful are tried."""
        harmful = sorted(self._taken.values(), key=_harm, reverse=True)
        for victim in harmful[:_SECOND_LOOKS] if len(harmful) > 1 else ():
            mark = self._soon.checkpoint()
            for place in places:
                self._soon.remove(project=self._pending.project, holder=place)
            for placement in victim.held.holding.placements:
                self._soon.add(project=victim.held.holding.project, holder=placement)
            del self._taken[victim.id]
            again = self._place(evicting=False)
            if again is not None and all(self._is_lawful(f) for f, _ in self._option.needs):
                places = again
            else:
                self._taken[victim.id] = victim
                self._soon.rollback(mark)
        return Wait(places, tuple(sorted(self._taken.values(), key=_harm)))

    def _is_lawful(self, flavor: FlavorId) -> bool:
        """Whether the project may hold what it has now been charged."""
        left = self._soon.book.available(project=self._pending.project, flavor=flavor)
        return (left or 0) >= 0 and not self._over_by_reclaim(flavor)

    def _must_be_own(self, flavor: FlavorId) -> bool:
        """Whether only the project's own work, given back, makes it lawful."""
        book, project = self._soon.book, self._pending.project
        limit = book.borrowing_limit(project=project, flavor=flavor)
        over = over_milli(book=book, project=project, flavor=flavor)
        return self._over_by_reclaim(flavor) or (limit is not None and over > limit)

    def _over_by_reclaim(self, flavor: FlavorId) -> bool:
        """Whether others give back the flavor for a project that is itself over nominal."""
        over = over_milli(book=self._soon.book, project=self._pending.project, flavor=flavor)
        return over > 0 and any(
            victim.rule is PreemptRule.RECLAIM and flavor in victim.held.amounts
            for victim in self._taken.values()
        )

    def _evict(self, victim: Victim) -> None:
        for placement in victim.held.holding.placements:
            self._soon.remove(project=victim.held.holding.project, holder=placement)
        self._taken[victim.id] = victim

    def _make_room(self, pod_set: PodSetView, flavor: FlavorView) -> bool:
        """Evict the least harmful victims on one node after which the pod fits there.

        Nodes come up by a lower bound of their cost, and are looked at only then.
        """
        i = self._pending.pod_sets.index(pod_set)
        heap = self._heaps.get(i)
        if heap is None:
            heap = self._heaps[i] = self._bounds()
        while heap:
            first = heap[0]
            if first.as_of == len(self._taken):
                if len(self._taken) + len(first.victims) > self._most:
                    return False
                for victim in first.victims:
                    self._evict(victim)
                return True
            looked_at = self._look(first.node, pod_set, flavor)
            if looked_at is None:
                heappop(heap)
            else:
                heapreplace(heap, looked_at)
        return False

    def _bounds(self) -> list[_Node]:
        heap = []
        for node in self._eligible.nodes(self._cluster) if self._eligible else ():
            room = self._soon.rooms.get(node)
            first = next(self._on_node(node), None)
            if first is not None and room is not None and room.rank >= 0:
                own, priority, lost, _ = first.harm
                heap.append(_Node((own, priority, lost, 1, room.rank), node))
        heapify(heap)
        return heap

    def _on_node(self, node: NodeId) -> Iterator[Victim]:
        found = self._eligible.on_node(self._cluster, node) if self._eligible else ()
        return (victim for victim in found if victim.id not in self._taken)

    def _look(self, node: NodeId, pod_set: PodSetView, flavor: FlavorView) -> _Node | None:
        """The cheapest way found to make the pod fit on the node; None when there is none."""
        room = self._soon.rooms[node]
        trial = room.copy()
        gone: list[Victim] = []
        for victim in self._on_node(node):
            if self._eligible is not None and self._eligible.may_go(victim, gone):
                gone.append(victim)
                self._move(trial, victim, back=False)
                if seat(room=trial, pod_set=pod_set, flavor=flavor) is not None:
                    break
        else:
            return None
        for victim in gone[-2::-1]:
            self._move(trial, victim, back=True)
            if seat(room=trial, pod_set=pod_set, flavor=flavor) is not None:
                gone.remove(victim)
            else:
                self._move(trial, victim, back=False)
        harms = [victim.harm for victim in gone]
        own, priority = max(harm[0] for harm in harms), max(harm[1] for harm in harms)
        cost = own, priority, sum(harm[2] for harm in harms), len(gone), room.rank
        return _Node(cost, node, tuple(gone), len(self._taken))

    def _move(self, trial: Room, victim: Victim, *, back: bool) -> None:
        move = trial.take if back else trial.give
        for placement in victim.held.on[trial.node.id]:
            move(holder=placement, flavor=self._soon.flavors.get(placement.flavor))


def _harm(victim: Victim) -> Harm:
    return victim.harm
