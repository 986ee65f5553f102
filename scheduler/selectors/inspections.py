"""Reading inspections of pods, as far as an actor sees the workload."""

from uuid import UUID

from django.db.models.functions import Now

from scheduler.models import Inspection, Placement
from scheduler.models.inspection import KEPT
from scheduler.selectors import caught
from tenants import access
from tenants.access import Actor


def placement(*, actor: Actor, workload_id: UUID, id: UUID) -> Placement:
    """With its `pod`, workload and cluster. Raises NotFound, the same for foreign and missing
    ones."""
    rows = caught.named(Placement.objects.filter(workload_id=workload_id))
    rows = rows.select_related("workload__project", "attempt__cluster", "node")
    return access.get_or_404(rows, actor=actor, id=id)


def newest(*, placement: Placement) -> Inspection | None:
    """None where nobody asked lately."""
    lately = Inspection.objects.filter(timed_from__gt=Now() - KEPT)
    return lately.filter(placement=placement).first()
