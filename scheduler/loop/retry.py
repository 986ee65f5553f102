"""Giving up an attempt that its cluster does not take, so that the workload is tried again."""

from datetime import datetime
from uuid import UUID

from django.db import transaction

from controlplane.kernel import hints
from scheduler.core.lifecycle import State
from scheduler.models import Attempt, Operation, OperationKind
from scheduler.services.transition import Step, lock, transition


def give_up(
    *, attempt_id: UUID, workload_id: UUID, project_id: UUID, why: str, actor: str, at: datetime
) -> bool:
    """Take the attempt's pods back; False when it runs, or is on its way out already.

    Once its pods are gone, `observe` counts a failed try and the workload is PENDING again, or
    FAILED after too many.
    """
    with transaction.atomic():
        lock([attempt_id])
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
        Attempt.objects.filter(id=attempt_id).update(trouble=why[:500])
        Operation.objects.bulk_create(
            [Operation(attempt_id=attempt_id, kind=OperationKind.STOP)], ignore_conflicts=True
        )
        hints.hint(hints.DISPATCH)
    return True
