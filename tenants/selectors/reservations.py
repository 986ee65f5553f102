"""Reservations, as far as an actor may see."""

from datetime import datetime
from uuid import UUID

from django.db.models import QuerySet

from controlplane.kernel.errors import NotFound
from tenants import access
from tenants.access import Actor, Place
from tenants.models import NEVER, Reservation
from tenants.selectors import places

SHOWN = 200


def reservations(*, actor: Actor, at: datetime, of: Place = None) -> QuerySet[Reservation]:
    """Those that keep something at `at` or later, of the project or tenant itself or else of all
    that the actor sees, with what a list shows; order them as you like."""
    rows = _seen(actor).filter(Reservation.lasts_beyond(at), cancelled_at=None)
    project, tenant = access.project_and_tenant(of)
    return rows if of is None else rows.filter(project=project, tenant=tenant)


def upcoming(
    *, actor: Actor, at: datetime, of: Place = None
) -> list[tuple[Reservation, tuple[datetime, datetime]]]:
    """The same with the window that each keeps now or next, as pages list them: the next to begin
    first, SHOWN at most."""
    rows = reservations(actor=actor, at=at, of=of).order_by("starts_at", "id")[:SHOWN]
    return [(row, next(row.windows(after=at, before=NEVER))) for row in rows]


def reservation(*, actor: Actor, id: UUID) -> Reservation:
    """One of them, over or not. Raises NotFound."""
    found = _seen(actor).filter(id=id).first()
    if found is None:
        raise NotFound("There is no such reservation.")
    return found


def _seen(actor: Actor) -> QuerySet[Reservation]:
    rows = Reservation.objects.select_related("project", "tenant", "flavor", "made_by")
    return places.of_seen(rows, actor=actor)
