"""Giving up an attempt that its cluster does not take, so that the workload is tried again."""

from datetime import datetime
from uuid import UUID

from django.db import transaction

from scheduler.core.failures import FailureClass
from scheduler.core.lifecycle import State
from scheduler.models import Attempt
from scheduler.services import stops
from scheduler.services.transition import Step, lock, transition


def give_up(
    *,
    attempt_id: UUID,
    workload_id: UUID,
    project_id: UUID,
    why: str,
    failure: FailureClass | None,
    actor: str,
    at: datetime,
) -> bool:
    """Take the attempt's pods back; False when it runs, or is on its way out or over.

    Once its pods are gone, `settle` counts a failed try and the workload is PENDING again, or
    FAILED where its retries do not include that, or are used up. With `failure` None it is no
    failed try, and PENDING again in any case.
    """
    with transaction.atomic():
        lock([attempt_id])
        if not Attempt.objects.filter(id=attempt_id, ended_at__isnull=True).exists():
            return False  # the workload may be on its next one
        moved = transition(
            [
                Step(workload_id, project_id, state, State.PREEMPTING, why)
                for state in (State.ADMITTED, State.BOUND)
            ],
            actor=actor,
            actor_name=actor.removeprefix("system:"),
            at=at,
        )
        if not moved:
            return False
        if failure is not None:
            seen_first = Attempt.objects.filter(id=attempt_id, failure="")
            seen_first.update(trouble=why[:500], failure=failure)
        stops.stop_attempts(attempt_ids=[attempt_id])
    return True
