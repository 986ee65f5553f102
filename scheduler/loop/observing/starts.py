"""Starts that take too long: the room is given back, and the work tried again.

What its cluster says cannot start is given up sooner (`watching/watch`). This is for the rest: a
volume that is never mounted, a node that says nothing, a gate that the cluster does not let be
opened.
"""

from datetime import datetime, timedelta

from django.conf import settings

from clusters.models import ClusterState
from scheduler.core.failures import FailureClass
from scheduler.core.lifecycle import State
from scheduler.loop.observing.retry import give_up
from scheduler.models import LIVE, Attempt, Workload

ACTOR = "system:scheduler"


def give_up_late(*, at: datetime, speed: float = 1.0) -> int:
    """Take back what was admitted BERTH_START_S ago and has not come to run, in clusters that are
    heard of: of the others nobody knows what runs there. How many. BERTH_START_S are seconds of
    the real world, whatever the `speed` of the clock that `at` is read from."""
    most_s = settings.BERTH_START_S
    if not most_s:
        return 0
    late = Workload.objects.filter(
        LIVE,
        state__in=(State.ADMITTED, State.BOUND),
        admitted_at__lte=at - timedelta(seconds=most_s) * speed,
    )
    attempts = Attempt.objects.filter(
        workload__in=late, ended_at__isnull=True, cluster__state=ClusterState.ACTIVE
    )
    return sum(
        give_up(
            attempt_id=attempt,
            workload_id=workload,
            project_id=project,
            why=f"it did not come to run within {most_s} s",
            failure=FailureClass.REFUSED,
            actor=ACTOR,
            at=at,
        )
        for attempt, workload, project in attempts.order_by("id").values_list(
            "id", "workload_id", "workload__project_id"
        )
    )
