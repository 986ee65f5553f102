"""Reading how projects are confined in clusters."""

from collections.abc import Iterable
from dataclasses import dataclass
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
    """A cluster where a change is not known to be applied yet; why, where that failed the last
    time."""

    cluster: str
    error: str


@dataclass(frozen=True, slots=True)
class Change:
    """That a project's quota of a flavor came to be of this version."""

    project_id: UUID
    flavor_id: UUID
    version: int


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


def lagging(*, changes: Iterable[Change]) -> dict[Change, tuple[Lagging, ...]]:
    """Of each: the clusters where the project's wall was not yet found to be as its quota was from
    then on, by name. One query."""
    found: dict[Change, tuple[Lagging, ...]] = dict.fromkeys(changes, ())
    rows = Confinement.objects.filter(project__in={change.project_id for change in found})
    for row in rows.select_related("cluster").order_by("cluster__name"):
        for change in found:
            seen = row.quotas.get(str(change.flavor_id), 0)
            if change.project_id == row.project_id and seen < change.version:
                found[change] += (Lagging(row.cluster.name, row.error),)
    return found
