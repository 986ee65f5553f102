"""Room made by moving work: who is stopped has a place where it starts again at once.

What moves loses is bounded by a budget, in thousandths of devices x seconds since it was saved.
Greedy, as evictions are: pod by pod the node where that loses least (`cheapest`), with its movers
landed before the next pod is placed. For a MIG slice `reshape` says which slices move, and where
to; what loses least is tried only where that would lose too much.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from scheduler.core.bounds import firm
from scheduler.core.evicting.cheapest import Cheapest
from scheduler.core.fleet.domains import Domain
from scheduler.core.fleet.draft import Draft
from scheduler.core.fleet.space import free_milli, free_within_milli
from scheduler.core.held.victims import Held, UnitId, Victim, loss_milli_s
from scheduler.core.moving.movers import Landed, Movers, OfModel
from scheduler.core.moving.reshaping import reshaped
from scheduler.core.placing.gang import seat
from scheduler.core.placing.layouts import Layout
from scheduler.core.placing.place import clusters_for, layouts, place_gang
from scheduler.core.plan import Landing, Place
from scheduler.core.reasons import PreemptRule
from scheduler.core.request import Option, Request
from scheduler.core.snapshot import (
    FlavorView,
    PendingView,
    PodSetView,
)
from scheduler.core.units import ClusterId, NodeId

MOST_IN_VAIN = 8
"""Nodes off which one search tries to move work that finds no other place."""
MOST_DOMAINS = 8
"""Domains of a cluster in which room is made for what has to be in one: those with most free."""
MOST_LAYOUTS = 2
"""Of each of them, or of a cluster, for what has to be in domains pod set by pod set."""


@dataclass(frozen=True, slots=True)
class Moved:
    """Room for a workload at `places`, which the draft has as the movers' `landings`."""

    cluster: ClusterId
    places: tuple[Place, ...]
    landings: tuple[Landing, ...]
    lost_milli_s: int


@dataclass(frozen=True, slots=True)
class Dearer:
    """Moving so many slices would do, and lose more than may be lost."""

    slices: int
    lost_milli_s: int


def free_in_sum(*, draft: Draft) -> int:
    """Of whatever there is, in thousandths. Room can be made for no more than that, since whoever
    moves takes as much elsewhere as it leaves."""
    return sum(
        free_milli(draft=draft, cluster=cluster, flavor=flavor)
        for cluster in draft.clusters
        for flavor in draft.flavors.values()
    )


def make_room(
    *,
    movers: Movers,
    pending: PendingView,
    request: Request,
    option: Option,
    budget_milli_s: int,
    emptied: Callable[[], Draft],
) -> Moved | Dearer | None:
    """Room for the workload in the movers' draft, where the least is lost; None when there is
    none to be made, which leaves the draft as it was, as Dearer does. `emptied` is that draft
    without any who could move, or with even less."""
    best: tuple[int, int] | None = None
    dearer: Dearer | None = None
    where = list(_where(movers.draft, pending, request, option, emptied))
    for nth, (cluster, within) in enumerate(where):
        mark = movers.draft.checkpoint()
        search = _Search(movers, pending, request, option, cluster, within, budget_milli_s)
        found = search.run()
        movers.draft.rollback(mark)
        dearer = dearer or search.dearer
        if found is not None and (best is None or found.lost_milli_s < best[0]):
            best = found.lost_milli_s, nth
    if best is None:
        return dearer
    search = _Search(movers, pending, request, option, *where[best[1]], budget_milli_s)
    made = search.run()
    movers.forget(search.moved)
    return made


def _where(
    draft: Draft,
    pending: PendingView,
    request: Request,
    option: Option,
    emptied: Callable[[], Draft],
) -> Iterator[tuple[ClusterId, Layout | None]]:
    for cluster in clusters_for(draft=draft, request=request, option=option):
        wholes = _wholes(draft, pending, option, cluster)
        if not request.bound:
            yield from ((cluster, None if whole is None else Layout(whole)) for whole in wholes)
            continue
        for whole in wholes:
            found = layouts(
                draft=draft,
                emptied=emptied(),
                pending=pending,
                request=request,
                option=option,
                cluster=cluster,
                whole=whole,
                most=MOST_LAYOUTS,
            )
            yield from ((cluster, layout) for layout in found)


def _wholes(
    draft: Draft, pending: PendingView, option: Option, cluster: ClusterId
) -> list[Domain | None]:
    """The domains in which all of it may be, those with most free first; None for anywhere."""
    topology = pending.topology
    if topology is None or not topology.required:
        return [None]
    kinds = {flavor.id: flavor for flavor in option.flavors}.values()
    ranked = [
        (-sum(free_within_milli(domain=domain, flavor=f) for f in kinds), domain.path, domain)
        for domain in draft.domains.of(cluster=cluster, level=topology.level)
    ]
    return [domain for *_, domain in sorted(ranked, key=lambda each: each[:2])[:MOST_DOMAINS]]


class _Search:
    """One attempt in one cluster or domain."""

    def __init__(
        self,
        movers: Movers,
        pending: PendingView,
        request: Request,
        option: Option,
        cluster: ClusterId,
        within: Layout | None,
        budget_milli_s: int,
    ) -> None:
        self._movers = movers
        self._draft = movers.draft
        self._pending = pending
        self._request = request
        self._option = option
        self._cluster = cluster
        self._within = within
        self._left_milli_s = budget_milli_s
        self._in_vain = 0
        self._cheapest: Cheapest | None = None
        self._landed: list[Landed] = []
        self._taken: dict[UnitId, Victim] = {}
        self.lost_milli_s = 0
        self.dearer: Dearer | None = None

    @property
    def moved(self) -> tuple[Held, ...]:
        return tuple(victim.held for victim in self._taken.values())

    def run(self) -> Moved | None:
        """Room in the draft; None leaves it as it was."""
        mark = self._draft.checkpoint()
        places = place_gang(
            draft=self._draft,
            pending=self._pending,
            request=self._request,
            option=self._option,
            cluster=self._cluster,
            spare={},
            make_room=self._make_room,
            within=self._within,
        )
        lawful = self._movers.are_lawful(self._pending.project, self._option) and all(
            self._movers.are_lawful(each.project, each.option) for each in self._landed
        )
        asks, charged = self._pending, [(flavor, 0) for flavor, _ in self._option.needs]
        lawful = lawful and (
            asks.preemptible
            or firm.rooms(self._draft.book, project=asks.project, needs=charged) is not None
        )
        if places is None or not lawful or not self._landed:
            self._draft.rollback(mark)
            return None
        landings = tuple(each.landing for each in self._landed)
        return Moved(self._cluster, places, landings, self.lost_milli_s)

    def _make_room(self, pod_set: PodSetView, flavor: FlavorView, within: Domain | None) -> bool:
        """Move who loses least on one node, so that the pod fits there."""
        if self._reshape(pod_set, flavor, within):
            return True
        cheapest = self._cheapest
        if cheapest is None or not cheapest.is_of(pod_set, within):
            cheapest = self._cheapest = Cheapest(
                soon=self._draft,
                eligible=OfModel(self._movers, flavor.model),
                cluster=self._cluster,
                pod_set=pod_set,
                flavor=flavor,
                taken=self._taken,
                within=within,
            )
        while self._in_vain < MOST_IN_VAIN and (victims := cheapest.victims()) is not None:
            if loss_milli_s(victims) > self._left_milli_s:
                return False  # nor is any other cheaper
            if self._move(cheapest.node, victims, pod_set, flavor):
                on = {node for victim in victims for node in victim.held.on}
                on |= {p.node for each in self._landed for p in each.landing.places}
                cheapest.changed(on)
                return True
            self._in_vain += 1
            cheapest.pass_over()
        return False

    def _move(
        self, node: NodeId, victims: Sequence[Victim], pod_set: PodSetView, flavor: FlavorView
    ) -> bool:
        """Move them all off; False, when one finds no other place, leaves the draft as it was."""
        draft, project = self._draft, self._pending.project
        mark = draft.checkpoint()
        for victim in victims:
            self._remove(victim)
        here = seat(room=draft.rooms[node], pod_set=pod_set, flavor=flavor, slices=draft.slices)
        if here is None:
            draft.rollback(mark)
            return False
        draft.add(project=project, holder=here)
        landed: list[Landed] = []
        for victim in sorted(victims, key=_largest_first):
            found = self._movers.land(victim.held.holding)
            if found is None:
                draft.rollback(mark)
                return False
            landed.append(found)
        draft.remove(project=project, holder=here)
        self._note(victims, landed)
        return True

    def _reshape(self, pod_set: PodSetView, flavor: FlavorView, within: Domain | None) -> bool:
        """Move slices so that one more can be cut, if that does not lose too much."""
        draft = self._draft
        found = reshaped(
            draft=draft,
            pools=draft.index.pools_for(cluster=self._cluster, flavor=flavor)
            if within is None
            else within.pools_for(flavor=flavor),
            pod_set=pod_set,
            flavor=flavor,
            movable=self._alone,
        )
        if found is None:
            return False
        victims = [Victim.of(held, PreemptRule.CONSOLIDATE) for held in found.movers]
        lost = loss_milli_s(victims)
        if lost > self._left_milli_s:
            self.dearer = Dearer(len(self._taken) + len(victims), self.lost_milli_s + lost)
            return False
        mark = draft.checkpoint()
        for victim in victims:
            self._remove(victim)
        if draft.rooms[found.place.node].misfit(place=found.place, flavor=flavor) is None:
            draft.add(project=self._pending.project, holder=found.place)
            landed = [
                self._movers.land_at(*each) for each in zip(found.movers, found.homes, strict=True)
            ]
            if all(landed):
                draft.remove(project=self._pending.project, holder=found.place)
                self._note(victims, [each for each in landed if each is not None])
                return True
        draft.rollback(mark)
        return False

    def _alone(self, node: NodeId) -> Iterator[Held]:
        return (h for h in self._movers.alone(node) if h.id not in self._taken)

    def _remove(self, victim: Victim) -> None:
        for placement in victim.held.holding.placements:
            self._draft.remove(project=victim.held.holding.project, holder=placement)

    def _note(self, victims: Sequence[Victim], landed: Sequence[Landed]) -> None:
        lost = loss_milli_s(victims)
        self.lost_milli_s += lost
        self._left_milli_s -= lost
        self._taken |= {victim.id: victim for victim in victims}
        self._landed += landed


def _largest_first(victim: Victim) -> tuple[int, UnitId]:
    return -sum(placement.amount_milli for placement in victim.held.holding.placements), victim.id
