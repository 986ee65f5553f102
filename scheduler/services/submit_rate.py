"""How much may be submitted in a minute: caps of a project and of each submitter in it.

Counted in PostgreSQL, by the workloads that are there, so that it holds over all processes and a
request that is answered again counts once.
"""

from datetime import datetime, timedelta

from django.db.models import Q, QuerySet

from controlplane.kernel import ids
from controlplane.kernel.errors import AppError, Invalid
from controlplane.kernel.throttle import TooOften
from scheduler.models import Workload
from tenants.access import Actor
from tenants.models import Project

MINUTE = timedelta(minutes=1)
_SLACK_S = 60
"""Between the clock of ids and that of submissions, of several machines."""


class RateReached(TooOften):
    """A cap on what is submitted in a minute; `wait` as there."""

    def __init__(
        self, *, whose: str, submitted: int, count: int, most: int, wait: timedelta
    ) -> None:
        self.wait = max(1, -(-wait // timedelta(seconds=1)))
        AppError.__init__(
            self,
            f"{whose} has submitted {submitted} workloads in the last minute; with {count} more it"
            f" would pass the cap of {most}. That many may be submitted in {self.wait} s.",
        )


def check(*, project: Project, actor: Actor, count: int, at: datetime) -> None:
    """Whether `count` more may be submitted at `at`; an array counts as one. The caller holds the
    project's row, so that who is next counts right.

    Raises RateReached, and Invalid for more at once than a minute may have.
    """
    caps = project.max_submits_a_minute, project.user_max_submits_a_minute
    if caps == (None, None):
        return
    recent = Workload.objects.filter(
        Q(array_index=None) | Q(array_index=0),
        project=project,
        id__gte=ids.least_since(MINUTE.seconds + _SLACK_S),
        submitted_at__gt=at - MINUTE,
    )
    _check(project.name, recent, caps[0], count, at)
    own = recent.filter(submitted_by=actor.user)
    _check(f"{actor.name} in {project.name}", own, caps[1], count, at)


def _check(
    whose: str, recent: QuerySet[Workload], most: int | None, count: int, at: datetime
) -> None:
    if most is None:
        return
    if count > most:
        raise Invalid(
            f"{whose} may submit {most} workloads a minute, and these are {count} at once: send"
            f" no more than {most}.",
            code="queue-full",
        )
    submitted = recent.count()
    if submitted + count <= most:
        return
    # Once that many of them are older than a minute.
    leaves = submitted + count - most
    free_at = recent.order_by("submitted_at").values_list("submitted_at", flat=True)[leaves - 1]
    wait = free_at + MINUTE - at
    raise RateReached(whose=whose, submitted=submitted, count=count, most=most, wait=wait)
