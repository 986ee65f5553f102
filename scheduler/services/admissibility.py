"""Could this ever start? Asked at submit, so that nothing hopeless waits for ever."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache

from controlplane.kernel.errors import Problem
from scheduler.core.bounds.limits import Limits
from scheduler.core.quota.portions import portion_milli
from scheduler.core.reasons import Reason, ReasonCode, describe
from scheduler.core.snapshot import (
    ClusterView,
    FlavorKind,
    FlavorView,
    PendingView,
    PodSetView,
    Snapshot,
)
from scheduler.core.units import PodSetId, ProjectId, WorkloadId
from scheduler.selectors import fleet
from scheduler.services.specs import PRIORITY_CLASSES, PodSetSpec, WorkloadSpec
from tenants.models import Project


def problems(
    *,
    project: Project,
    specs: Sequence[WorkloadSpec],
    flavors: Mapping[str, FlavorView],
    clusters: Mapping[str, ClusterView],
    at: datetime,
) -> list[Problem]:
    """A problem, with the numbers, for each spec that could not start even in an idle fleet.

    Its pointer is the field of the pod set that asks for too much, or names what there is not.
    Flavor and cluster names have been checked before.
    """
    snapshot = Snapshot(
        at=int(at.timestamp()),
        flavors=tuple(flavors.values()),
        clusters=tuple(clusters.values()),
        queues=fleet.queues(),
        cohorts=fleet.cohorts(),
        levels=fleet.levels(),
    )
    limits = Limits(snapshot)
    reason_of = cache(limits.reason)  # many in a batch ask for the same
    found = []
    for index, spec in enumerate(specs):
        reason = reason_of(pending_view(project, spec, flavors, clusters, at))
        if reason is not None:
            pointer = f"/{index}{_field_at_fault(spec, reason, flavors)}"
            found.append(Problem(pointer=pointer, code=reason.code, message=describe(reason)))
    return found


def _field_at_fault(spec: WorkloadSpec, reason: Reason, flavors: Mapping[str, FlavorView]) -> str:
    """What has to be together where that is too little room, of all pods or of a pod set, what
    keeps it from borrowing where that does, else below /pod_sets.

    A pod that is too large alone is at fault by its size, else it is how many start together.
    """
    numbers = dict(reason.numbers)
    if "level" in numbers:
        names, of_set = [pod_set.name for pod_set in spec.pod_sets], numbers.get("pod_set")
        return f"/pod_sets/{names.index(str(of_set))}/topology" if of_set else "/topology"
    if "guaranteed_milli" in numbers:
        return "/preemptible"
    name = str(numbers.get("flavor", ""))
    asking = [each for each in enumerate(spec.pod_sets) if name in each[1].accepted]
    if not asking:
        return "/pod_sets"
    pod = ("pod_milli", "pod_cpu_milli", "pod_memory_mib")
    told = tuple(numbers.get(number) for number in pod)
    position, asked = max(
        asking,
        key=lambda each: (
            _of_pod(each[1], flavors[name]) == told,
            (pod_milli(each[1], flavors[name]) or 0) * each[1].min_count,
        ),
    )
    if "gpu_memory_mib" in numbers:
        return f"/pod_sets/{position}/gpu_memory_mib"
    most = {
        ReasonCode.NEVER_ADMISSIBLE: _sum(numbers, "nominal_milli", "borrowable_milli"),
        ReasonCode.EXCEEDS_CAPACITY: _sum(numbers, "largest_free_milli"),
    }.get(reason.code, 0)
    if not most:
        if name in asked.wished:
            return f"/pod_sets/{position}/{'flavors' if asked.as_preferred else 'wish'}"
        return f"/pod_sets/{position}/flavors/{asked.flavors.index(name)}"
    field = "count" if asked.min_count == asked.count else "min_count"
    if "binds" in numbers:
        if asked.cpu_milli > _sum(numbers, "largest_cpu_milli"):
            field = "cpu_milli"
        elif asked.memory_mib > _sum(numbers, "largest_memory_mib"):
            field = "memory_mib"
    elif (pod_milli(asked, flavors[name]) or 0) > most:
        field = _sized_by(asked, flavors[name])
    return f"/pod_sets/{position}/{field}"


def _sized_by(asked: PodSetSpec, flavor: FlavorView) -> str:
    """The field that says how much of the flavor a pod gets."""
    if asked.gpu_memory_mib is not None:
        return "gpu_memory_mib"
    if not asked.gpu_count:
        return "cpu_milli"
    return "gpu_milli" if flavor.kind == FlavorKind.SHARE and asked.gpu_count == 1 else "gpu_count"


def _of_pod(asked: PodSetSpec, flavor: FlavorView) -> tuple[int | None, int, int]:
    """Of its flavor in thousandths, of cores and of memory: as a reason tells a pod's size."""
    return pod_milli(asked, flavor), asked.cpu_milli, asked.memory_mib


def pod_milli(asked: PodSetSpec, flavor: FlavorView) -> int | None:
    """What a pod gets of the flavor in thousandths; None where its devices have less memory than
    is asked."""
    if asked.gpu_memory_mib is None:
        return asked.gpu_count * asked.gpu_milli or asked.cpu_milli
    return portion_milli(gpu_memory_mib=asked.gpu_memory_mib, flavor=flavor)


def _sum(numbers: Mapping[str, int | str], *names: str) -> int:
    return sum(int(numbers.get(name, 0)) for name in names)


def pending_view(
    project: Project,
    spec: WorkloadSpec,
    flavors: Mapping[str, FlavorView],
    clusters: Mapping[str, ClusterView],
    at: datetime,
) -> PendingView:
    """As the core sees it once it is submitted, but for its submitter. Its id is after all others:
    the id of a row is one of a later time than theirs."""
    return PendingView(
        id=WorkloadId("new"),
        project=ProjectId(str(project.id)),
        priority=PRIORITY_CLASSES[spec.priority_class],
        preemptible=spec.preemptible,
        submitted_at=int(at.timestamp()),
        pod_sets=tuple(_pod_set(pod_set, flavors) for pod_set in spec.pod_sets),
        run_time_limit_s=spec.run_time_limit_s,
        clusters=tuple(clusters[name].id for name in spec.clusters),
        topology=spec.topology,
    )


def _pod_set(asked: PodSetSpec, flavors: Mapping[str, FlavorView]) -> PodSetView:
    return PodSetView(
        id=PodSetId(asked.name),
        count=asked.count,
        min_count=asked.min_count,
        cpu_milli=asked.cpu_milli,
        memory_mib=asked.memory_mib,
        gpu_count=asked.gpu_count,
        gpu_milli=asked.gpu_milli,
        flavors=tuple(flavors[name].id for name in asked.accepted),
        topology=asked.topology,
        gpu_memory_mib=asked.gpu_memory_mib,
        least_isolation=asked.least_isolation,
        any_order=asked.any_order,
    )
