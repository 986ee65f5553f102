"""A project's queue: what waits, in which order, why, and until when probably."""

from dataclasses import dataclass
from uuid import UUID

from django.db.models import Count, F, Q, QuerySet
from django.db.models.functions import Coalesce

from scheduler.core.lifecycle import UNDER_WAY, State
from scheduler.models import LIVE, Workload
from scheduler.selectors.workloads import summarised
from tenants.models import Project

ORDER = ("-priority", "queued_at", "queued_as")
"""The planner's order inside one project, but for this: the planner knows submissions to the
second, and takes those of one second by id."""


def queue(*, project: Project) -> QuerySet[Workload]:
    """Pending workloads of a project that the caller may see; order them by ORDER."""
    waiting = Workload.objects.filter(LIVE, project=project, state=State.PENDING)
    return summarised(_in_turns(waiting))


def _in_turns(rows: QuerySet[Workload]) -> QuerySet[Workload]:
    """With what ORDER names."""
    return rows.annotate(
        queued_at=Coalesce(F("turn_at"), F("submitted_at")),
        queued_as=Coalesce(F("turn_of"), F("id")),
    )


def position_of(row: Workload) -> int:
    """Where a pending workload stands in its project's queue, from 1."""
    pending = Workload.objects.filter(LIVE, project_id=row.project_id, state=State.PENDING)
    at, of = row.turn_at or row.submitted_at, row.turn_of or row.id
    ahead = _in_turns(pending).filter(
        Q(priority__gt=row.priority)
        | Q(priority=row.priority, queued_at__lt=at)
        | Q(priority=row.priority, queued_at=at, queued_as__lt=of)
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
