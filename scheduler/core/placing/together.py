"""Why what has to be together does not fit: by which topology, and how much a domain takes."""

from dataclasses import replace

from scheduler.core.fleet.draft import Draft
from scheduler.core.fleet.space import most_pods
from scheduler.core.placing.gang import Gang
from scheduler.core.placing.layouts import Groups, Layout
from scheduler.core.placing.place import clusters_for, would_place
from scheduler.core.request import Option, Request
from scheduler.core.snapshot import PendingView


def is_bound(*, pending: PendingView, request: Request) -> bool:
    """Whether all of it, or a pod set of it, has to be in one domain."""
    topology = pending.topology
    return bool(request.bound) or (topology is not None and topology.required)


def apart(*, pending: PendingView, request: Request) -> tuple[PendingView, Request]:
    """As if its pods might be anywhere."""
    return replace(pending, topology=None), replace(request, bound=(), near=())


def why_not_together(
    *, draft: Draft, pending: PendingView, request: Request, option: Option
) -> dict[str, int | str]:
    """Asked of what is bound and does not fit: the first topology by which it does not, that of
    all its pods before those of its pod sets; {} when it is none, or it does not fit apart either.
    """

    def fits(asks: PendingView, of: Request) -> bool:
        return any(would_place(draft=draft, pending=asks, request=of, option=option))

    asks, of = apart(pending=pending, request=request)
    if not fits(asks, of):
        return {}
    topology = pending.topology
    if topology is not None and topology.required and not fits(pending, of):
        domains, most = most_together(draft=draft, pending=pending, request=of, option=option)
        return {"domains_count": domains, "level": topology.level, "most_pods_count": most}
    bound = request.bound
    if not bound:
        return {}
    fails = next(
        (
            i
            for n, i in enumerate(bound[:-1], 1)
            if not fits(pending, replace(of, bound=bound[:n]))
        ),
        bound[-1],
    )
    return _of_set(draft, pending, of, option, fails)


def _of_set(
    draft: Draft, pending: PendingView, request: Request, option: Option, i: int
) -> dict[str, int | str]:
    """How many groups of the ith pod set one cluster takes, and pods one domain, with nothing else
    of the workload in them."""
    pod_set = pending.pod_sets[i]
    topology, (size, number) = pod_set.topology, Groups.of(pod_set)
    if topology is None:
        return {}
    domains = most = most_groups = 0
    for cluster in clusters_for(draft=draft, request=request, option=option):
        gang = Gang(draft, pending, option, cluster, packs=False)
        here = draft.domains.of(cluster=cluster, level=topology.level)
        pods = [gang.pods_in(i, domain, size * number) for domain in here]
        domains += len(here)
        most = max([most, *pods])
        most_groups = max(most_groups, sum(each // size for each in pods))
    return {
        "domains_count": domains,
        "groups_count": number,
        "level": topology.level,
        "most_groups_count": most_groups,
        "most_pods_count": most,
        "pod_set": topology.pod_set,
        "pods_count": size,
    }


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
        gang = Gang(draft, pending, option, cluster, packs=False, layout=Layout(domain))
        most = max(most, gang.try_start(request))
    return len(bounds), most
