"""Where pods go: best fit for one pod, all or nothing for a gang, in one cluster.

The order of nodes is that of `space`. A share goes to the fullest device that still holds it;
but among nodes that are packed the prices of gaps decide (`packed`), and for slices that are cut
on demand prices of slices do (`slices`). Placing pod after pod is exact for gangs of like pods; a
gang of unlike pods is placed largest first, and other ways are tried where that misses a packing,
a bounded number of them (`gang`).

What has to be in one domain is tried in each that may hold it, by best fit. What had better be is
tried so in its level and those around it, then anywhere.
"""

from collections.abc import Iterator, Mapping
from functools import partial

from scheduler.core.fleet.domains import Domain
from scheduler.core.fleet.draft import Draft
from scheduler.core.fleet.space import free_milli, free_within_milli
from scheduler.core.placing.gang import Gang, MakeRoom
from scheduler.core.placing.layouts import Layout, Layouts, Part, by_room
from scheduler.core.plan import Place
from scheduler.core.quota.quota import amount_milli
from scheduler.core.rates import Hourly, dearness
from scheduler.core.request import Option, Request
from scheduler.core.snapshot import PendingView
from scheduler.core.units import ClusterId, FlavorId


def clusters_for(*, draft: Draft, request: Request, option: Option) -> list[ClusterId]:
    """Usable accepted clusters: the cheapest first, of those as cheap the one with least free of
    the asked flavors."""
    found = [cluster for cluster in draft.clusters if request.accepts(cluster)]
    return found if len(found) < 2 else list(free_in(draft=draft, request=request, option=option))


def free_in(*, draft: Draft, request: Request, option: Option) -> dict[ClusterId, int]:
    """`clusters_for`, with what is free of the asked flavors in each."""
    kinds = {flavor.id: flavor for flavor in option.flavors}.values()
    free = {
        cluster: sum(free_milli(draft=draft, cluster=cluster, flavor=f) for f in kinds)
        for cluster in draft.clusters
        if request.accepts(cluster)
    }
    return cheapest_first(free, hourly=draft.rates.hourly(option.amounts))


def cheapest_first(free: Mapping[ClusterId, int], *, hourly: Hourly) -> dict[ClusterId, int]:
    """The clusters in the order of `clusters_for`, by what is free and what is charged in each."""
    order = sorted(free, key=lambda cluster: (dearness(hourly, cluster), free[cluster], cluster))
    return {cluster: free[cluster] for cluster in order}


def price_of(*, draft: Draft, pending: PendingView, request: Request, option: Option) -> int:
    """What a pod of each set costs where the option starts first, in prices of gaps; less than any
    price where the packing does not say (`packed`): none of it is shared there, or none fits."""
    pending = option.asks(pending)
    for cluster in clusters_for(draft=draft, request=request, option=option):
        sought = (
            draft.packed.sought(cluster=cluster, pod_set=pod_set, flavor=flavor)
            for pod_set, flavor in zip(pending.pod_sets, option.flavors, strict=True)
        )
        costs = [cost for each in sought if each and (cost := each.cost()) is not None]
        if costs:
            return sum(costs)
    return -1


def place_gang(
    *,
    draft: Draft,
    pending: PendingView,
    request: Request,
    option: Option,
    cluster: ClusterId,
    spare: Mapping[FlavorId, int],
    make_room: MakeRoom | None = None,
    within: Layout | None = None,
) -> tuple[Place, ...] | None:
    """Put the workload into `draft`: its places by rank; None leaves the draft as it was.

    At least `min_count` of each pod set start, then as many up to `count` as fit in the room and
    in `spare`, the quota left per flavor (in thousandths, the least start not yet taken off). When
    a pod of the least start finds no place, `make_room` is asked to free one; for what has to be
    in domains only where `within` names those.
    """
    pending = option.asks(pending)
    topology = pending.topology
    gang: Gang | None = None
    if within is not None:
        gang = Gang(draft, pending, option, cluster, packs=False, layout=within)
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
) -> Gang | None:
    gang = Gang(draft, pending, option, cluster, packs=True)
    if gang.start(request, make_room):
        return gang
    if draft.packs and request.count > 1:
        # What fits by best fit, which evictions go by, starts; else it would evict for ever.
        gang = Gang(draft, pending, option, cluster, packs=False)
        if gang.start(request, make_room):
            return gang
    return None


def _together(
    draft: Draft, pending: PendingView, request: Request, option: Option, cluster: ClusterId
) -> Gang | None:
    """The least start in one domain, of the innermost level that has one with room."""
    topology = pending.topology
    if topology is None:
        return None
    levels = draft.domains.outwards(topology.level)
    for level in levels[:1] if topology.required else levels:
        domains = draft.domains.of(cluster=cluster, level=level)
        for domain in by_room(domains, pending=pending, request=request, option=option):
            gang = Gang(draft, pending, option, cluster, packs=False, layout=Layout(domain))
            if gang.start(request, None):
                return gang
    return None


def place_more(
    *,
    draft: Draft,
    pending: PendingView,
    option: Option,
    cluster: ClusterId,
    nth: int,
    within: Layout,
) -> Place | None:
    """One more pod of the nth pod set of what runs, in the draft: in `within`, or at least near it
    where the topology only asks for that. Its rank is 0; None leaves the draft as it was."""
    gang = Gang(draft, option.asks(pending), option, cluster, packs=True, layout=within)
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


def layouts(
    *,
    draft: Draft,
    emptied: Draft,
    pending: PendingView,
    request: Request,
    option: Option,
    cluster: ClusterId,
    whole: Domain | None,
    most: int,
) -> list[Layout]:
    """In which domains of `draft`, within `whole`, room may be made for the pod sets that have to
    be in some of their own: at most so many layouts with which the least start fits in `emptied`,
    the same nodes with less on them. Groups go where they fit now, then where most is free."""
    pending = option.asks(pending)
    inside = Layout(None if whole is None else emptied.domains.same(whole))
    now = Gang(draft, pending, option, cluster, packs=False, layout=Layout(whole))
    then = Gang(emptied, pending, option, cluster, packs=False, layout=inside)
    found: list[Layout] = []

    def parts(i: int) -> list[Part]:
        listed = []
        for part in then.parts(i):
            here = draft.domains.same(part.domain)
            free = free_within_milli(domain=here, flavor=option.flavors[i])
            fit = now.groups_in(i, here)
            listed.append((-free, here.path, fit, part))
        listed.sort(key=lambda each: each[:2])
        return [Part(part.domain, fit, partial(int, fit)) for *_, fit, part in listed] + [
            Part(part.domain, part.bound - fit, partial(_beyond, part, fit))
            for *_, fit, part in listed
        ]

    def accept(layout: Layout) -> bool:
        if then.fill(request, layout):
            sets = (tuple(map(draft.domains.same, of_set)) for of_set in layout.sets)
            kept = Layout(whole, tuple(sets))
            if kept not in found:
                found.append(kept)
        return len(found) >= most

    mark = emptied.checkpoint()
    Layouts(pending=pending, request=request, whole=inside.whole, gang=then).search(parts, accept)
    emptied.rollback(mark)
    return found


def _beyond(part: Part, fit: int) -> int:
    return max(0, part.measure() - fit)
