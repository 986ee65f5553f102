"""Rules of approval, as far as an actor may see."""

from uuid import UUID

from django.db.models import Q, QuerySet

from controlplane.kernel.errors import NotFound
from tenants import access
from tenants.access import Action, Actor
from tenants.models import ApprovalRule, Tenant


def rules(*, actor: Actor) -> QuerySet[ApprovalRule]:
    """Those that hold everywhere, which all may read whose requests they are about, and those of
    tenants that the actor sees; order them by id."""
    seen = Q(tenant=None) | Q(tenant__in=access.tenants_for_actor(actor).values("id"))
    return ApprovalRule.objects.filter(seen).select_related("tenant")


def rule(*, actor: Actor, id: UUID) -> ApprovalRule:
    """One of these. Raises NotFound."""
    found = rules(actor=actor).filter(id=id).first()
    if found is None:
        raise NotFound("There is no such rule.")
    return found


def places(*, actor: Actor) -> tuple[bool, list[Tenant]]:
    """Whether the actor may say it for everywhere, and for which tenants. One query."""
    everywhere = actor.permits_everywhere(Action.OPERATE) and not actor.is_bound
    seen = access.tenants_for_actor(actor).order_by("name", "id")
    return everywhere, [
        tenant
        for tenant in seen
        if access.allowed_for_tenant(actor, Action.MANAGE_MEMBERS, tenant=tenant)
    ]
