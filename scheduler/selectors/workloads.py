"""Reading workloads, as far as an actor may see. One page costs a fixed number of queries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Count, OuterRef, Prefetch, Q, QuerySet, Subquery
from django.db.models.functions import JSONObject

from scheduler.models import (
    LIVE,
    Attempt,
    Estimate,
    Placement,
    PlacementSpan,
    PodSet,
    PodSetFlavor,
    Workload,
    WorkloadEvent,
)
from scheduler.selectors import arrays, caught
from tenants import access
from tenants.access import Actor

MAX_PLACEMENTS = 4096
MAX_ATTEMPTS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadFilters:
    """What a list is narrowed to; None is everything. `until` is exclusive."""

    project_id: UUID | None = None
    states: Sequence[str] | None = None
    name: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    submitted_by_id: UUID | None = None
    array_id: UUID | None = None


ALL = WorkloadFilters()


def workloads(*, actor: Actor, filters: WorkloadFilters = ALL) -> QuerySet[Workload]:
    """The actor's visible workloads with what a list shows of each. Order them by -id.

    An array is one row, its first element, unless its elements are asked for. Raises NotFound for
    a project or an array that the actor does not see.
    """
    if filters.project_id is not None:
        access.project_or_404(actor, filters.project_id)
    rows = access.for_actor(Workload.objects.all(), actor=actor)
    if filters.project_id is not None:
        rows = rows.filter(project_id=filters.project_id)
    if filters.array_id is None:
        rows = arrays.listed(rows, states=filters.states)
    else:
        rows = rows.filter(array=arrays.array(actor=actor, id=filters.array_id))
        if filters.states is not None:
            rows = rows.filter(state__in=filters.states)
    if filters.name is not None:
        rows = rows.filter(Q(name=filters.name) | Q(array__name=filters.name))
    if filters.since is not None:
        rows = rows.filter(submitted_at__gte=filters.since)
    if filters.until is not None:
        rows = rows.filter(submitted_at__lt=filters.until)
    if filters.submitted_by_id is not None:
        rows = rows.filter(submitted_by_id=filters.submitted_by_id)
    return summarised(rows)


def seen(*, actor: Actor, id: UUID) -> Workload:
    """One workload with its project and submitter, to act on.

    Raises NotFound, the same for foreign and missing ids.
    """
    rows = Workload.objects.select_related(
        "project__tenant", "submitted_by", "kept_room", "origin__cluster"
    )
    return access.get_or_404(rows, actor=actor, id=id)


def workload(*, actor: Actor, id: UUID) -> Workload:
    """One workload with its project, clusters and pod sets. Raises NotFound."""
    rows = summarised(Workload.objects.select_related("project", "origin__cluster"))
    rows = rows.prefetch_related("clusters")
    return access.get_or_404(rows, actor=actor, id=id)


def attempts(*, workload: Workload) -> list[Attempt]:
    """Its attempts with their clusters, the newest first, at most MAX_ATTEMPTS."""
    rows = Attempt.objects.filter(workload=workload).select_related("cluster")
    return list(rows.order_by("-number")[:MAX_ATTEMPTS])


def placements(*, actor: Actor, workload_id: UUID) -> QuerySet[Placement]:
    """Its placements with node, flavor and spans, the newest attempt's first, at most
    MAX_PLACEMENTS."""
    spans = PlacementSpan.objects.select_related("device").order_by("id")
    rows = (
        caught.named(Placement.objects.filter(workload_id=workload_id))
        .select_related("attempt", "node__cluster", "flavor", "pod_set")
        .prefetch_related(Prefetch("spans", spans))
        .order_by("-attempt__number", "rank")
    )
    return access.for_actor(rows, actor=actor)[:MAX_PLACEMENTS]


def events(*, actor: Actor, workload_id: UUID) -> QuerySet[WorkloadEvent]:
    """Its timeline; order it by id. Raises NotFound for the workload."""
    found = access.get_or_404(Workload.objects.all(), actor=actor, id=workload_id)
    return WorkloadEvent.objects.filter(workload=found)


def summarised(rows: QuerySet[Workload]) -> QuerySet[Workload]:
    """With `latest` (its newest estimate as a dict, or None), its submitter and its pod sets."""
    newest = Estimate.objects.filter(workload=OuterRef("pk")).order_by("-as_of")
    return (
        rows.select_related("submitted_by")
        .annotate(
            latest=Subquery(
                newest.values(
                    made=JSONObject(p50_s="p50_s", p90_s="p90_s", as_of="as_of", basis="basis")
                )[:1]
            )
        )
        .prefetch_related(
            Prefetch("pod_sets", PodSet.objects.order_by("position")),
            Prefetch(
                "pod_sets__accepted",
                PodSetFlavor.objects.select_related("flavor").order_by("position"),
            ),
        )
    )


def states(*, actor: Actor, project_id: UUID | None = None) -> Mapping[str, int]:
    """How many live workloads are in each state; ended ones are not counted."""
    rows = access.for_actor(Workload.objects.filter(LIVE), actor=actor)
    if project_id is not None:
        rows = rows.filter(project_id=project_id)
    counted = rows.order_by().values("state").annotate(count=Count("id"))
    return {row["state"]: row["count"] for row in counted}
