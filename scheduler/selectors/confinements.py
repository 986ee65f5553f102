"""Reading how projects are confined in clusters."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Count, Q, QuerySet

from scheduler.models import Confinement
from tenants.access import Actor, for_actor

DRIFTED = Q(drifted_at__isnull=False, repaired_at=None)
"""Somebody changed something, and it stands."""


@dataclass(frozen=True, slots=True)
class Amiss:
    """How many projects are in a cluster with drift that stands, and how many that could not be
    confined or looked at the last time."""

    cluster: str
    drifted: int
    failing: int


@dataclass(frozen=True, slots=True)
class Lagging:
    """A cluster where a change is not applied yet; why, where that failed the last time."""

    cluster: str
    error: str


FOLLOWED = timedelta(seconds=30)
"""After which a change was noticed (`loop.confine.follow`): what is not marked is as wanted."""


def here(*, actor: Actor, cluster_id: UUID) -> QuerySet[Confinement]:
    """Those in the cluster of projects that the actor sees."""
    rows = Confinement.objects.filter(cluster_id=cluster_id).select_related("project__tenant")
    return for_actor(rows, actor=actor)


def amiss() -> tuple[Amiss, ...]:
    """Of each cluster that a project was to be confined in, by name. One query."""
    counted = Confinement.objects.values("cluster__name").annotate(
        drifted=Count("id", filter=DRIFTED), failing=Count("id", filter=~Q(error=""))
    )
    columns = counted.order_by("cluster__name").values_list("cluster__name", "drifted", "failing")
    return tuple(Amiss(*row) for row in columns)


def lagging(*, changed: Mapping[UUID, datetime], at: datetime) -> dict[UUID, tuple[Lagging, ...]]:
    """Of projects, and when their quota has changed: the clusters where their wall is not as the
    quota is now, or may not be, by name. One query."""
    found: dict[UUID, tuple[Lagging, ...]] = {}
    rows = Confinement.objects.filter(project__in=list(changed)).select_related("cluster")
    for row in rows.order_by("cluster__name"):
        since = changed[row.project_id]
        unknown = at < since + FOLLOWED and (row.checked_at is None or row.checked_at < since)
        if row.checked_at is None or row.error or not row.digest or unknown:
            told = Lagging(row.cluster.name, row.error)
            found[row.project_id] = (*found.get(row.project_id, ()), told)
    return found
