"""Planned moves in one cluster, so that more can start there: slices that wait, and whole nodes.

Greedy, within a budget as `moves` has it. First the slices that wait: for each without a free span
the moves that `reshape` finds. Then whole nodes: the node first whose work loses least, if all of
it goes on elsewhere and no other empty node is opened for that. Who moves, and where to, is as in
`movers`. This proposes; who carries it out asks anew, of a fresh snapshot.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

from scheduler.core.bounds.caps import Caps
from scheduler.core.evicting.preempt import Evictions
from scheduler.core.faults import faults
from scheduler.core.fleet.draft import Draft
from scheduler.core.fleet.space import candidates
from scheduler.core.held.victims import Victim, loss_milli_s
from scheduler.core.moving.consolidate import may_return
from scheduler.core.moving.landing import fits, is_over
from scheduler.core.moving.movers import Landed, Movers
from scheduler.core.moving.reshaping import reshaped
from scheduler.core.node.fit import Room
from scheduler.core.placing.gang import seat
from scheduler.core.plan import Landing, Place
from scheduler.core.policy import Policy
from scheduler.core.reasons import PreemptRule
from scheduler.core.snapshot import (
    FlavorKind,
    FlavorView,
    HoldingView,
    PendingView,
    PodSetView,
    Snapshot,
)
from scheduler.core.sound import sound
from scheduler.core.units import ClusterId, NodeId, WorkloadId

MOST_SLICES = 64
"""Waiting slices for which spans are looked for, in the order of their ids."""
MOST_NODES = 256
"""Nodes off which work is tried to be moved."""


@dataclass(frozen=True, slots=True)
class Step:
    """A workload leaves `frees`, a node, and starts again where its landing says."""

    frees: NodeId
    landing: Landing
    lost_milli_s: int


@dataclass(frozen=True, slots=True)
class Figures:
    """What could start: nodes with devices that nothing is on, and waiting slices with a span."""

    free_nodes: int
    slices: int


@dataclass(frozen=True, slots=True)
class Proposal:
    """Steps in order; each stands on those before it."""

    steps: tuple[Step, ...]
    before: Figures
    after: Figures

    @property
    def lost_milli_s(self) -> int:
        return sum(step.lost_milli_s for step in self.steps)


def defragment(*, snapshot: Snapshot, cluster: ClusterId, budget_milli_s: int) -> Proposal:
    """The moves that lose no more than the budget, () when none helps. Says nothing of a cluster
    that takes no new work, or of one that there is not. What contradicts itself is left out, as
    in a plan; and nobody comes where others are to land."""
    of = sound(snapshot, faults(snapshot))
    return _Defragmentation(of, cluster, budget_milli_s).run()


class _Defragmentation:
    def __init__(self, snapshot: Snapshot, cluster: ClusterId, budget_milli_s: int) -> None:
        evictions = Evictions(snapshot=snapshot, policy=Policy())
        caps = Caps.running(snapshot)
        self._draft: Draft = evictions.soon
        self._movers = Movers(
            snapshot=snapshot,
            candidates=evictions.candidates,
            draft=self._draft,
            may_return=partial(may_return, caps, evictions.windows),
        )
        self._snapshot = snapshot
        self._cluster = cluster
        self._left_milli_s = budget_milli_s
        self._steps: list[Step] = []
        self._kept: list[tuple[PendingView, Place]] = []
        self._landing: set[WorkloadId] = set()

    def run(self) -> Proposal:
        self._land()
        nodes = self._free_nodes()
        lacking = self._seat_slices()
        before = Figures(nodes, len(self._kept))
        for pending, pod_set, flavor in lacking:
            if self._reshape(pod_set, flavor):
                self._keep(pending, pod_set, flavor)
        slices = len(self._kept)
        self._free_more()
        self._give_back()
        return Proposal(tuple(self._steps), before, Figures(self._free_nodes(), slices))

    def _land(self) -> None:
        """Who lands by plans before has its places, where those are to be had still. Of use to a
        preview: while anyone lands, none is carried out."""
        snapshot, draft = self._snapshot, self._draft
        landing: dict[WorkloadId, PendingView | HoldingView] = {p.id: p for p in snapshot.pending}
        landing |= {held.id: held for held in snapshot.holding if held.releasing}
        for each in sorted(snapshot.landings, key=lambda each: (each.since, each.workload)):
            workload = landing.get(each.workload)
            if workload is None or is_over(each, at=snapshot.at):
                continue
            if fits(draft, workload, each.places):
                self._landing.add(each.workload)
                for place in each.places:
                    draft.add(project=workload.project, holder=place)

    def _rooms(self) -> Iterator[Room]:
        """Those with devices that take new work."""
        for cluster in self._snapshot.clusters:
            for node in cluster.nodes if cluster.id == self._cluster else ():
                room = self._draft.rooms[node.id]
                if room.rank >= 0 and any(device.usable for device in node.devices):
                    yield room

    def _free_nodes(self) -> int:
        return sum(not any(room.taken.values()) for room in self._rooms())

    def _waiting(self) -> Iterator[tuple[PendingView, PodSetView, FlavorView]]:
        """The slices that wait and do not land, one by one, of the flavor that each prefers."""
        waiting = (p for p in self._snapshot.pending if p.id not in self._landing)
        for pending in sorted(waiting, key=lambda p: p.id):
            for pod_set in (each for each in pending.pod_sets if each.flavors):
                flavor = self._draft.flavors.get(pod_set.flavors[0])
                if flavor and flavor.kind is FlavorKind.MIG and pod_set.gpu_count == 1:
                    for _ in range(min(pod_set.count, MOST_SLICES)):
                        yield pending, pod_set, flavor

    def _seat_slices(self) -> list[tuple[PendingView, PodSetView, FlavorView]]:
        """Keep a place for each slice that waits and has one; those that have none."""
        lacking = []
        for pending, pod_set, flavor in islice(self._waiting(), MOST_SLICES):
            if not self._keep(pending, pod_set, flavor):
                lacking.append((pending, pod_set, flavor))
        return lacking

    def _keep(self, pending: PendingView, pod_set: PodSetView, flavor: FlavorView) -> bool:
        place = self._seat(pod_set, flavor)
        if place is None:
            return False
        self._draft.add(project=pending.project, holder=place)
        self._kept.append((pending, place))
        return True

    def _give_back(self) -> None:
        for pending, place in self._kept:
            self._draft.remove(project=pending.project, holder=place)
        self._kept.clear()

    def _seat(self, pod_set: PodSetView, flavor: FlavorView) -> Place | None:
        draft = self._draft
        for rank in candidates(draft, self._cluster, pod_set, flavor):
            place = seat(
                room=draft.index.rooms[rank], pod_set=pod_set, flavor=flavor, slices=draft.slices
            )
            if place is not None:
                return place
        return None

    def _reshape(self, pod_set: PodSetView, flavor: FlavorView) -> bool:
        """Move slices so that one more has a span."""
        draft = self._draft
        found = reshaped(
            draft=draft,
            pools=draft.index.pools_for(cluster=self._cluster, flavor=flavor),
            pod_set=pod_set,
            flavor=flavor,
            movable=self._movers.alone,
        )
        if found is None:
            return False
        victims = [Victim.of(held, PreemptRule.CONSOLIDATE) for held in found.movers]
        mark = draft.checkpoint()
        self._remove(victims)
        landed = [
            self._movers.land_at(*each) for each in zip(found.movers, found.homes, strict=True)
        ]
        if draft.rooms[found.place.node].misfit(place=found.place, flavor=flavor):
            draft.rollback(mark)  # cores or memory, which those that land on the node take too
            return False
        return self._take(found.place.node, victims, landed, mark)

    def _free_more(self) -> None:
        """Whole nodes, the one first whose work loses least."""
        found = []
        for room in self._rooms():
            victims = list(self._movers.on_node(room.node.id))
            if self._empties(room, victims):
                found.append((loss_milli_s(victims), room.node.name, room.node.id))
        for _, _, node in sorted(found)[:MOST_NODES]:
            self._free(node)

    def _empties(self, room: Room, victims: Sequence[Victim]) -> bool:
        trial = room.copy()
        for victim in victims:
            for placement in victim.held.on[room.node.id]:
                trial.give(holder=placement, flavor=self._draft.flavors.get(placement.flavor))
        return bool(victims) and not any(trial.taken.values())

    def _free(self, node: NodeId) -> None:
        draft, victims = self._draft, list(self._movers.on_node(node))
        room = draft.rooms[node]
        if not self._empties(room, victims):
            return  # somebody has landed here, or has left with a gang
        mark = draft.checkpoint()
        self._remove(victims)
        first = victims[0].held.holding
        barrier = Place(
            pod_set=first.placements[0].pod_set,
            rank=0,
            node=node,
            flavor=first.placements[0].flavor,
            amount_milli=0,
            cpu_milli=room.cpu_milli,
            memory_mib=room.memory_mib,
        )
        draft.add(project=first.project, holder=barrier)
        landed = [self._movers.land(victim.held.holding) for victim in victims]
        draft.remove(project=first.project, holder=barrier)
        if self._opens([each for each in landed if each is not None]):
            draft.rollback(mark)
        else:
            self._take(node, victims, landed, mark)

    def _opens(self, landed: Sequence[Landed]) -> bool:
        """Whether a node was empty before somebody landed on it."""
        rooms: dict[NodeId, Room] = {}
        for place in (place for each in landed for place in each.landing.places):
            room = rooms.setdefault(place.node, self._draft.rooms[place.node].copy())
            room.give(holder=place, flavor=self._draft.flavors.get(place.flavor))
        for _, place in self._kept:
            if place.node in rooms:
                rooms[place.node].give(holder=place, flavor=self._draft.flavors[place.flavor])
        return any(room.devices and not any(room.taken.values()) for room in rooms.values())

    def _take(
        self,
        node: NodeId,
        victims: Sequence[Victim],
        landed: Sequence[Landed | None],
        mark: int,
    ) -> bool:
        """Keep what was done since the mark, if all have landed, lawfully and within the budget;
        else it is undone."""
        lands = [each for each in landed if each is not None]
        lawful = all(self._movers.are_lawful(each.project, each.option) for each in lands)
        if len(lands) < len(victims) or not lawful or loss_milli_s(victims) > self._left_milli_s:
            self._draft.rollback(mark)
            return False
        self._left_milli_s -= loss_milli_s(victims)
        self._movers.forget([victim.held for victim in victims])
        self._steps += (
            Step(node, each.landing, loss_milli_s([victim]))
            for victim, each in zip(victims, lands, strict=True)
        )
        return True

    def _remove(self, victims: Sequence[Victim]) -> None:
        for victim in victims:
            for placement in victim.held.holding.placements:
                self._draft.remove(project=victim.held.holding.project, holder=placement)
