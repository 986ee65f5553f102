"""Who is told of what happens in a project: people by their roles, and channels."""

from collections.abc import Iterable
from uuid import UUID

from django.db.models import Q, QuerySet

from tenants import access
from tenants.access import ROLE_ACTIONS, Action
from tenants.models import Channel, Event, Project, Role, User


def deciders(project: Project) -> QuerySet[User]:
    """Who may decide what is asked for there, by a role at it or anywhere above."""
    roles = [role for role, actions in ROLE_ACTIONS.items() if Action.DECIDE_REQUEST in actions]
    return _with_roles(roles, _at(project, "memberships__") | _of_fleet("memberships__"))


def owners(project: Project) -> QuerySet[User]:
    """Its owners and those of the tenants above it. Those of the whole fleet own all of it, and
    would be told of everything."""
    return _with_roles([Role.OWNER], _at(project, "memberships__"))


def channels(project: Project, event: Event) -> list[UUID]:
    """Those of it, of the tenants above it and of the fleet that are for such an event."""
    found = Channel.objects.filter(_at(project) | _of_fleet(), events__contains=[event])
    return list(found.order_by("id").values_list("id", flat=True))


def _with_roles(roles: Iterable[Role], where: Q) -> QuerySet[User]:
    found = User.objects.filter(where, memberships__role__in=list(roles))
    return found.order_by("id").distinct()


def _at(project: Project, way: str = "") -> Q:
    above = list(access.ancestors(project.tenant_id, parents=access.tenant_tree()))
    return Q(**{f"{way}project": project}) | Q(**{f"{way}tenant__in": above})


def _of_fleet(way: str = "") -> Q:
    """`way` leads to the row that has the place."""
    return Q(**{f"{way}project": None, f"{way}tenant": None})
