"""The rows of what is submitted, by a few statements however many workloads it is. Whether they
may be stored is asked before, by `workloads`, in whose transaction this is."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

from controlplane.kernel import bulk
from controlplane.kernel.ids import uuid7s
from scheduler.core.lifecycle import State
from scheduler.core.snapshot import ClusterView, FlavorView
from scheduler.models import PodSet, PodSetFlavor, Workload, WorkloadArray, WorkloadEvent
from scheduler.services.specs import PRIORITY_CLASSES, PodSetSpec, WorkloadSpec
from tenants.access import Actor
from tenants.models import Project


def insert(
    actor: Actor,
    project: Project,
    specs: Sequence[WorkloadSpec],
    flavors: Mapping[str, FlavorView],
    clusters: Mapping[str, ClusterView],
    at: datetime,
    array: WorkloadArray | None,
) -> list[Workload]:
    """One workload for each spec, in their order, with all that is its own."""
    workloads = [
        Workload(
            project=project,
            array=array,
            array_index=None if array is None else 0,
            submitted_by=actor.user,
            name=spec.name,
            priority_class=spec.priority_class,
            priority=PRIORITY_CLASSES[spec.priority_class],
            preemptible=spec.preemptible,
            move_to_better=spec.move_to_better,
            run_time_limit_s=spec.run_time_limit_s,
            topology_level=spec.topology.level if spec.topology else "",
            topology_required=spec.topology is not None and spec.topology.required,
            retry_limit=spec.retries.limit,
            retry_on=[each.value for each in spec.retries.on],
            retry_exit_codes=list(spec.retries.exit_codes),
            grace_s=spec.grace_s,
            notice_s=spec.notice_s,
            cluster_loss_requeue_s=spec.cluster_loss_requeue_s,
            labels=dict(spec.labels),
            submitted_at=at,
        )
        for spec in specs
    ]
    bulk.save(workloads)
    Workload.clusters.through.objects.bulk_create(
        Workload.clusters.through(workload_id=workload.id, cluster_id=clusters[name].id)
        for workload, spec in zip(workloads, specs, strict=True)
        for name in spec.clusters
    )
    _insert_pod_sets(
        [
            (workload.id, position, pod_set)
            for workload, spec in zip(workloads, specs, strict=True)
            for position, pod_set in enumerate(spec.pod_sets)
        ],
        flavors,
    )
    bulk.insert(
        WorkloadEvent,
        id=uuid7s(len(workloads)),
        workload_id=[workload.id for workload in workloads],
        at=at,
        kind="state",
        after=State.PENDING.value,
    )
    return workloads


def _insert_pod_sets(
    asked: Sequence[tuple[UUID, int, PodSetSpec]], flavors: Mapping[str, FlavorView]
) -> None:
    """Each with its workload and its position there."""
    ids = uuid7s(len(asked))
    pod_sets = [pod_set for *_, pod_set in asked]
    wishes = [each.wish for each in pod_sets]
    levels = [each.topology for each in pod_sets]
    bulk.insert(
        PodSet,
        id=ids,
        workload_id=[workload for workload, *_ in asked],
        position=[position for _, position, _ in asked],
        name=[each.name for each in pod_sets],
        count=[each.count for each in pod_sets],
        min_count=[each.min_count for each in pod_sets],
        cpu_milli=[each.cpu_milli for each in pod_sets],
        memory_mib=[each.memory_mib for each in pod_sets],
        gpu_count=[each.gpu_count for each in pod_sets],
        gpu_milli=[each.gpu_milli for each in pod_sets],
        image=[each.image for each in pod_sets],
        command=[each.command for each in pod_sets],
        args=[each.args for each in pod_sets],
        env=[dict(each.env) for each in pod_sets],
        least_memory_mib=[wish.least_memory_mib if wish else None for wish in wishes],
        vendors=[wish.vendors if wish else () for wish in wishes],
        as_preferred=[each.as_preferred for each in pod_sets],
        any_order=[each.any_order for each in pod_sets],
        gpu_memory_mib=[each.gpu_memory_mib for each in pod_sets],
        least_isolation=[each.least_isolation.value for each in pod_sets],
        topology_level=[level.level if level else "" for level in levels],
        topology_required=[level is not None and level.required for level in levels],
        topology_group_size=[level.group_size if level else None for level in levels],
    )
    accepted = [
        (id, flavors[name].id, index, index >= len(pod_set.flavors))
        for id, pod_set in zip(ids, pod_sets, strict=True)
        for index, name in enumerate(pod_set.accepted)
    ]
    bulk.insert(
        PodSetFlavor,
        id=uuid7s(len(accepted)),
        pod_set_id=[pod_set for pod_set, *_ in accepted],
        flavor_id=[flavor for _, flavor, *_ in accepted],
        position=[index for *_, index, _ in accepted],
        wished=[wished for *_, wished in accepted],
    )
