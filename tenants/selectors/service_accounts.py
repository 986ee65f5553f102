"""Reading service accounts, as far as an actor says who has a role at their place."""

from datetime import datetime
from uuid import UUID

from django.db.models import Count, Max, Prefetch, Q, QuerySet

from controlplane.kernel.errors import NotFound
from tenants import access
from tenants.access import Action, Actor
from tenants.models import Member, Project, Tenant, Token, User


def at_place(*, actor: Actor, place: Project | Tenant, at: datetime) -> QuerySet[User]:
    """Those of the place itself, with `live_tokens` and `last_used_at`; order them by id.

    Raises NotFound or NotAllowed for who does not say who has a role there.
    """
    access.authorize_at(actor, Action.MANAGE_MEMBERS, place=place)
    project, tenant = access.project_and_tenant(place)
    rows = User.objects.filter(service_project=project, service_tenant=tenant)
    live = Q(tokens__revoked_at=None, tokens__expires_at__gt=at)
    roles = Prefetch("memberships", queryset=Member.objects.order_by("role"))
    return rows.prefetch_related(roles).annotate(
        live_tokens=Count("tokens", filter=live), last_used_at=Max("tokens__last_used_at")
    )


def one(*, actor: Actor, id: UUID) -> User:
    """One with its place. Raises NotFound where the actor does not see that, NotAllowed where
    they only do not say who has a role there."""
    accounts = User.objects.exclude(service_tenant=None, service_project=None)
    rows = accounts.select_related("service_tenant", "service_project__tenant")
    missing = NotFound("There is no such service account.")
    if (found := rows.filter(id=id).first()) is None:
        raise missing
    try:
        access.authorize_at(actor, Action.MANAGE_MEMBERS, place=found.service_place)
    except NotFound:
        raise missing from None
    return found


def tokens(*, account: User) -> QuerySet[Token]:
    """Its own, revoked and expired ones too; order them by -id."""
    return Token.objects.filter(user=account).select_related("project", "made_by")
