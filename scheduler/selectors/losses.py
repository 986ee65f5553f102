"""What failed, why, and how much work was lost: sums over attempts that have ended."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Count, Q, QuerySet, Sum

from scheduler.core.failures import WORDS, FailureClass
from scheduler.core.held.losses import gpu_hours
from scheduler.models import Attempt, AttemptOutcome
from tenants import access
from tenants.access import Actor

PREEMPTED = "preempted"
"""The cause of what was evicted for others, next to the classes of failures."""
CAUSES = (PREEMPTED, *(each.value for each in FailureClass))
# As the indexes attempt_that_failed and attempt_failed_at have it.
_FAILED = ~Q(failure="") | Q(lost_milli_s__gt=0)


@dataclass(frozen=True, slots=True)
class Loss:
    """Of one cause: how many attempts, and thousandths of devices x seconds of their work. Of
    those that were preempted only the ones that lost any count."""

    cause: str
    count: int = 0
    lost_milli_s: int = 0

    @property
    def text(self) -> str:
        """The cause in words."""
        failures = {each.value: words for each, words in WORDS.items()}
        return failures.get(self.cause, "evicted for the work of others")

    @property
    def lost(self) -> str:
        """In GPU-hours."""
        return gpu_hours(self.lost_milli_s)


@dataclass(frozen=True, slots=True)
class ProjectLoss(Loss):
    project: UUID | None = None


def by_cause() -> Mapping[str, Loss]:
    """Of all projects and times, each of CAUSES. One query."""
    found = {cause: Loss(cause) for cause in CAUSES}
    for row in summed(Attempt.objects.all(), "failure"):
        cause = row["failure"] or PREEMPTED
        found[cause] = Loss(cause, row["count"], row["lost"])
    return found


def by_project(
    *, actor: Actor, project_id: UUID | None, since: datetime | None, until: datetime | None
) -> list[ProjectLoss]:
    """Of the projects that the actor sees, by project and cause; what ended at `since` or later,
    and before `until`. One query."""
    rows = access.for_actor(Attempt.objects.all(), actor=actor)
    if project_id is not None:
        rows = rows.filter(workload__project_id=project_id)
    if since is not None:
        rows = rows.filter(ended_at__gte=since)
    if until is not None:
        rows = rows.filter(ended_at__lt=until)
    return [
        ProjectLoss(
            row["failure"] or PREEMPTED,
            row["count"],
            row["lost"],
            row["workload__project_id"],
        )
        for row in summed(rows, "workload__project_id", "failure")
    ]


def summed(
    rows: QuerySet[Attempt], *by: str
) -> QuerySet[Attempt, dict[str, Any]]:  # Any: values of columns
    """Of attempts that ended badly: `count` and `lost` by these columns. What was done though it
    was being stopped for a fault did not."""
    failed = rows.filter(_FAILED, ended_at__isnull=False)
    ended = failed.exclude(outcome=AttemptOutcome.SUCCEEDED).order_by(*by).values(*by)
    found: QuerySet[Attempt, dict[str, Any]] = ended.annotate(  # Any: values of columns
        count=Count("id"), lost=Sum("lost_milli_s")
    )
    return found
