"""What work of random fleets accepts: neighbours, memory of a device, other flavors; and what is
held."""

from dataclasses import replace
from random import Random

from scheduler.core.snapshot import (
    ClusterView,
    Isolation,
    PendingView,
    PodSetView,
    Snapshot,
)
from scheduler.core.units import ONE_MILLI, FlavorId
from tests.core.build import BY_NAME, H100, T4

_SHARE = FlavorId("t4share")
_ALSO = ((), (FlavorId("t4"),), (FlavorId("t4"), FlavorId("1g")), (FlavorId("t4slot"),))
_LEAST = (*([Isolation.NONE] * 6), Isolation.MEMORY, Isolation.HARDWARE)


def accepting(pick: Random, of: Snapshot) -> Snapshot:
    """With projects and pods that accept no less than some isolation, and shares that are asked
    for by memory; what holds some asks for as much as it got."""
    return replace(
        of,
        flavors=tuple(replace(f, memory_mib=15_360) if f.id == "t4" else f for f in of.flavors),
        queues=tuple(replace(q, least_isolation=pick.choice(_LEAST)) for q in of.queues),
        pending=tuple(_asking(pick, one) for one in of.pending),
        holding=tuple(
            replace(one, pod_sets=tuple(_by_memory(pick, p) for p in one.pod_sets))
            for one in of.holding
        ),
    )


def _asking(pick: Random, pending: PendingView) -> PendingView:
    pod_sets = (_by_memory(pick, pod_set) for pod_set in pending.pod_sets)
    return replace(
        pending,
        pod_sets=tuple(
            replace(
                each,
                least_isolation=pick.choice(_LEAST),
                flavors=each.flavors + pick.choice(_ALSO)
                if each.gpu_memory_mib is not None and each.flavors == (_SHARE,)
                else each.flavors,
            )
            for each in pod_sets
        ),
    )


def _by_memory(pick: Random, pod_set: PodSetView) -> PodSetView:
    """At times by the memory that its share has."""
    if pod_set.flavors != (_SHARE,) or pick.random() < 0.5:
        return pod_set
    memory_mib = pod_set.gpu_milli * BY_NAME[_SHARE].memory_mib // ONE_MILLI
    return replace(pod_set, gpu_milli=ONE_MILLI, gpu_memory_mib=memory_mib)


def unordered(pick: Random, of: Snapshot) -> Snapshot:
    """With work that accepts other flavors, too, at times one as gladly as another."""
    more = {"t4share": ("t4slot",), "t4": ("h100",), "h100": ("t4", "3g"), "1g": ("h100",)}

    def asking(pod_set: PodSetView) -> PodSetView:
        also = more.get(pod_set.flavors[0], ()) if pick.random() < 0.4 else ()
        flavors = dict.fromkeys((*pod_set.flavors, *map(FlavorId, also)))
        return replace(pod_set, flavors=tuple(flavors), any_order=pick.random() < 0.5)

    return replace(
        of,
        pending=tuple(replace(p, pod_sets=tuple(map(asking, p.pod_sets))) for p in of.pending),
    )


def closed(pick: Random, of: Snapshot) -> Snapshot:
    """At times with tenants, clusters and pools that are held, beside projects."""
    held = {c.id: c.id for c in of.cohorts if pick.random() < 0.05}
    parents = {c.id: c.parent for c in of.cohorts}

    def above(cohort: object) -> tuple[str, ...]:
        names, seen = [], set()  # of a ring, which contradicts itself, each once
        while cohort is not None and cohort not in seen:
            seen.add(cohort)
            names += [name for id, name in held.items() if id == cohort]
            cohort = next((parent for id, parent in parents.items() if id == cohort), None)
        return tuple(names)

    return replace(
        of,
        queues=tuple(replace(q, held_by=(*q.held_by, *above(q.cohort))) for q in of.queues),
        clusters=tuple(_closed(pick, cluster) for cluster in of.clusters),
    )


def _closed(pick: Random, cluster: ClusterView) -> ClusterView:
    if cluster.usable and pick.random() < 0.08:
        return replace(cluster, usable=False, held=True)
    models = tuple(model for model in (H100, T4) if pick.random() < 0.06)
    nodes = (
        replace(
            node,
            devices=tuple(
                replace(d, usable=d.usable and d.model not in models) for d in node.devices
            ),
        )
        for node in cluster.nodes
    )
    return replace(cluster, nodes=tuple(nodes), held_models=models)
