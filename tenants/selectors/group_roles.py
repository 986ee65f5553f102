"""Reading which groups have which roles, as far as an actor says who has one."""

from uuid import UUID

from django.db.models import Q, QuerySet

from controlplane.kernel.errors import NotFound
from tenants import access
from tenants.access import Action, Actor
from tenants.models import GroupRole, Project


def group_roles(*, actor: Actor) -> QuerySet[GroupRole]:
    """Those at places whose members the actor manages; order them by id."""
    rows = GroupRole.objects.select_related("tenant", "project", "made_by")
    if actor.permits_everywhere(Action.MANAGE_MEMBERS):
        return rows
    managed = access.for_actor(Project.objects.all(), actor=actor, action=Action.MANAGE_MEMBERS)
    tenants = actor.visible_tenants(Action.MANAGE_MEMBERS)
    return rows.filter(Q(project__in=managed.values("id")) | Q(tenant__in=tenants))


def group_role(*, actor: Actor, id: UUID) -> GroupRole:
    """One of them. Raises NotFound."""
    found = group_roles(actor=actor).filter(id=id).first()
    if found is None:
        raise NotFound("There is no such role of a group.")
    return found
