"""What was submitted, as its submitter said it: what other policies are tried on. It is read a few
at a time, for thousands may come in a week.
"""

from collections.abc import Iterator
from datetime import datetime

from django.db.models import Prefetch, QuerySet

from scheduler.core.snapshot import Isolation, SetTopologyView, TopologyView
from scheduler.models import PodSet, PodSetFlavor, Workload
from scheduler.services.policies import without_defaults
from scheduler.services.specs import PodSetSpec, WishSpec, WorkloadSpec
from tenants import policy
from tenants.access import Actor, Place
from tenants.models import Project
from tenants.selectors.policies import Everywhere

AT_ONCE = 200
"""Workloads that are in memory together."""


def below(*, actor: Actor, of: Place, since: datetime) -> QuerySet[Workload]:
    """What was submitted there, or below it, from then on."""
    rows = Workload.objects.filter(submitted_at__gte=since)
    if isinstance(of, Project):
        return rows.filter(project=of)
    return rows if of is None else rows.filter(project__tenant__in=actor.tenants_below(of.id))


def said(
    rows: QuerySet[Workload], *, today: Everywhere
) -> Iterator[tuple[Workload, WorkloadSpec]]:
    """Each with its project, and what its submitter said, in the order of the rows: what it has as
    `today` has it for who does not say it counts as not said. One query, and three for AT_ONCE.

    Images of other containers, gates and what it waited for are not in it.
    """
    pod_sets = PodSet.objects.order_by("position").prefetch_related(
        Prefetch("accepted", PodSetFlavor.objects.select_related("flavor").order_by("position"))
    )
    rows = rows.select_related("origin", "project")
    rows = rows.prefetch_related(Prefetch("pod_sets", pod_sets), "clusters")
    for work in rows.iterator(chunk_size=AT_ONCE):
        told = policy.defaults(today.chain(work.project))
        yield work, without_defaults(told, _spec(work))


def _spec(work: Workload) -> WorkloadSpec:
    """With the defaults that it got."""
    return WorkloadSpec(
        name=work.name,
        pod_sets=tuple(_pod_set(each) for each in work.pod_sets.all()),
        priority_class=work.priority_class,
        preemptible=work.preemptible,
        move_to_better=work.move_to_better,
        run_time_limit_s=work.run_time_limit_s,
        clusters=tuple(cluster.name for cluster in work.clusters.all()),
        labels=work.labels,
        topology=TopologyView(work.topology_level, work.topology_required)
        if work.topology_level
        else None,
        retries=work.retries,
        grace_s=work.grace_s,
        notice_s=work.notice_s,
        cluster_loss_requeue_s=work.cluster_loss_requeue_s,
        is_caught=hasattr(work, "origin"),
    )


def _pod_set(row: PodSet) -> PodSetSpec:
    accepted = [(each.flavor.name, each.wished) for each in row.accepted.all()]
    return PodSetSpec(
        name=row.name,
        count=row.count,
        min_count=row.min_count,
        cpu_milli=row.cpu_milli,
        memory_mib=row.memory_mib,
        gpu_count=row.gpu_count,
        gpu_milli=row.gpu_milli,
        flavors=tuple(name for name, wished in accepted if not wished),
        image=row.image,
        command=tuple(row.command),
        args=tuple(row.args),
        env=row.env,
        wish=None if row.least_memory_mib is None else WishSpec(row.least_memory_mib),
        wished=tuple(name for name, wished in accepted if wished),
        topology=(
            SetTopologyView(row.topology_level, row.topology_required, row.name)
            if row.topology_level
            else None
        ),
        gpu_memory_mib=row.gpu_memory_mib,
        least_isolation=Isolation(row.least_isolation),
        any_order=row.any_order,
    )
