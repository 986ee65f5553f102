"""Why each workload waits → its row, whether or not anything else of the plan comes true."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from django.db import connection, transaction

from scheduler.core.plan import Hold
from scheduler.core.reasons import Reason, describe
from scheduler.core.units import WorkloadId
from scheduler.loop.lease import Lease, fence
from scheduler.selectors.load import Waiting

REASON_AGE = timedelta(seconds=30)
"""A reason is written again when it is older, so that none shown is older than a minute (P14)."""

# Workloads of one class share a reason, so each is sent once.
_WRITE = """
UPDATE scheduler_workload w SET reason = k.reason, reason_at = %s
FROM unnest(%s::uuid[], %s::int[]) AS h(id, kind)
JOIN unnest(%s::jsonb[]) WITH ORDINALITY AS k(reason, kind) ON k.kind = h.kind
WHERE w.id = h.id AND w.state = 'PENDING'
"""


def write(
    *,
    lease: Lease,
    waiting: Mapping[WorkloadId, Waiting],
    holds: Sequence[Hold],
    at: datetime,
    speed: float,
) -> None:
    """Write the reasons that changed in kind, or are getting old. Raises lease.Fenced."""
    age, fresh = REASON_AGE * speed, []
    for hold in holds:
        known = waiting[hold.workload]
        old = known.reason_at is None or at - known.reason_at > age
        if old or known.reason_code != hold.reason.code:
            fresh.append(hold)
    if not fresh:
        return
    kinds = {reason: number for number, reason in enumerate({h.reason for h in fresh}, 1)}
    with transaction.atomic(), connection.cursor() as cursor:
        fence(lease)
        cursor.execute(
            _WRITE,
            [
                at,
                [hold.workload for hold in fresh],
                [kinds[hold.reason] for hold in fresh],
                [_as_json(reason) for reason in kinds],
            ],
        )


def _as_json(reason: Reason) -> str:
    value = {"code": reason.code, "numbers": dict(reason.numbers), "text": describe(reason)}
    return json.dumps(value)
