"""A project's queue: what waits, in which order, why, and until when probably."""

from uuid import UUID

from django.db.models import Q, QuerySet

from scheduler.core.lifecycle import State
from scheduler.models import Workload
from scheduler.selectors.workloads import summarised
from tenants import access
from tenants.access import Actor

ORDER = ("-priority", "submitted_at", "id")
"""The planner's order inside one project, but for this: the planner knows submissions to the
second, and takes those of one second by id."""


def queue(*, actor: Actor, project_id: UUID) -> QuerySet[Workload]:
    """Pending workloads of the project; order them by ORDER. Raises NotFound."""
    project = access.project_or_404(actor, project_id)
    return summarised(Workload.objects.filter(project=project, state=State.PENDING))


def position_of(row: Workload) -> int:
    """Where a pending workload stands in its project's queue, from 1."""
    ahead = Workload.objects.filter(project_id=row.project_id, state=State.PENDING).filter(
        Q(priority__gt=row.priority)
        | Q(priority=row.priority, submitted_at__lt=row.submitted_at)
        | Q(priority=row.priority, submitted_at=row.submitted_at, id__lt=row.id)
    )
    return ahead.count() + 1
