"""In which cluster a workload starts, and why there and with those flavors.

A plan looks at all clusters in each of its cycles: work starts in the first cycle in which any
cluster that it accepts has room for it, within its quota and in the order of its flavors. Of
several that have room for all of it then it takes the one where that is charged least, of those as
cheap the one with least free of what it asks for.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from scheduler.core.fleet.draft import Draft
from scheduler.core.placing.place import free_in, place_gang
from scheduler.core.plan import Choice, Offer, Passed, PassedFor, Place, Verdict
from scheduler.core.quick import quick
from scheduler.core.rates import Hourly
from scheduler.core.request import Option, Request
from scheduler.core.snapshot import ClusterView, PendingView
from scheduler.core.units import ClusterId, FlavorId

_OFFER = quick(Offer)
MOST_TOLD = 16
"""Offers, and options, that are told of."""


class Chosen(NamedTuple):
    """Where it fits, and is in the draft. `offers` are of all clusters; () where there is one."""

    cluster: ClusterId
    places: tuple[Place, ...]
    offers: tuple[Offer, ...]


def choose(
    *,
    clusters: Sequence[ClusterView],
    draft: Draft,
    pending: PendingView,
    request: Request,
    option: Option,
    spare: Mapping[FlavorId, int],
) -> Chosen | None:
    """Put it into the cheapest cluster that takes all of it, of those as cheap the fullest; else
    into the one where most of it starts. None leaves the draft as it was."""
    free = free_in(draft=draft, request=request, option=option)
    hourly = draft.rates.hourly(option.amounts)
    tried: dict[ClusterId, int] = {}

    def places_in(cluster: ClusterId) -> tuple[Place, ...] | None:
        return place_gang(
            draft=draft,
            pending=pending,
            request=request,
            option=option,
            cluster=cluster,
            spare=spare,
        )

    def chosen(cluster: ClusterId, places: tuple[Place, ...]) -> Chosen:
        of_all = offers(
            clusters=clusters,
            request=request,
            free=free,
            tried=tried,
            chosen=cluster,
            hourly=hourly,
        )
        return Chosen(cluster, places, of_all)

    for cluster in free:
        mark = draft.checkpoint()
        places = places_in(cluster)
        tried[cluster] = len(places or ())
        if places is None:
            continue
        if len(places) == request.count or len(free) == 1:
            return chosen(cluster, places)
        draft.rollback(mark)
    most = max(tried, key=tried.__getitem__, default=None)
    if most is None or not tried[most]:
        return None
    again = places_in(most)
    return chosen(most, again) if again else None


def offers(
    *,
    clusters: Sequence[ClusterView],
    request: Request,
    free: Mapping[ClusterId, int],
    tried: Mapping[ClusterId, int],
    chosen: ClusterId,
    hourly: Hourly,
) -> tuple[Offer, ...]:
    """Of all `clusters`, () where there is one: `free` is that of those looked at, in their order;
    `tried` says how many pods would start in those that were asked, `hourly` what is charged."""
    if len(clusters) < 2:
        return ()

    def verdict(cluster: ClusterId) -> Verdict:
        if cluster == chosen:
            return Verdict.CHOSEN
        if cluster in tried:
            return Verdict.NO_MORE if tried[cluster] else Verdict.FULL
        if cluster in free:  # behind the chosen one
            if not free[cluster]:
                return Verdict.FULL
            as_dear = hourly.get(cluster) == hourly.get(chosen)
            return Verdict.EMPTIER if as_dear else Verdict.DEARER
        return Verdict.UNUSABLE if request.accepts(cluster) else Verdict.NOT_ACCEPTED

    others = sorted(cluster.id for cluster in clusters if cluster.id not in free)
    order = [chosen, *(cluster for cluster in free if cluster != chosen), *others]
    return tuple([_OFFER(c, verdict(c), free.get(c), hourly.get(c)) for c in order[:MOST_TOLD]])


def told(
    *,
    request: Request,
    option: Option,
    offers: tuple[Offer, ...],
    passed: Mapping[Option, PassedFor],
) -> Choice | None:
    """Of one that started with the option; None where there was nothing to choose. `passed` says
    why others were not taken, of all that were come to."""
    over = [o for o in request.options if o is not option and o.rank <= option.rank]
    if not (offers or over):
        return None
    # As welcome, and not come to: the options of a rank are in the order of their price.
    why = ((each, passed.get(each, PassedFor.PRICE)) for each in over[:MOST_TOLD])
    return Choice(offers, tuple(Passed(tuple(f.id for f in o.flavors), w) for o, w in why))
