"""What keeps a workload from starting whatever there is room for."""

from collections.abc import Collection

from scheduler.core.limits import because
from scheduler.core.reasons import Reason, ReasonCode
from scheduler.core.snapshot import PendingView
from scheduler.core.units import ProjectId


def why_blocked(*, pending: PendingView, closed: Collection[ProjectId], at: int) -> Reason | None:
    """The first reason, None when there is none. Of the `closed` projects nothing starts."""
    if pending.project in closed:
        return because(ReasonCode.QUEUE_HELD)
    unmet = pending.waits_for
    if unmet is not None:
        return because(ReasonCode.DEPENDENCY, unmet_count=unmet.count, first=unmet.first)
    if pending.not_before > at:
        return because(ReasonCode.BACKOFF, retry_in_s=pending.not_before - at)
    return None
