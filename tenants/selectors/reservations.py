"""Reservations, as far as an actor may see."""

from datetime import datetime
from uuid import UUID

from django.db.models import QuerySet

from tenants import access
from tenants.access import Actor
from tenants.models import Project, Reservation


def reservations(
    *, actor: Actor, at: datetime, project: Project | None = None
) -> QuerySet[Reservation]:
    """Those that keep something at `at` or later, with what a list shows; order them as you
    like."""
    rows = Reservation.objects.filter(Reservation.lasts_beyond(at), cancelled_at=None)
    if project is not None:
        rows = rows.filter(project=project)
    return access.for_actor(rows.select_related("project", "flavor", "made_by"), actor=actor)


def reservation(*, actor: Actor, id: UUID) -> Reservation:
    """One of them, over or not. Raises NotFound."""
    rows = Reservation.objects.select_related("project", "flavor", "made_by")
    return access.get_or_404(rows, actor=actor, id=id)
