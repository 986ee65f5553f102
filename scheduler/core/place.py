"""Where pods go: best fit for one pod, all or nothing for a gang, in one cluster.

The order of nodes is that of `space`. A share goes to the fullest device that still holds it;
but among nodes that are packed the prices of gaps decide (`packed`), and for slices that are cut
on demand prices of slices do (`slices`). Placing pod after pod is exact for gangs of like pods; a
gang of unlike pods is placed largest first and may miss a packing.

What has to be in one domain is tried in each that may hold it, by best fit. What had better be is
tried so in its level and those around it, then anywhere.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from scheduler.core.domains import Domain
from scheduler.core.draft import Draft
from scheduler.core.fit import Room
from scheduler.core.packed import Sought
from scheduler.core.pick import Spans, pick, spans_on
from scheduler.core.plan import Place
from scheduler.core.quota import amount_milli
from scheduler.core.request import Option, Request
from scheduler.core.slices import Slices
from scheduler.core.snapshot import FlavorView, PendingView, Placing, PodSetView
from scheduler.core.space import candidates, free_milli, free_within_milli, most_pods
from scheduler.core.units import ClusterId, FlavorId

MakeRoom = Callable[[PodSetView, FlavorView], bool]
"""Frees room for one pod of the flavor in the draft; False when it can't."""


def clusters_for(*, draft: Draft, request: Request, option: Option) -> list[ClusterId]:
    """Usable accepted clusters, the one with least free of the asked flavors first."""
    found = [cluster for cluster in draft.clusters if request.accepts(cluster)]
    if len(found) < 2:
        return found
    kinds = {flavor.id: flavor for flavor in option.flavors}.values()
    free = {c: sum(free_milli(draft=draft, cluster=c, flavor=f) for f in kinds) for c in found}
    return sorted(found, key=lambda cluster: (free[cluster], cluster))


def place_gang(
    *,
    draft: Draft,
    pending: PendingView,
    request: Request,
    option: Option,
    cluster: ClusterId,
    spare: Mapping[FlavorId, int],
    make_room: MakeRoom | None = None,
    within: Domain | None = None,
) -> tuple[Place, ...] | None:
    """Put the workload into `draft`: its places by rank; None leaves the draft as it was.

    At least `min_count` of each pod set start, then as many up to `count` as fit in the room and
    in `spare`, the quota left per flavor (in thousandths, the least start not yet taken off). When
    a pod of the least start finds no place, `make_room` is asked to free one; for what has to be
    in one domain only where `within` names that.
    """
    topology = pending.topology
    gang: _Gang | None = None
    if within is not None:
        gang = _Gang(draft, pending, option, cluster, packs=False, within=within)
        gang = gang if gang.start(request, make_room) else None
    else:
        gang = _together(draft, pending, request, option, cluster)
        if gang is None and (topology is None or not topology.required):
            gang = _anywhere(draft, pending, request, option, cluster, make_room)
    if gang is None:
        return None
    for i in request.order:
        amount = amount_milli(pod_set=pending.pod_sets[i])
        flavor = option.flavors[i].id
        for _ in range(pending.pod_sets[i].count - pending.pod_sets[i].min_count):
            if spare.get(flavor, 0) - gang.charged(flavor) < amount or not gang.put_more(i):
                break
    places = gang.places()
    return places or None


def _anywhere(
    draft: Draft,
    pending: PendingView,
    request: Request,
    option: Option,
    cluster: ClusterId,
    make_room: MakeRoom | None,
) -> "_Gang | None":
    gang = _Gang(draft, pending, option, cluster, packs=True)
    if gang.start(request, make_room):
        return gang
    if draft.packs and request.count > 1:
        # What fits by best fit, which evictions go by, starts; else it would evict for ever.
        gang = _Gang(draft, pending, option, cluster, packs=False)
        if gang.start(request, make_room):
            return gang
    return None


def _together(
    draft: Draft, pending: PendingView, request: Request, option: Option, cluster: ClusterId
) -> "_Gang | None":
    """The least start in one domain, of the innermost level that has one with room."""
    topology = pending.topology
    if topology is None:
        return None
    levels = draft.domains.outwards(topology.level)
    for level in levels[:1] if topology.required else levels:
        for domain in _by_room(draft, pending, request, option, cluster, level):
            gang = _Gang(draft, pending, option, cluster, packs=False, within=domain)
            if gang.start(request, None):
                return gang
    return None


def _by_room(
    draft: Draft,
    pending: PendingView,
    request: Request,
    option: Option,
    cluster: ClusterId,
    level: str,
) -> list[Domain]:
    """The domains that may hold the least start, the one to try first first.

    Those that may hold all pods come first, least free first; then those with most free. What the
    largest pods ask for counts most.
    """
    sets = list(zip(pending.pod_sets, option.flavors, strict=True))
    ranked = []
    for nth, domain in enumerate(draft.domains.of(cluster=cluster, level=level)):
        most = [most_pods(domain=domain, pod_set=p, flavor=f) for p, f in sets]
        if all(pods >= p.min_count for pods, (p, _) in zip(most, sets, strict=True)):
            short = any(pods < p.count for pods, (p, _) in zip(most, sets, strict=True))
            flavors = (option.flavors[i] for i in request.order)
            free = [free_within_milli(domain=domain, flavor=flavor) for flavor in flavors]
            ranked.append((short, [-each for each in free] if short else free, nth, domain))
    return [domain for *_, domain in sorted(ranked, key=lambda each: each[:3])]


def most_together(
    *, draft: Draft, pending: PendingView, request: Request, option: Option
) -> tuple[int, int]:
    """Of the level that it has to be together in: how many domains the accepted clusters have, and
    how many pods of the least start one of them takes at most. The draft stays as it is."""
    topology = pending.topology
    if topology is None:
        return 0, 0
    bounds = []
    for cluster in clusters_for(draft=draft, request=request, option=option):
        for nth, domain in enumerate(draft.domains.of(cluster=cluster, level=topology.level)):
            bound = sum(
                min(p.min_count, most_pods(domain=domain, pod_set=p, flavor=f))
                for p, f in zip(pending.pod_sets, option.flavors, strict=True)
            )
            bounds.append((-bound, cluster, nth, domain))
    most = 0
    for bound, cluster, _, domain in sorted(bounds, key=lambda each: each[:3]):
        if -bound <= most:
            break
        gang = _Gang(draft, pending, option, cluster, packs=False, within=domain)
        most = max(most, gang.try_start(request))
    return len(bounds), most


def place_more(
    *,
    draft: Draft,
    pending: PendingView,
    option: Option,
    cluster: ClusterId,
    nth: int,
    within: Domain | None,
) -> Place | None:
    """One more pod of the nth pod set of what runs, in the draft: in `within`, or at least near it
    where the topology only asks for that. Its rank is 0; None leaves the draft as it was."""
    gang = _Gang(draft, pending, option, cluster, packs=True, within=within)
    return gang.places()[0] if gang.put_more(nth) else None


def would_place(
    *, draft: Draft, pending: PendingView, request: Request, option: Option
) -> Iterator[tuple[Place, ...]]:
    """The places of the least start in each cluster that has room for it. The draft stays as it
    is."""
    for cluster in clusters_for(draft=draft, request=request, option=option):
        mark = draft.checkpoint()
        places = place_gang(
            draft=draft,
            pending=pending,
            request=request,
            option=option,
            cluster=cluster,
            spare={},
        )
        draft.rollback(mark)
        if places is not None:
            yield places


class _Gang:
    """The pods of one workload that have been placed so far."""

    def __init__(
        self,
        draft: Draft,
        pending: PendingView,
        option: Option,
        cluster: ClusterId,
        *,
        packs: bool,
        within: Domain | None = None,
    ) -> None:
        self._draft = draft
        self._pending = pending
        self._option = option
        self._cluster = cluster
        self._packs = packs
        self._within = within
        self._placed: list[list[Place]] = [[] for _ in pending.pod_sets]
        self._charged: Counter[FlavorId] = Counter()

    def start(self, request: Request, make_room: MakeRoom | None) -> bool:
        """`min_count` pods of each set; False leaves the draft as it was."""
        mark = self._draft.checkpoint()
        if self._put_least(request, make_room):
            return True
        self._draft.rollback(mark)
        return False

    def try_start(self, request: Request) -> int:
        """How many of them fit until one does not. The draft stays as it is."""
        mark = self._draft.checkpoint()
        self._put_least(request, None)
        self._draft.rollback(mark)
        return sum(map(len, self._placed))

    def put_more(self, i: int) -> bool:
        """One more pod of the ith pod set, if it fits: beside the others if it can be."""
        topology = self._pending.topology
        if self._put(i, self._within, None):
            return True
        may_leave = self._within is not None and topology is not None and not topology.required
        return may_leave and self._put(i, None, None)

    def _put_least(self, request: Request, make_room: MakeRoom | None) -> bool:
        return all(
            self._put(i, self._within, make_room)
            for i in request.order
            for _ in range(self._pending.pod_sets[i].min_count)
        )

    def _put(self, i: int, within: Domain | None, make_room: MakeRoom | None) -> bool:
        pod_set, flavor = self._pending.pod_sets[i], self._option.flavors[i]
        place = self._seek(pod_set, flavor, within)
        if place is None and make_room is not None and make_room(pod_set, flavor):
            place = self._seek(pod_set, flavor, within)
        if place is None:
            return False
        self._draft.add(project=self._pending.project, holder=place)
        self._placed[i].append(place)
        self._charged[flavor.id] += place.amount_milli
        return True

    def _seek(
        self, pod_set: PodSetView, flavor: FlavorView, within: Domain | None
    ) -> Place | None:
        """The best place for one more pod, in the draft as it stands.

        At the first node that is packed the packing decides among all that are; not of a flavor
        that is spread, nor in a domain.
        """
        draft, cluster, asked = self._draft, self._cluster, False
        rooms, packed, sought = draft.index.rooms, draft.packed, None
        if self._packs and within is None and flavor.placing is Placing.PACK:
            sought = packed.sought(cluster=cluster, pod_set=pod_set, flavor=flavor)
        for rank in candidates(draft, cluster, pod_set, flavor, within):
            room, place = rooms[rank], None
            if sought and room.node.id in packed:
                if not asked:
                    place = _pack(sought, pod_set, flavor)
                asked = True
            elif pod_set.memory_mib <= room.memory_mib:
                place = seat(room=room, pod_set=pod_set, flavor=flavor, slices=draft.slices)
            if place is not None:
                return place
        return None

    def charged(self, flavor: FlavorId) -> int:
        return self._charged[flavor]

    def places(self) -> tuple[Place, ...]:
        in_order = [place for of_set in self._placed for place in of_set]
        if len(in_order) == 1:
            return (in_order[0],)
        return tuple(replace(place, rank=rank) for rank, place in enumerate(in_order))


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
    spans = spans_on(room=room, devices=devices, milli=pod_set.gpu_milli)
    return _fitting(room, pod_set, flavor, spans)
