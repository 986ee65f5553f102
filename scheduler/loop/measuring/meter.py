"""Placements → usage intervals: what was held from its pod's start to its end, each moment once.

An interval is closed when the pod ends, and at full hours while it runs. What is closed late is
cut where days (UTC) begin, so that each day has its own spend.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, time, timedelta
from itertools import pairwise
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from clusters.models import ClusterState
from controlplane.kernel import statements
from controlplane.kernel.crash import crash
from scheduler.models import Placement
from scheduler.selectors.fleet import rows
from tenants.services import ledger
from tenants.services.past import Interval

LAG = timedelta(minutes=2)
"""How long after a full hour it is closed: by then a pod's end within the hour has been seen."""
MOST_DAYS = 31
"""Midnights at which one interval is cut, the latest ones. It bounds the rows of a pod that is
closed very late, and of replays in accelerated time, where a pod may span a hundred days."""


def close(*, placements: Iterable[UUID]) -> None:
    """Meter these placements to their end. In the caller's transaction, which ended them."""
    _meter(list(placements), until=None)


def tick(*, at: datetime, speed: float = 1.0) -> int:
    """Close the last full hour of all that runs on clusters heard of, and charge what got a rate;
    how many placements were metered."""
    settled = at - LAG * speed
    hour = settled.replace(minute=0, second=0, microsecond=0)
    # In small transactions: each locks its rows against observe.
    due = list(
        Placement.objects.filter(
            Q(metered_until__lt=hour) | Q(metered_until__isnull=True),
            attempt__cluster__state=ClusterState.ACTIVE,
            started_at__lt=hour,
            ended_at__isnull=True,
            released_at__isnull=True,
        ).values_list("id", flat=True)
    )
    for start in range(0, len(due), 500):
        with transaction.atomic():
            _meter(due[start : start + 500], until=hour)
            crash("M1")
    ledger.charge_unpriced()
    return len(due)


_UNMETERED = """
SELECT p.id, p.workload_id, p.flavor_id, p.amount_milli, coalesce(p.metered_until, p.started_at),
       coalesce(%s::timestamptz, p.ended_at), w.project_id, w.submitted_by_id, a.cluster_id
FROM scheduler_placement p
JOIN scheduler_workload w ON w.id = p.workload_id JOIN scheduler_attempt a ON a.id = p.attempt_id
WHERE p.id = ANY(%s) AND p.started_at IS NOT NULL AND (p.ended_at IS NULL) = %s
ORDER BY p.id FOR NO KEY UPDATE OF p
"""
_METERED = """
UPDATE scheduler_placement SET metered_until = coalesce(%s::timestamptz, ended_at)
WHERE id = ANY(%s)
"""


def _meter(placements: Sequence[UUID], *, until: datetime | None) -> None:
    """Meter those that have ended to their end, or those that have not `until` then."""
    usages, metered = [], []
    for id, workload, flavor, amount, start, end, project, user, cluster in rows(
        _UNMETERED, [until, placements, until is not None]
    ):
        if end <= start:
            continue
        usages += [
            Interval(project, flavor, cluster, user, id, workload, amount, lower, upper)
            for lower, upper in _days(start, end)
        ]
        metered.append(id)
    ledger.record(usages)
    with statements.cursor() as cursor:
        cursor.execute(_METERED, [until, metered])


def _days(start: datetime, end: datetime) -> Iterator[tuple[datetime, datetime]]:
    """The time in parts of a day (UTC) each; what comes before the last MOST_DAYS is one part."""
    midnight = datetime.combine(end.astimezone(UTC), time(), UTC)
    if midnight == end:
        midnight -= timedelta(days=1)
    count = min(MOST_DAYS, -((start - midnight) // timedelta(days=1)))
    cuts = [midnight - timedelta(days=back) for back in reversed(range(count))]
    return pairwise([start, *cuts, end])
