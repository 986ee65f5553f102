"""A project's queue: what waits, in which order, why, and until when probably."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Count, F, Q, QuerySet
from django.db.models.functions import Coalesce

from clusters import stock
from scheduler.core.lifecycle import UNDER_WAY, State
from scheduler.models import LIVE, Workload
from scheduler.selectors.fleet import rows
from scheduler.selectors.workloads import summarised
from tenants.models import Project

ORDER = ("-priority", "queued_at", "queued_as")
"""The planner's order inside one project, but for this: the planner knows submissions to the
second, and takes those of one second by id."""


def queue(*, project: Project) -> QuerySet[Workload]:
    """Pending workloads of a project that the caller may see; order them by ORDER."""
    waiting = Workload.objects.filter(LIVE, project=project, state=State.PENDING)
    return summarised(_in_turns(waiting))


def _in_turns(rows: QuerySet[Workload]) -> QuerySet[Workload]:
    """With what ORDER names."""
    return rows.annotate(
        queued_at=Coalesce(F("turn_at"), F("submitted_at")),
        queued_as=Coalesce(F("turn_of"), F("id")),
    )


def position_of(row: Workload) -> int:
    """Where a pending workload stands in its project's queue, from 1."""
    pending = Workload.objects.filter(LIVE, project_id=row.project_id, state=State.PENDING)
    at, of = row.turn_at or row.submitted_at, row.turn_of or row.id
    ahead = _in_turns(pending).filter(
        Q(priority__gt=row.priority)
        | Q(priority=row.priority, queued_at__lt=at)
        | Q(priority=row.priority, queued_at=at, queued_as__lt=of)
    )
    return ahead.count() + 1


@dataclass(frozen=True, slots=True)
class UnderWay:
    """Workloads that run or are being started, by whether a drained queue takes them back."""

    stoppable: int
    others: int


_COUNTS = {
    "stoppable": Count("id", filter=Q(preemptible=True), distinct=True),
    "others": Count("id", filter=Q(preemptible=False), distinct=True),
}


def under_way(of: Q) -> UnderWay:
    """Those of projects whose page the caller may see. One query."""
    work = Workload.objects.filter(LIVE, of, state__in=sorted(UNDER_WAY))
    return UnderWay(**work.aggregate(**_COUNTS))


def under_way_in(*, cluster_id: UUID) -> Mapping[str, UnderWay]:
    """Those of the cluster's pools by stock, and of all of it for "". Two queries."""
    work = Workload.objects.filter(LIVE, state__in=sorted(UNDER_WAY))
    whole = work.filter(attempts__cluster=cluster_id, attempts__ended_at=None)
    found = defaultdict(lambda: UnderWay(0, 0), {"": UnderWay(**whole.aggregate(**_COUNTS))})
    device = "placements__spans__device"
    held = work.filter(
        placements__attempt__ended_at=None,
        placements__spans__released_at=None,
        placements__spans__device__node__cluster=cluster_id,
    )
    for of, *counts in held.values_list(stock.column(f"{device}__")).annotate(**_COUNTS):
        found[of] = UnderWay(*counts)
    return found


_CLOSED = """
SELECT 'project', queue_state FROM tenants_project WHERE queue_state <> 'open'
UNION ALL SELECT 'project', 'frozen' FROM tenants_project WHERE quota_frozen_at IS NOT NULL
UNION ALL SELECT 'tenant', queue_state FROM tenants_tenant WHERE queue_state <> 'open'
UNION ALL SELECT CASE WHEN model = '' THEN 'cluster' ELSE 'pool' END, queue_state
FROM clusters_hardwarequeue WHERE queue_state <> 'open'
"""


def closed_counts() -> dict[tuple[str, str], int]:
    """How many queues of each kind are held, draining, and of projects frozen until their quota is
    confirmed; 0 too. One query."""
    found = Counter((of, state) for of, state in rows(_CLOSED))
    kinds, states = ("project", "tenant", "cluster", "pool"), ("held", "draining")
    told = [*((of, state) for of in kinds for state in states), ("project", "frozen")]
    return {each: found[each] for each in told}
