"""Why each workload waits → its row, whether or not anything else of the plan comes true."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from django.db import transaction

from controlplane.kernel import statements
from controlplane.kernel.commits import NOT_WAITING
from scheduler.core.plan import Hold
from scheduler.core.reasons import Reason, describe
from scheduler.core.units import WorkloadId
from scheduler.loop.lease import Lease, fence
from scheduler.loop.recording import inputs
from scheduler.selectors.waiting import Waiting

REASON_AGE = timedelta(seconds=30)
"""A reason is written again when it is older, so that none shown is older than a minute (P14)."""

# Workloads of one class share a reason, so each is sent once. Nobody waits for the disk: what a
# server that dies forgets is written by the next cycle.
_WRITE = f"""
UPDATE scheduler_workload w SET reason = k.reason, reason_at = %s
FROM unnest(%s::uuid[], %s::int[]) AS h(id, kind)
JOIN unnest(%s::jsonb[]) WITH ORDINALITY AS k(reason, kind) ON k.kind = h.kind,
{NOT_WAITING}
WHERE w.id = h.id AND w.state = 'PENDING'
"""  # noqa: S608  # a constant


def write(
    *,
    lease: Lease,
    waiting: Mapping[WorkloadId, Waiting],
    holds: Sequence[Hold],
    at: datetime,
    speed: float,
) -> bool:
    """Write the reasons that changed in kind, or are getting old; whether any changed in kind.
    Raises lease.Fenced."""
    old_at = (at - REASON_AGE * speed).timestamp()
    reasons: list[str] = []
    fresh: list[tuple[WorkloadId, int]] = []
    changed = False
    for hold in holds:
        code = hold.reason.code
        due = [
            id
            for id in hold.workloads
            if (one := waiting[id]).reason_code != code
            or one.reason_at is None
            or one.reason_at < old_at
        ]
        if due:
            changed = changed or any(waiting[id].reason_code != code for id in due)
            reasons.append(_as_json(hold.reason))
            fresh += [(id, len(reasons)) for id in due]
    if not fresh:
        return False
    with transaction.atomic(), statements.cursor() as cursor:
        fence(lease)
        cursor.execute(
            _WRITE,
            [
                at,
                [id for id, _ in fresh],
                [kind for _, kind in fresh],
                reasons,
            ],
        )
        if changed:
            inputs.outdate()
    return changed


def _as_json(reason: Reason) -> str:
    value = {"code": reason.code, "numbers": dict(reason.numbers), "text": describe(reason)}
    return json.dumps(value)
