"""A project's queue: what waits, in which order, why, and until when probably."""

from dataclasses import dataclass
from uuid import UUID

from django.db.models import Count, Q, QuerySet

from scheduler.core.lifecycle import UNDER_WAY, State
from scheduler.models import LIVE, Workload
from scheduler.selectors.workloads import summarised
from tenants.models import Project

ORDER = ("-priority", "submitted_at", "id")
"""The planner's order inside one project, but for this: the planner knows submissions to the
second, and takes those of one second by id."""


def queue(*, project: Project) -> QuerySet[Workload]:
    """Pending workloads of a project that the caller may see; order them by ORDER."""
    return summarised(Workload.objects.filter(LIVE, project=project, state=State.PENDING))


def position_of(row: Workload) -> int:
    """Where a pending workload stands in its project's queue, from 1."""
    pending = Workload.objects.filter(LIVE, project_id=row.project_id, state=State.PENDING)
    ahead = pending.filter(
        Q(priority__gt=row.priority)
        | Q(priority=row.priority, submitted_at__lt=row.submitted_at)
        | Q(priority=row.priority, submitted_at=row.submitted_at, id__lt=row.id)
    )
    return ahead.count() + 1


@dataclass(frozen=True, slots=True)
class UnderWay:
    """Workloads that run or are being started, by whether a drained queue takes them back."""

    stoppable: int
    others: int


def under_way(*, project_id: UUID) -> UnderWay:
    """Those of the project, whose page the caller may see. One query."""
    rows = Workload.objects.filter(LIVE, project_id=project_id, state__in=sorted(UNDER_WAY))
    counts = rows.aggregate(
        stoppable=Count("id", filter=Q(preemptible=True)),
        others=Count("id", filter=Q(preemptible=False)),
    )
    return UnderWay(**counts)
