"""Draining queues: what runs in their projects and may be stopped gives way, and waits again.

Asked before every cycle rather than once, so that what was being admitted while somebody began to
drain goes too. What may not be preempted ends by itself.
"""

from datetime import datetime

from django.db import transaction

from scheduler.core.lifecycle import UNDER_WAY, State
from scheduler.models import LIVE, Workload
from scheduler.services import stops
from scheduler.services.transition import Step, transition
from tenants.models import QueueState

ACTOR = "system:scheduler"
MOST = 500
"""Workloads a call, so that its transaction stays short: the next one takes the rest."""


def evict(*, at: datetime, speed: float = 1.0) -> int:
    """Ask for the end of what is to give way, MOST at most; how many there were. `speed` is how
    many seconds of `at` pass in one."""
    rows = Workload.objects.filter(
        LIVE,
        project__queue_state=QueueState.DRAINING,
        state__in=sorted(UNDER_WAY),
        preemptible=True,
    ).select_related("project")
    found = list(rows.order_by("id")[:MOST])
    if not found:
        return 0
    with transaction.atomic():
        moved = transition(
            [
                Step(
                    row.id,
                    row.project_id,
                    State(row.state),
                    State.PREEMPTING,
                    f"its project's queue is drained: {row.project.queue_note}",
                    version=row.version,
                )
                for row in found
            ],
            actor=ACTOR,
            actor_name="scheduler",
            at=at,
        )
        stops.evict(workload_ids=sorted(moved), at=at, speed=speed)
    return len(moved)
