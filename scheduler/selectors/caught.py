"""Pods that others made: which are free to be started, which wait outside the queue, and what
those are called that run."""

from collections.abc import Sequence
from uuid import UUID

from django.db.models import F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from scheduler.models import CaughtPod, Placement
from tenants import access
from tenants.access import Actor

FREE = """
c.gone_at IS NULL AND NOT EXISTS (
    SELECT 1 FROM scheduler_placement given
    WHERE given.id = c.placement_id AND (given.released_at IS NULL OR given.pod_uid <> ''))
"""
"""Of caught pods `c`: those that no placement has, or might have opened."""
SHOWN = 50
"""Pods that wait outside the queue, at most."""


def named(placements: QuerySet[Placement]) -> QuerySet[Placement]:
    """The same, with the `pod` that each has in its cluster."""
    taken = CaughtPod.objects.filter(placement=OuterRef("pk")).order_by("-id").values("name")
    return placements.annotate(pod=Coalesce(Subquery(taken[:1]), F("pod_name")))


def outside(*, actor: Actor, project: UUID | None) -> Sequence[CaughtPod]:
    """Those that no workload waits with: refused, or left gated by one that has ended. Of projects
    that the actor sees, or of one; the oldest first, SHOWN at most."""
    refused = Q(pod_set__isnull=True) & ~Q(refusal="")
    left = Q(pod_set__workload__ended_at__isnull=False, placement__opened_at__isnull=True)
    found = CaughtPod.objects.filter(refused | left, gone_at__isnull=True)
    if project is not None:
        found = found.filter(project_id=project)
    seen = access.for_actor(found, actor=actor).select_related(
        "project", "cluster", "pod_set__workload"
    )
    return list(seen.order_by("id")[:SHOWN])
