"""The pods of one workload as they are put into a draft, one after another.

Each goes to the best node for it as things stand (`space`): that is exact for like pods. Where
unlike ones miss a packing so, others are tried, a bounded number of them. Pod sets that have to be
in domains of their own come first, as `layouts` has it; then those that had better be: group by
group in the first domain with room, from their level outwards, then anywhere, and anywhere at once
where not all would fit so.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice

from scheduler.core.fleet.domains import Domain
from scheduler.core.fleet.draft import Draft
from scheduler.core.fleet.packed import Sought
from scheduler.core.fleet.space import candidates, free_milli, free_within_milli, most_pods
from scheduler.core.node.fit import Room
from scheduler.core.node.pick import Spans, pick, spans_on
from scheduler.core.node.slices import Slices
from scheduler.core.placing.layouts import ANYWHERE, Groups, Layout, Layouts, Mark, Part
from scheduler.core.plan import Place
from scheduler.core.quota.quota import amount_milli
from scheduler.core.request import Option, Request
from scheduler.core.snapshot import FlavorView, PendingView, PodSetView
from scheduler.core.units import ClusterId, FlavorId

MakeRoom = Callable[[PodSetView, FlavorView, Domain | None], bool]
"""Frees room for one pod of the flavor in the draft, within the domain; False when it can't."""

_MOST_UNLIKE = 32
"""Pods for which other ways are tried than one after another to the best node,"""
_MOST_NODES = 64
"""for each so many nodes,"""
_MOST_TRIES = 1024
"""and in all so many times a pod to a node."""


class Gang:
    """The pods of one workload that have been placed so far."""

    def __init__(
        self,
        draft: Draft,
        pending: PendingView,
        option: Option,
        cluster: ClusterId,
        *,
        packs: bool,
        layout: Layout = ANYWHERE,
    ) -> None:
        """`layout` says where its pods have to be, as far as that is known: it is found for bound
        pod sets of which it says nothing."""
        self._draft = draft
        self._pending = pending
        self._option = option
        self._cluster = cluster
        self._packs = packs
        self._within = layout.whole
        self._layout = layout
        self._placed: list[list[Place]] = [[] for _ in pending.pod_sets]
        self._charged: Counter[FlavorId] = Counter()
        self._tries = 0

    def start(self, request: Request, make_room: MakeRoom | None) -> bool:
        """`min_count` pods of each set; False leaves the draft as it was."""
        mark = self.mark()
        if self._put_least(request, make_room):
            return True
        self.back(mark)
        plainly = request.unlike and not request.bound and make_room is None
        return plainly and self._is_in_sum_free() and self._search(self._least(request))

    def try_start(self, request: Request) -> int:
        """How many of them fit until one does not. The draft stays as it is."""
        mark = self._draft.checkpoint()
        self._put_least(request, None)
        self._draft.rollback(mark)
        return sum(map(len, self._placed))

    def put_more(self, i: int) -> bool:
        """One more pod of the ith pod set, if it fits: beside the others if it can be."""
        topology, of_set = self._pending.topology, self._pending.pod_sets[i].topology
        if own := self._layout.of(i):
            if self._put(i, own[-1], None):
                return True
            if of_set is not None and of_set.required:
                return False
        if self._put(i, self._within, None):
            return True
        may_leave = self._within is not None and topology is not None and not topology.required
        return may_leave and self._put(i, None, None)

    def put(self, nth: int, within: Domain) -> bool:
        """One more pod of the nth pod set in that domain, if it fits."""
        return self._put(nth, within, None)

    def mark(self) -> Mark:
        """To be taken back to."""
        return Mark(self._draft.checkpoint(), tuple(map(len, self._placed)))

    def back(self, mark: Mark) -> None:
        """Take away what was put since."""
        self._draft.rollback(mark.draft)
        for places, count in zip(self._placed, mark.pods, strict=True):
            for place in places[count:]:
                self._charged[place.flavor] -= place.amount_milli
            del places[count:]

    def parts(self, i: int) -> list[Part]:
        """The domains that may hold groups of the ith pod set, the one to fill first first: those
        that may hold all of it, least free first; then those with most free."""
        topology = self._pending.pod_sets[i].topology
        return [] if topology is None else self._parts(i, topology.level)

    def fill(self, request: Request, layout: Layout) -> bool:
        """Put all others beside the bound pod sets, which stand as the layout says."""
        self._layout = layout
        return self._put_rest(request, None)

    def groups_in(self, i: int, domain: Domain) -> int:
        """How many groups of the ith pod set fit there, at most as many as start. The draft stays
        as it is."""
        size, number = Groups.of(self._pending.pod_sets[i])
        return self.pods_in(i, domain, size * number) // size

    def pods_in(self, i: int, domain: Domain, most: int) -> int:
        """The same of pods."""
        mark, pods = self.mark(), 0
        while pods < most and self.put(i, domain):
            pods += 1
        self.back(mark)
        return pods

    def charged(self, flavor: FlavorId) -> int:
        return self._charged[flavor]

    def places(self) -> tuple[Place, ...]:
        in_order = [place for of_set in self._placed for place in of_set]
        if len(in_order) == 1:
            return (in_order[0],)
        return tuple(replace(place, rank=rank) for rank, place in enumerate(in_order))

    def _put_least(self, request: Request, make_room: MakeRoom | None) -> bool:
        if not request.bound and not request.near:
            return all(self._put(i, self._within, make_room) for i in self._least(request))
        if not request.bound or self._layout.sets:
            laid_out = (
                self._put(i, domain, make_room)
                for i in request.bound
                for domain in self._layout.of(i)
            )
            return all(laid_out) and self._put_rest(request, make_room)
        ways = Layouts(pending=self._pending, request=request, whole=self._within, gang=self)
        return ways.search(self.parts, partial(self.fill, request))

    def _least(self, request: Request) -> list[int]:
        """The pod sets of the least start, one for each pod, largest first."""
        sets = self._pending.pod_sets
        return [i for i in request.order for _ in range(sets[i].min_count)]

    def _is_in_sum_free(self) -> bool:
        """Of each flavor, and few pods enough to try ways for them: a quick no."""
        draft, cluster, within = self._draft, self._cluster, self._within
        asked = dict(self._option.needs)
        return sum(p.min_count for p in self._pending.pod_sets) <= _MOST_UNLIKE and all(
            asked[flavor.id]
            <= (
                free_milli(draft=draft, cluster=cluster, flavor=flavor)
                if within is None
                else free_within_milli(domain=within, flavor=flavor)
            )
            for flavor in self._option.flavors
        )

    def _search(self, pods: Sequence[int]) -> bool:
        """Pods of these sets, where the best node for each in its turn misses a packing: other
        nodes for the first of them, of nodes alike the first, then for the next; a bounded number
        of times."""
        if not pods:
            return True
        (i, *rest), mark, seen = pods, self.mark(), set[object]()
        pod_set, flavor, draft = self._pending.pod_sets[i], self._option.flavors[i], self._draft
        best = candidates(draft, self._cluster, pod_set, flavor, self._within)
        for rank in list(islice(best, _MOST_NODES)):
            room = draft.index.rooms[rank]
            place = seat(room=room, pod_set=pod_set, flavor=flavor, slices=draft.slices)
            if place is None or (alike := _what_is_free(room)) in seen:
                continue
            seen.add(alike)
            if self._tries == _MOST_TRIES:
                return False
            self._tries += 1
            self._add(i, place)
            if self._search(rest):
                return True
            self.back(mark)
        return False

    def _put_rest(self, request: Request, make_room: MakeRoom | None) -> bool:
        """All that is not bound: what had better be together so, if all then fits."""
        rest = [i for i in request.order if i not in request.bound]
        mark, layout = self.mark(), self._layout
        if request.near:
            apart = (i for i in rest if i not in request.near)
            near = all(self._put_near(i) for i in request.near)
            if near and all(self._put_set(i, None) for i in apart):
                return True
            self.back(mark)
            self._layout = layout
        return all(self._put_set(i, make_room) for i in rest)

    def _put_set(self, i: int, make_room: MakeRoom | None) -> bool:
        least = self._pending.pod_sets[i].min_count
        return all(self._put(i, self._within, make_room) for _ in range(least))

    def _put_near(self, i: int) -> bool:
        """Group by group, as near each other as they fit."""
        topology = self._pending.pod_sets[i].topology
        size, left = Groups.of(self._pending.pod_sets[i])
        if topology is not None:
            for level in self._draft.domains.outwards(topology.level):
                for part in self._parts(i, level):
                    while left and self._put_group(i, size, part.domain):
                        left -= 1
        return all(self._put(i, self._within, None) for _ in range(left * size))

    def _put_group(self, i: int, size: int, domain: Domain) -> bool:
        mark = self.mark()
        if all(self.put(i, domain) for _ in range(size)):
            if size == self._pending.pod_sets[i].min_count:
                self._layout = self._layout.beside(i, domain, of=len(self._placed))
            return True
        self.back(mark)
        return False

    def _parts(self, i: int, level: str) -> list[Part]:
        pod_set, flavor = self._pending.pod_sets[i], self._option.flavors[i]
        size, number = Groups.of(pod_set)
        found = []
        inside = self._draft.domains.inside(cluster=self._cluster, level=level, whole=self._within)
        for nth, domain in enumerate(inside):
            most = most_pods(domain=domain, pod_set=pod_set, flavor=flavor)
            if most >= size:
                free, short = free_within_milli(domain=domain, flavor=flavor), most < pod_set.count
                part = Part(domain, min(number, most // size), partial(self.groups_in, i, domain))
                found.append((short, -free if short else free, nth, part))
        return [part for *_, part in sorted(found, key=lambda each: each[:3])]

    def _put(self, i: int, within: Domain | None, make_room: MakeRoom | None) -> bool:
        pod_set, flavor = self._pending.pod_sets[i], self._option.flavors[i]
        place = self._seek(pod_set, flavor, within)
        if place is None and make_room is not None and make_room(pod_set, flavor, within):
            place = self._seek(pod_set, flavor, within)
        if place is None:
            return False
        self._add(i, place)
        return True

    def _add(self, i: int, place: Place) -> None:
        self._draft.add(project=self._pending.project, holder=place)
        self._placed[i].append(place)
        self._charged[place.flavor] += place.amount_milli

    def _seek(
        self, pod_set: PodSetView, flavor: FlavorView, within: Domain | None
    ) -> Place | None:
        """The best place for one more pod, in the draft as it stands.

        At the first node that is packed the packing decides among all that are; not in a domain.
        """
        draft, cluster, asked = self._draft, self._cluster, False
        rooms, sought = draft.index.rooms, None
        if self._packs and within is None:
            sought = draft.packed.sought(cluster=cluster, pod_set=pod_set, flavor=flavor)
        for rank in candidates(draft, cluster, pod_set, flavor, within):
            room, place = rooms[rank], None
            if sought and room.node.id in sought:
                if not asked:
                    place = _pack(sought, pod_set, flavor)
                asked = True
            elif pod_set.memory_mib <= room.memory_mib:
                place = seat(room=room, pod_set=pod_set, flavor=flavor, slices=draft.slices)
            if place is not None:
                return place
        return None


def seat(*, room: Room, pod_set: PodSetView, flavor: FlavorView, slices: Slices) -> Place | None:
    """A place, of rank 0, for one pod on this very node; None when it does not fit."""
    spans = pick(room=room, pod_set=pod_set, flavor=flavor, slices=slices)
    return None if spans is None else _fitting(room, pod_set, flavor, spans)


def _fitting(room: Room, pod_set: PodSetView, flavor: FlavorView, spans: Spans) -> Place | None:
    place = Place(
        pod_set=pod_set.id,
        rank=0,
        node=room.node.id,
        flavor=flavor.id,
        amount_milli=amount_milli(pod_set=pod_set),
        cpu_milli=pod_set.cpu_milli,
        memory_mib=pod_set.memory_mib,
        spans=spans,
    )
    return place if room.misfit(place=place, flavor=flavor) is None else None


def _pack(sought: Sought, pod_set: PodSetView, flavor: FlavorView) -> Place | None:
    found = sought.best()
    if found is None:
        return None
    room, devices = found
    spans = spans_on(room=room, devices=devices, milli=pod_set.gpu_milli, flavor=flavor)
    return _fitting(room, pod_set, flavor, spans)


def _what_is_free(room: Room) -> object:
    """The same for nodes that are alike to any pod."""
    devices = Counter(
        (each.model, each.mode, each.slices, each.shares, each.replicas, room.taken[id])
        for id, each in room.devices.items()
        if each.usable and id not in room.broken and id not in room.media
    )
    return room.cpu_milli, room.memory_mib, frozenset(devices.items()), frozenset(room.media)
