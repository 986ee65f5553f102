"""A search for victims is made twice where one victim may make room for several pods.

Pod by pod the cheapest node leaves a gang where it is that loses more than the work of one node,
and less than that of two. So once more, each at what it loses for one pod (`per_pod`); the better
of both is taken.
"""

from collections.abc import Iterator

from scheduler.core.evicting.eligible import Eligible
from scheduler.core.evicting.per_pod import PerPod, less_than
from scheduler.core.evicting.search import Search, Wait
from scheduler.core.fleet.draft import Draft
from scheduler.core.held.victims import Cost, Victim, cost_of, weight_milli
from scheduler.core.snapshot import PodSetView
from scheduler.core.units import ClusterId


def run(
    search: Search, *, soon: Draft, eligible: Eligible | None, cluster: ClusterId
) -> Wait | None:
    """As `Search.run`, of a search for those of that cluster in `soon`."""
    mark = soon.checkpoint()
    first = search.run()
    if first is None or eligible is None or len(first.places) < 2 or not first.victims:
        return first
    parts, below = soon.book.parts, cost_of(first.victims)
    needs = {place.pod_set: weight_milli([place], parts=parts) for place in first.places}
    if not _makes_room_for_several(eligible.in_cluster(cluster), below, min(needs.values())):
        return first

    def priced(eligible: Eligible, pod_set: PodSetView) -> PerPod:
        pods, need_milli = len(first.places), needs[pod_set.id]
        return PerPod(eligible, below=below, pods=pods, need_milli=need_milli)

    soon.rollback(mark)
    search.forget()
    other = search.run(priced)
    if other is not None and cost_of(other.victims) < below:
        return other
    if other is not None:
        soon.rollback(mark)
        search.forget()
    search.repeat(first)
    return first


def _makes_room_for_several(victims: Iterator[Victim], below: Cost, need_milli: int) -> bool:
    """Whether any of less harm may."""
    return any(
        len(victim.held.on) > 1 or victim.held.sevenths_milli > need_milli
        for victim in less_than(below, victims)
    )
