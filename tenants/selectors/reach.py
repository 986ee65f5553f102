"""Reading which live tokens reach into a place, whoever they are of, for who owns it."""

from datetime import datetime
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet

from controlplane.kernel.errors import NotFound
from tenants import access
from tenants.access import Action, Actor, Place
from tenants.models import Member, Project, Tenant, Token


def tokens(*, actor: Actor, place: Place, at: datetime) -> QuerySet[Token]:
    """Of people and service accounts with a role there, above it or below it, narrowed to nothing
    else; None is the whole fleet and all there are. Order them by -id. As with its people, who
    has a role in the whole fleet is told to who owns the fleet alone.

    Raises NotFound or NotAllowed for who does not say who has a role there.
    """
    access.authorize_at(actor, Action.MANAGE_MEMBERS, place=place)
    live = Token.objects.filter(revoked_at=None, expires_at__gt=at, user__is_active=True)
    rows = live.select_related(
        "user__service_tenant", "user__service_project", "project", "made_by"
    )
    if place is None:
        return rows
    held, narrowed = _within(actor, place)
    roles = Member.objects.filter(held, user=OuterRef("user"))
    return rows.filter(Q(project=None) | narrowed).filter(Exists(roles))


def token(*, actor: Actor, place: Place, id: UUID, at: datetime) -> Token:
    """One of them. Raises as `tokens`, and NotFound."""
    found = tokens(actor=actor, place=place, at=at).filter(id=id).first()
    if found is None:
        raise NotFound("There is no such token.")
    return found


def _within(actor: Actor, place: Project | Tenant) -> tuple[Q, Q]:
    """Roles by which one gets there, and projects of it."""
    if isinstance(place, Project):
        above = list(actor.tenants_above(place.tenant_id))
        return Q(tenant_id__in=above) | Q(project=place), Q(project=place)
    below = actor.tenants_below(place.id)
    around = [*actor.tenants_above(place.id), *below]
    there = Q(tenant_id__in=around) | Q(project__tenant_id__in=below)
    return there, Q(project__tenant_id__in=below)
