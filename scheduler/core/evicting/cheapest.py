"""Where room for one more pod costs least: the nodes of a cluster, by what is evicted on them.

Nodes come up in the order of their cheapest victim, by a lower bound of their cost, and are looked
at only when they are first. What a node costs changes when someone on it is evicted, which its
entry is then told, and when a project has no more to give back, which only makes it dearer: that
is asked again as an entry comes first.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush, heapreplace
from typing import NamedTuple, Protocol

from scheduler.core.fleet.domains import Domain
from scheduler.core.fleet.draft import Draft
from scheduler.core.held.victims import Cost, UnitId, Victim, cost_of, harm
from scheduler.core.node.fit import Room
from scheduler.core.placing.gang import seat
from scheduler.core.quota.equivalents import PARTS
from scheduler.core.snapshot import DeviceMode, DeviceView, FlavorKind, FlavorView, PodSetView
from scheduler.core.units import ClusterId, NodeId


class _Entry(NamedTuple):
    """A node: what it costs at least, or just what these `victims` cost."""

    cost: Cost
    rank: int
    changes: int
    node: NodeId
    victims: tuple[Victim, ...]


class Evictable(Protocol):
    """Whom a workload may have evicted, the least harm first."""

    def in_cluster(self, cluster: ClusterId) -> Iterator[Victim]: ...
    def on_node(self, node: NodeId) -> Iterable[Victim]: ...
    def may_go(self, victim: Victim, before: Sequence[Victim]) -> bool: ...


class Cheapest:
    """For the pods of one set and flavor. `taken` is who has been evicted already, kept up by the
    caller, as `soon` is."""

    def __init__(
        self,
        *,
        soon: Draft,
        eligible: Evictable,
        cluster: ClusterId,
        pod_set: PodSetView,
        flavor: FlavorView,
        taken: Mapping[UnitId, Victim],
        within: Domain | None = None,
    ) -> None:
        """`within`: only nodes of that domain."""
        self._pod_set = pod_set
        self._within = within
        self._flavor = flavor
        self._soon = soon
        self._eligible = eligible
        self._taken = taken
        self._ranks = None if within is None else frozenset(within.ranks)
        self._heap: list[_Entry] = []
        self._changes: dict[NodeId, int] = {}
        self._unseen = eligible.in_cluster(cluster) if within is None else self._of(within)
        self._next = next(self._unseen, None)

    def is_of(self, pod_set: PodSetView, within: Domain | None) -> bool:
        """Whether it is for pods of that set there."""
        return self._pod_set is pod_set and self._within is within

    def _of(self, domain: Domain) -> Iterator[Victim]:
        """All who hold something there, least harm first."""
        rooms = self._soon.index.rooms
        nodes = (rooms[rank].node.id for rank in domain.ranks)
        found = {victim.id: victim for node in nodes for victim in self._eligible.on_node(node)}
        return iter(sorted(found.values(), key=harm))

    def victims(self) -> tuple[Victim, ...] | None:
        """Those on one node after whose eviction the pod fits there; None when nobody helps."""
        heap = self._heap
        while self._see() or heap:
            first = heap[0]
            if first.changes != self._changes[first.node]:
                heappop(heap)
                continue
            if first.victims and self._may_all_go(first.victims):
                return first.victims
            victims = self._look(first.node)
            if victims is None:
                heappop(heap)
            else:
                heapreplace(heap, first._replace(cost=cost_of(victims), victims=victims))
        return None

    @property
    def node(self) -> NodeId:
        """Where those are that `victims` told last."""
        return self._heap[0].node

    def pass_over(self) -> None:
        """They are of no use: not this node again, until somebody on it has been evicted."""
        heappop(self._heap)

    def changed(self, nodes: Iterable[NodeId]) -> None:
        """Someone on these nodes has been evicted."""
        for node in nodes:
            if node in self._changes:
                self._push(node)

    def _see(self) -> bool:
        """Bring up the nodes that may cost no more than the first; whether there is a first."""
        heap = self._heap
        while self._next is not None and not (heap and heap[0].cost < self._next.cost):
            for node in self._next.held.on:
                if node not in self._changes:
                    self._push(node, self._next)
            self._next = next(self._unseen, None)
        return bool(heap)

    def _push(self, node: NodeId, least: Victim | None = None) -> None:
        """Bring the node up, or up again; `least` is who comes first of those in the
        cluster that hold something on it: of who has devices there nobody does less harm."""
        changes = self._changes[node] = self._changes.get(node, 0) + 1
        room = self._soon.rooms.get(node)
        if room is not None and self._ranks is not None and room.rank not in self._ranks:
            return
        bound = self._bound(room, least) if room is not None and room.rank >= 0 else None
        if room is not None and bound is not None:
            heappush(self._heap, _Entry(bound, room.rank, changes, node, ()))

    def _bound(self, room: Room, least: Victim | None) -> Cost | None:
        """What eviction costs there at least; None when all of it would not do.

        Of pods that want whole devices each lacks some. At least one who holds such a device goes,
        and a device costs at least its part of the work that holds it.
        """
        lacking = self._lacking(room)
        if lacking is None:
            return None
        stays = least is None or least.held.is_in(self._taken)
        if least is not None and not stays and 0 < lacking <= self._gives(least, room):
            return least.cost
        each: list[int] = []
        first: Cost | None = None
        worst: Cost | None = None
        for victim in self._on_node(room.node.id):
            cost = victim.cost
            if lacking <= 0:
                return cost
            if worst is not None and len(each) >= lacking and cost[:2] > worst[:2]:
                break
            devices = self._gives(victim, room)
            if devices:
                first, worst = first or cost, cost
                each += [cost[2] // devices] * devices
        if first is None or worst is None or len(each) < lacking:
            return None
        return max(first, (worst[0], worst[1], sum(sorted(each)[:lacking]), 1))

    def _lacking(self, room: Room) -> int | None:
        """Whole devices that the pod lacks there; 0 also for what holds none. None where there are
        not as many, whoever holds them."""
        if self._flavor.kind is not FlavorKind.WHOLE:
            return 0
        suit = [id for id, device in room.devices.items() if self._suits(device, room)]
        if len(suit) < self._pod_set.gpu_count:
            return None
        return self._pod_set.gpu_count - sum(not room.taken[id] for id in suit)

    def _suits(self, device: DeviceView, room: Room) -> bool:
        return (
            device.usable
            and device.mode is DeviceMode.WHOLE
            and device.model == self._flavor.model
            and device.id not in room.broken
        )

    def _gives(self, victim: Victim, room: Room) -> int:
        """Of how many devices there that the pod could have it holds something. On a node that has
        lost some, others stand in: whichever it gives back, another may come free."""
        held = {id for placement in victim.held.on[room.node.id] for id, _ in placement.spans}
        if room.lost:
            return len(held)
        devices = map(room.devices.get, held)
        return sum(device is None or self._suits(device, room) for device in devices)

    def _on_node(self, node: NodeId) -> Iterator[Victim]:
        return (v for v in self._eligible.on_node(node) if not v.held.is_in(self._taken))

    def _may_all_go(self, victims: tuple[Victim, ...]) -> bool:
        may_go = self._eligible.may_go
        return all(may_go(victim, victims[:i]) for i, victim in enumerate(victims))

    def _look(self, node: NodeId) -> tuple[Victim, ...] | None:
        """The cheaper of two choices: by what each victim loses, and by that for what it gives."""

        def rate(victim: Victim) -> tuple[int, int, int]:
            kind, priority, lost_milli_s, _ = victim.cost
            given_milli = max(1, victim.held.given_milli(node))
            return kind, priority, lost_milli_s * PARTS // given_milli

        by_loss = list(self._on_node(node))
        by_rate = sorted(by_loss, key=rate)
        found = self._choose(node, by_loss)
        if found is None or by_rate == by_loss:
            return found
        return min(found, self._choose(node, by_rate) or found, key=cost_of)

    def _choose(
        self, node: NodeId, victims: list[Victim], *, again: bool = True
    ) -> tuple[Victim, ...] | None:
        """The first of them until the pod fits, less those who turn out not to be needed. Where
        some had to stay for who went before, and it does not fit, once more: who gives most goes
        first."""
        trial = self._soon.rooms[node].copy()
        gone: list[Victim] = []
        stayed = False
        for victim in victims:
            whole = victim.held.whole
            if whole is not None and any(other.held is whole for other in gone):
                continue
            others = [other for other in gone if other.held.whole is not victim.held]
            if self._eligible.may_go(victim, others):
                for pod in gone if len(others) < len(gone) else ():
                    if pod not in others:  # it goes with its workload
                        self._move(trial, pod, back=True)
                gone = [*others, victim]
                self._move(trial, victim, back=False)
                if self._fits(trial):
                    break
            else:
                stayed = True
        else:
            if not (again and stayed and gone):
                return None
            most = sorted(victims, key=lambda victim: -victim.held.given_milli(node))
            return self._choose(node, most, again=False)
        for victim in gone[-2::-1]:
            self._move(trial, victim, back=True)
            if self._fits(trial):
                gone.remove(victim)
            else:
                self._move(trial, victim, back=False)
        return tuple(gone)

    def _fits(self, trial: Room) -> bool:
        return (
            seat(room=trial, pod_set=self._pod_set, flavor=self._flavor, slices=self._soon.slices)
            is not None
        )

    def _move(self, trial: Room, victim: Victim, *, back: bool) -> None:
        move = trial.take if back else trial.give
        for placement in victim.held.on[trial.node.id]:
            move(holder=placement, flavor=self._soon.flavors.get(placement.flavor))
