"""Who may be moved, and where to: preemptible work, whosever it is, that starts again elsewhere.

It lands with as many pods as it has, in the clusters, flavors and domains that it accepts, within
its project's quota. It has run for its least time and was not moved within REST_S, so that none
is kept from getting on. It ends later than it would have: whoever might then run into a
reservation stays. What it leaves is free for who comes next, so where room is kept it stays.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from scheduler.core.fleet.draft import Draft
from scheduler.core.held.candidates import Candidates
from scheduler.core.held.victims import Held, Victim
from scheduler.core.placing.place import clusters_for, place_gang
from scheduler.core.plan import Landing, Place
from scheduler.core.reasons import PreemptRule
from scheduler.core.request import Option, Request, Requests
from scheduler.core.snapshot import (
    HoldingView,
    PendingView,
    Snapshot,
)
from scheduler.core.units import ClusterId, FlavorId, NodeId, ProjectId

REST_S = 24 * 3600
"""Who was moved is not moved again for so long."""
MOST_MOVERS = 512
"""Those of a cluster whose nodes are looked at, so that a plan takes no longer for a large one."""


class Landed(NamedTuple):
    """A mover in the draft: where it starts again, and with which option."""

    landing: Landing
    project: ProjectId
    option: Option


class Movers:
    """Who may move, and where to. Whoever was moved by one search is not there for the next."""

    def __init__(
        self,
        *,
        snapshot: Snapshot,
        candidates: Candidates,
        draft: Draft,
        may_return: Callable[[HoldingView, Request], bool],
        kept: Collection[NodeId] = (),
    ) -> None:
        """`draft` is the fleet as it will be; moves are made in it. `may_return` says whether one
        that ended now might start again, by the caps and the reservations. On the nodes `kept`
        room is kept for others."""
        self.draft = draft
        self._may_return = may_return
        self._kept = kept
        self._at = snapshot.at
        self._candidates = candidates
        self._requests = Requests(flavors=draft.flavors, book=draft.book)
        self._held = {queue.project for queue in snapshot.queues if queue.held}
        self._on_node: dict[NodeId, list[Victim]] = {}
        self._in_cluster: dict[tuple[ClusterId, str], list[Victim]] = {}

    def in_cluster(self, cluster: ClusterId, model: str) -> Iterator[Victim]:
        """Those that hold devices of the model there, or anything for none: the least loss first,
        MOST_MOVERS at most."""
        found = self._in_cluster.get((cluster, model))
        if found is None:
            held = self._candidates.least_lost(cluster=cluster, model=model)
            least = islice(held, MOST_MOVERS)
            found = self._in_cluster[cluster, model] = _by_loss(least, self.may_move)
        return iter(found)

    def on_node(self, node: NodeId) -> Iterator[Victim]:
        """The same of those that hold something there."""
        found = self._on_node.get(node)
        if found is None:
            found = self._on_node[node] = _by_loss(self._candidates.on_node(node), self.may_move)
        return iter(found)

    def alone(self, node: NodeId) -> Iterator[Held]:
        """Those of them that have to be in no domain."""
        return (v.held for v in self.on_node(node) if _may_be_anywhere(v.held.holding))

    def land(self, held: HoldingView) -> Landed | None:
        """Where it starts again in the draft, which has it then; None leaves the draft as it was.

        It has to have left the draft. With the first option, in the first cluster, that does.
        """
        waiting = again(held)
        request = self._requests.of(waiting)
        for option in request.options:
            if not all(self._left(held.project, f) >= asked for f, asked in option.needs):
                continue
            for cluster in clusters_for(draft=self.draft, request=request, option=option):
                places = place_gang(
                    draft=self.draft,
                    pending=waiting,
                    request=request,
                    option=option,
                    cluster=cluster,
                    spare={},
                )
                if places is not None:
                    return Landed(
                        Landing(held.id, cluster, places, self._at), held.project, option
                    )
        return None

    def land_at(self, held: Held, place: Place) -> Landed | None:
        """As `land`, for who holds one place, at this one of the same flavor in its cluster."""
        of, flavor = held.holding, self.draft.flavors[place.flavor]
        request = self._requests.of(again(of))
        option = next((o for o in request.options if o.flavors == (flavor,)), None)
        if option is None or self.draft.rooms[place.node].misfit(place=place, flavor=flavor):
            return None
        self.draft.add(project=of.project, holder=place)
        return Landed(Landing(of.id, of.cluster, (place,), self._at), of.project, option)

    def are_lawful(self, project: ProjectId, option: Option) -> bool:
        """Whether the project may hold what it has been charged of the option's flavors."""
        book = self.draft.book
        return all(book.is_lawful(project=project, flavor=flavor) for flavor, _ in option.needs)

    def forget(self, moved: Collection[Held]) -> None:
        """They are being moved."""
        for held in moved:
            self._candidates.forget(held)
            for node in held.on:
                self._on_node.pop(node, None)

    def _left(self, project: ProjectId, flavor: FlavorId) -> int:
        left = self.draft.book.available(project=project, flavor=flavor)
        return -1 if left is None else left

    def may_move(self, held: HoldingView) -> bool:
        """Whether it runs whole, has rested, might start again if it ended now, and leaves nothing
        that is kept."""
        if any(placement.node in self._kept for placement in held.placements):
            return False
        if held.moved_at is not None and self._at - held.moved_at < REST_S:
            return False
        counts = Counter(placement.pod_set for placement in held.placements)
        whole = all(counts[pod_set.id] >= pod_set.min_count for pod_set in held.pod_sets)
        open = held.project not in self._held
        if not (held.pod_sets and whole and open):
            return False
        return self._may_return(held, self._requests.of(again(held)))


class OfModel(NamedTuple):
    """Whom one search may move: each node is looked at for who holds devices of the model."""

    movers: Movers
    model: str

    def in_cluster(self, cluster: ClusterId) -> Iterator[Victim]:
        return self.movers.in_cluster(cluster, self.model)

    def on_node(self, node: NodeId) -> Iterator[Victim]:
        return self.movers.on_node(node)

    def may_go(self, victim: Victim, before: Sequence[Victim]) -> bool:
        """They all may: each has to land before any goes."""
        return True


def again(held: HoldingView) -> PendingView:
    """As it waits once it has ended, with as many pods as it has."""
    counts = Counter(placement.pod_set for placement in held.placements)
    return PendingView(
        id=held.id,
        project=held.project,
        priority=held.priority,
        preemptible=held.preemptible,
        submitted_at=held.admitted_at,
        pod_sets=tuple(
            replace(pod_set, count=counts[pod_set.id], min_count=counts[pod_set.id])
            for pod_set in held.pod_sets
            if counts[pod_set.id]
        ),
        run_time_limit_s=held.run_time_limit_s,
        clusters=held.clusters,
        user=held.user,
        topology=held.topology,
        array=held.array,
    )


def _may_be_anywhere(held: HoldingView) -> bool:
    return held.topology is None and all(p.topology is None for p in held.pod_sets)


def _by_loss(found: Iterable[Held], may_move: Callable[[HoldingView], bool]) -> list[Victim]:
    whole = (h for h in found if h.is_whole and len(h.placements) == len(h.holding.placements))
    movers = [Victim.of(h, PreemptRule.CONSOLIDATE) for h in whole if may_move(h.holding)]
    return sorted(movers, key=lambda victim: (victim.cost, victim.id))
