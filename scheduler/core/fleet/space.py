"""What is free of a flavor, in a cluster or in a domain of it, and which nodes a pod tries first.

Ties never stand open: fewest left over, then tightest in cores, then first by node name; of a
flavor that is spread, most left over first. Pods without GPUs go to nodes without devices first,
then to nodes with the fewest empty devices.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache

from scheduler.core.fleet.domains import Domain
from scheduler.core.fleet.draft import Draft
from scheduler.core.fleet.index import Free, Pool
from scheduler.core.node import mig
from scheduler.core.quota.quota import amount_milli
from scheduler.core.snapshot import FlavorKind, FlavorView, HeldView, Placing, PodSetView
from scheduler.core.units import ONE_MILLI, ClusterId


def free_milli(*, draft: Draft, cluster: ClusterId, flavor: FlavorView) -> int:
    """What is free of the flavor in sum, in thousandths, whether or not one pod can use it."""
    if draft.totals is not None:
        known = draft.totals.free_milli(cluster=cluster, flavor=flavor)
        if known is not None:
            return known
    return _sum_milli(draft.index.pools_for(cluster=cluster, flavor=flavor), flavor)


def are_free(*, draft: Draft, places: Sequence[HeldView]) -> bool:
    """Whether all of these could be taken, beside each other."""
    rooms = {place.node: draft.rooms.get(place.node) for place in places}
    for nth, place in enumerate(places):
        room, flavor = rooms[place.node], draft.flavors.get(place.flavor)
        if room is None or not room.is_free(place=place, flavor=flavor):
            return False
        if nth + 1 < len(places):
            rooms[place.node] = room = room.copy()
            room.take(holder=place, flavor=flavor)
    return True


def free_within_milli(*, domain: Domain, flavor: FlavorView) -> int:
    """As `free_milli`, of the nodes of a domain."""
    return _sum_milli(domain.pools_for(flavor=flavor), flavor)


def most_pods(*, domain: Domain, pod_set: PodSetView, flavor: FlavorView) -> int:
    """As many pods of the flavor as fit in the domain, memory aside, or more; at most `count`."""
    pools, most = domain.pools_for(flavor=flavor), pod_set.count
    if flavor.kind not in (FlavorKind.WHOLE, FlavorKind.CPU):
        return min(most, _sum_milli(pools, flavor) // amount_milli(pod_set=pod_set))
    devices: Counter[int] = Counter()
    cores = {rank: cpu for pool in pools for _, cpu, rank in pool.entries}
    for pool in pools:
        for level, _, rank in pool.entries:
            devices[rank] += level
    pods = 0
    for rank, cpu_milli in cores.items():
        here = devices[rank] // pod_set.gpu_count if pod_set.gpu_count else most
        pods += min(here, max(0, cpu_milli) // pod_set.cpu_milli) if pod_set.cpu_milli else here
        if pods >= most:
            return most
    return pods


def _sum_milli(pools: tuple[Pool, ...], flavor: FlavorView) -> int:
    total = 0
    for pool in pools:
        if pool.free is Free.MASK:
            for taken, devices in pool.levels():
                total += devices * _free_starts(flavor.model, flavor.profile, taken) * ONE_MILLI
        elif pool.free is Free.EMPTY or pool.free is Free.SLICES:
            total += pool.total * ONE_MILLI
        else:
            total += pool.total
    return total


def largest_free_milli(*, draft: Draft, cluster: ClusterId, flavor: FlavorView) -> int:
    """The most of the flavor that one pod could get on one node, cores and memory aside.

    Of slices that are cut on demand it is what one device gives.
    """
    if draft.totals is not None:
        known = draft.totals.largest_free_milli(cluster=cluster, flavor=flavor)
        if known is not None:
            return known
    largest = 0
    for pool in draft.index.pools_for(cluster=cluster, flavor=flavor):
        if pool.free is Free.MASK:
            masks = (taken for taken, _ in pool.levels())
            starts = (_free_starts(flavor.model, flavor.profile, taken) for taken in masks)
            here = max(starts, default=0)
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
    rooms = [draft.index.rooms[rank] for rank in candidates(draft, cluster, bare, flavor)]
    return (
        max((room.cpu_milli for room in rooms), default=0),
        max((room.memory_mib for room in rooms), default=0),
    )


def candidates(
    draft: Draft,
    cluster: ClusterId,
    pod_set: PodSetView,
    flavor: FlavorView,
    within: Domain | None = None,
) -> Iterator[int]:
    """Ranks of the nodes that may hold the pod, best first; of a domain, only its nodes."""
    spreads = flavor.placing is Placing.SPREAD
    pools = draft.index.pools_for(cluster=cluster, flavor=flavor)
    for pool in pools if within is None else within.pools_for(flavor=flavor):
        if pool.free is Free.MASK:
            masks = (taken for taken, _ in pool.levels())
            for taken in draft.slices.in_order(flavor=flavor, masks=masks):
                yield from pool.ranks_at(taken, pod_set.cpu_milli)
            continue
        if pool.free is Free.CPU:
            level = 0
        elif flavor.kind is FlavorKind.SHARE:
            level = pod_set.gpu_milli if pool.free is Free.PART else 1
        else:
            level = pod_set.gpu_count
        ranks = pool.ranks_from_empty if spreads else pool.ranks
        yield from ranks(level, pod_set.cpu_milli)


@cache
def _free_starts(model: str, profile: str, taken: int) -> int:
    """On how many starts of a device a slice may begin."""
    spans = mig.legal_spans(model=model, profile=profile)
    return sum(not mig.mask(span) & taken for span in spans)
