"""How the newest attempt's pods are being started, told or stopped, as far as that is still open.

What must not live here: permission to see the workload, which the caller has.
"""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from scheduler.core.lifecycle import State
from scheduler.models import Operation, Workload

_WAITS_FOR_ITS_CLUSTER = frozenset({State.ADMITTED, State.CANCELLING, State.PREEMPTING})


@dataclass(frozen=True, slots=True)
class Dispatch:
    """`last_error` is the cluster's answer to the last try that failed; `next_try_at` may have
    passed, while a try is under way."""

    kind: str
    failures: int
    last_error: str
    next_try_at: datetime


def open_dispatch(*, workload_id: UUID) -> Dispatch | None:
    """What is not done yet in its cluster; a stop goes before the start that it overtook. One
    query."""
    row = (
        Operation.objects.filter(
            attempt__workload_id=workload_id, attempt__ended_at__isnull=True, done_at__isnull=True
        )
        .order_by("-kind")
        .first()
    )
    return None if row is None else Dispatch(row.kind, row.failures, row.last_error, row.due_at)


def failing(*, workload: Workload) -> Dispatch | None:
    """What keeps it in a state that only its cluster can end, None when no try has failed. One
    query, none in other states."""
    if workload.state not in _WAITS_FOR_ITS_CLUSTER:
        return None
    found = open_dispatch(workload_id=workload.id)
    return found if found is not None and found.failures else None
