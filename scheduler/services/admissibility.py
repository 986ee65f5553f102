"""Could this ever start? Asked at submit, so that nothing hopeless waits for ever."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from clusters.models import Cluster, Flavor
from controlplane.kernel.errors import Problem
from scheduler.core.limits import Limits
from scheduler.core.reasons import describe
from scheduler.core.snapshot import PendingView, PodSetView, Snapshot
from scheduler.core.units import ClusterId, FlavorId, PodSetId, ProjectId, WorkloadId
from scheduler.selectors import fleet
from scheduler.services.specs import PodSetSpec, WorkloadSpec
from tenants.models import Project


def problems(
    *,
    project: Project,
    specs: Sequence[WorkloadSpec],
    flavors: Mapping[str, Flavor],
    clusters: Mapping[str, Cluster],
    at: datetime,
) -> list[Problem]:
    """A problem, with the numbers, for each spec that could not start even in an idle fleet.

    Flavor and cluster names have been checked before.
    """
    snapshot = Snapshot(
        at=int(at.timestamp()),
        flavors=fleet.flavors(),
        clusters=fleet.clusters(),
        queues=fleet.queues(),
    )
    limits = Limits(snapshot)
    found = []
    for index, spec in enumerate(specs):
        reason = limits.reason(_pending(project, spec, flavors, clusters, at))
        if reason is not None:
            pointer = f"/{index}/pod_sets"
            found.append(Problem(pointer=pointer, code=reason.code, message=describe(reason)))
    return found


def _pending(
    project: Project,
    spec: WorkloadSpec,
    flavors: Mapping[str, Flavor],
    clusters: Mapping[str, Cluster],
    at: datetime,
) -> PendingView:
    return PendingView(
        id=WorkloadId("new"),
        project=ProjectId(str(project.id)),
        priority=0,
        preemptible=spec.preemptible,
        submitted_at=int(at.timestamp()),
        pod_sets=tuple(_pod_set(pod_set, flavors) for pod_set in spec.pod_sets),
        run_time_limit_s=spec.run_time_limit_s,
        clusters=tuple(ClusterId(str(clusters[name].id)) for name in spec.clusters),
    )


def _pod_set(asked: PodSetSpec, flavors: Mapping[str, Flavor]) -> PodSetView:
    return PodSetView(
        id=PodSetId(asked.name),
        count=asked.count,
        min_count=asked.min_count,
        cpu_milli=asked.cpu_milli,
        memory_mib=asked.memory_mib,
        gpu_count=asked.gpu_count,
        gpu_milli=asked.gpu_milli,
        flavors=tuple(FlavorId(str(flavors[name].id)) for name in asked.flavors),
    )
