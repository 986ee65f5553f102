"""Where pods go: best fit for one pod, all or nothing for a gang, in one cluster.

Ties never stand open: fewest left over, then tightest in cores, then first by node name. Pods
without GPUs go to nodes without devices first, then to nodes with the fewest empty devices. A
share goes to the fullest device that still holds it; but among nodes that are packed the prices of
gaps decide (`packed`). A slice that is cut on demand goes to where it costs the fewest legal
starts. Placing pod after pod is exact for gangs of like pods; a gang of unlike pods is placed
largest first and may miss a packing.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from scheduler.core import mig
from scheduler.core.draft import Draft
from scheduler.core.fit import Room
from scheduler.core.index import Free, Pool
from scheduler.core.packed import Sought
from scheduler.core.pick import Spans, pick, spans_on
from scheduler.core.plan import Place
from scheduler.core.quota import amount_milli
from scheduler.core.request import Option, Request
from scheduler.core.snapshot import FlavorKind, FlavorView, PendingView, PodSetView
from scheduler.core.units import ONE_MILLI, ClusterId, FlavorId

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


def free_milli(*, draft: Draft, cluster: ClusterId, flavor: FlavorView) -> int:
    """What is free of the flavor in sum, in thousandths, whether or not one pod can use it."""
    total = 0
    for pool in draft.index.pools_for(cluster=cluster, flavor=flavor):
        if pool.free is Free.MASK:
            for taken, devices in pool.levels():
                total += devices * len(_free_starts(flavor, taken)) * ONE_MILLI
        elif pool.free is Free.EMPTY or pool.free is Free.SLICES:
            total += pool.total * ONE_MILLI
        else:
            total += pool.total
    return total


def largest_free_milli(*, draft: Draft, cluster: ClusterId, flavor: FlavorView) -> int:
    """The most of the flavor that one pod could get on one node, cores and memory aside.

    Of slices that are cut on demand it is what one device gives.
    """
    largest = 0
    for pool in draft.index.pools_for(cluster=cluster, flavor=flavor):
        if pool.free is Free.MASK:
            here = max((len(_free_starts(flavor, taken)) for taken, _ in pool.levels()), default=0)
        else:
            here = pool.largest()
        if flavor.kind is FlavorKind.SHARE and pool.free is Free.EMPTY:
            here = min(here, 1)
        if pool.free is not Free.CPU and pool.free is not Free.PART:
            here *= ONE_MILLI
        largest = max(largest, here)
    return largest


def largest_beside(
    *, draft: Draft, cluster: ClusterId, pod_set: PodSetView, flavor: FlavorView
) -> tuple[int, int]:
    """The most cores and the most memory (MiB) free on one node that has the devices for a pod.

    Each on a node of its own; 0 where no node has the devices.
    """
    bare = replace(pod_set, cpu_milli=0, memory_mib=0)
    rooms = [draft.index.rooms[rank] for rank in _candidates(draft, cluster, bare, flavor)]
    return (
        max((room.cpu_milli for room in rooms), default=0),
        max((room.memory_mib for room in rooms), default=0),
    )


def place_gang(
    *,
    draft: Draft,
    pending: PendingView,
    request: Request,
    option: Option,
    cluster: ClusterId,
    spare: Mapping[FlavorId, int],
    make_room: MakeRoom | None = None,
) -> tuple[Place, ...] | None:
    """Put the workload into `draft`: its places by rank; None leaves the draft as it was.

    At least `min_count` of each pod set start, then as many up to `count` as fit in the room and
    in `spare`, the quota left per flavor (in thousandths, the least start not yet taken off). When
    a pod of the least start finds no place, `make_room` is asked to free one.
    """
    gang = _least_start(draft, pending, request, option, cluster, True, make_room)
    if gang is None and draft.packs and request.count > 1:
        # What fits by best fit, which evictions go by, starts; else it would evict for ever.
        gang = _least_start(draft, pending, request, option, cluster, False, make_room)
    if gang is None:
        return None
    for i in request.order:
        amount = amount_milli(pod_set=pending.pod_sets[i])
        flavor = option.flavors[i].id
        for _ in range(pending.pod_sets[i].count - pending.pod_sets[i].min_count):
            if spare.get(flavor, 0) - gang.charged(flavor) < amount or not gang.put(i, None):
                break
    places = gang.places()
    return places or None


def _least_start(
    draft: Draft,
    pending: PendingView,
    request: Request,
    option: Option,
    cluster: ClusterId,
    packs: bool,
    make_room: MakeRoom | None,
) -> "_Gang | None":
    """The gang with `min_count` pods of each set in the draft; None leaves that as it was."""
    mark = draft.checkpoint()
    gang = _Gang(draft, pending, option, cluster, packs)
    for i in request.order:
        for _ in range(pending.pod_sets[i].min_count):
            if not gang.put(i, make_room):
                draft.rollback(mark)
                return None
    return gang


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
        packs: bool,
    ) -> None:
        self._draft = draft
        self._pending = pending
        self._option = option
        self._cluster = cluster
        self._packs = packs
        self._placed: list[list[Place]] = [[] for _ in pending.pod_sets]
        self._charged: Counter[FlavorId] = Counter()

    def put(self, i: int, make_room: MakeRoom | None) -> bool:
        """One more pod of the ith pod set, if it fits."""
        pod_set, flavor = self._pending.pod_sets[i], self._option.flavors[i]
        place = _seek(self._draft, self._cluster, pod_set, flavor, self._packs)
        if place is None and make_room is not None and make_room(pod_set, flavor):
            place = _seek(self._draft, self._cluster, pod_set, flavor, self._packs)
        if place is None:
            return False
        self._draft.add(project=self._pending.project, holder=place)
        self._placed[i].append(place)
        self._charged[flavor.id] += place.amount_milli
        return True

    def charged(self, flavor: FlavorId) -> int:
        return self._charged[flavor]

    def places(self) -> tuple[Place, ...]:
        in_order = [place for of_set in self._placed for place in of_set]
        if len(in_order) == 1:
            return (in_order[0],)
        return tuple(replace(place, rank=rank) for rank, place in enumerate(in_order))


def seat(*, room: Room, pod_set: PodSetView, flavor: FlavorView) -> Place | None:
    """A place, of rank 0, for one pod on this very node; None when it does not fit."""
    spans = pick(room=room, pod_set=pod_set, flavor=flavor)
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


def _seek(
    draft: Draft, cluster: ClusterId, pod_set: PodSetView, flavor: FlavorView, packs: bool
) -> Place | None:
    """The best place for one more pod, in the draft as it stands.

    At the first node that is packed the packing decides among all that are.
    """
    rooms, packed, asked = draft.index.rooms, draft.packed, False
    sought = packed.sought(cluster=cluster, pod_set=pod_set, flavor=flavor) if packs else None
    for rank in _candidates(draft, cluster, pod_set, flavor):
        room, place = rooms[rank], None
        if sought and room.node.id in packed:
            if not asked:
                place = _pack(sought, pod_set, flavor)
            asked = True
        elif pod_set.memory_mib <= room.memory_mib:
            place = seat(room=room, pod_set=pod_set, flavor=flavor)
        if place is not None:
            return place
    return None


def _pack(sought: Sought, pod_set: PodSetView, flavor: FlavorView) -> Place | None:
    found = sought.best()
    if found is None:
        return None
    room, devices = found
    spans = spans_on(room=room, devices=devices, milli=pod_set.gpu_milli)
    return _fitting(room, pod_set, flavor, spans)


def _candidates(
    draft: Draft, cluster: ClusterId, pod_set: PodSetView, flavor: FlavorView
) -> Iterator[int]:
    """Ranks of the nodes that may hold the pod, best first."""
    for pool in draft.index.pools_for(cluster=cluster, flavor=flavor):
        if pool.free is Free.MASK:
            for taken in _masks(pool, flavor):
                yield from pool.ranks_at(taken, pod_set.cpu_milli)
            continue
        if pool.free is Free.CPU:
            level = 0
        elif flavor.kind is FlavorKind.SHARE:
            level = pod_set.gpu_milli if pool.free is Free.PART else 1
        else:
            level = pod_set.gpu_count
        yield from pool.ranks(level, pod_set.cpu_milli)


def _masks(pool: Pool, flavor: FlavorView) -> list[int]:
    """The masks of devices that a slice may join, the one that costs the fewest starts first."""
    ranked = []
    for taken, _ in pool.levels():
        found = mig.least_loss(model=flavor.model, profile=flavor.profile, taken=taken)
        if found is not None:
            ranked.append((found[0], -taken.bit_count(), taken))
    return [taken for _, _, taken in sorted(ranked)]


def _free_starts(flavor: FlavorView, taken: int) -> list[int]:
    spans = mig.legal_spans(model=flavor.model, profile=flavor.profile)
    return [span.start for span in spans if not mig.mask(span) & taken]
