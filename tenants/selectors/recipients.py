"""Who is told of what happens in a project: people by their roles, and channels."""

from collections.abc import Callable, Collection, Iterable
from datetime import datetime
from uuid import UUID

from django.db.models import Q, QuerySet

from tenants import access, ancestry
from tenants.access import Action
from tenants.models import Channel, Event, Project, QuotaRequest, Role, Tenant, User
from tenants.selectors import deciders as of_steps
from tenants.selectors import delegations
from tenants.selectors.chains import Chain


def deciders(request: QuotaRequest, chain: Chain, *, at: datetime) -> list[User]:
    """Who may take the step that is due then, by a role of their own or for somebody: of these
    only who sees the project still. Two queries, and up to two for each who stands in."""
    own, others = of_steps.able(
        members=of_steps.members(),
        delegations=delegations.live(at=at),
        request=request,
        step=chain.due,
        chain=chain,
    )
    delegates = {each.delegate_id: each.delegate for each in others}.values()
    return [*own.values(), *(user for user in delegates if sees(user, request.project))]


def asker(request: QuotaRequest) -> list[User]:
    """Who asked, unless they see the project no more. One query."""
    return [request.requested_by] if sees(request.requested_by, request.project) else []


def owners(place: Project | Tenant) -> QuerySet[User]:
    """Its owners and those of the tenants above it. Those of the whole fleet own all of it, and
    would be told of everything."""
    return _with_roles([Role.OWNER], _at(place, "memberships__"))


def reviewers(project: Project) -> list[User]:
    """Who owns or operates the project or a tenant above it; and who does so in the whole fleet
    where nobody else may confirm its quota. Two queries, or three."""
    roles = [Role.OWNER, Role.OPERATOR]
    near = list(_with_roles(roles, _at(project, "memberships__")))
    if _with_roles(roles, _at(project.tenant, "memberships__")).exists():
        return near
    fleet = _with_roles(roles, _of_fleet("memberships__"))
    return list({user.id: user for user in (*near, *fleet)}.values())


def channels(place: Project | Tenant, event: Event) -> list[UUID]:
    """Those of it, of the tenants above it and of the fleet that are for such an event. Two
    queries."""
    return channels_of([place])(place, event)


def channels_of(
    places: Collection[Project | Tenant],
) -> Callable[[Project | Tenant, Event], list[UUID]]:
    """`channels` of any of these places, read at once. Two queries."""
    parents = ancestry.parents()
    above = {
        each.id: frozenset(ancestry.ancestors(_tenant_of(each), parents=parents))
        for each in places
    }
    near = Q(project__in=above) | Q(tenant__in=frozenset().union(*above.values()))
    rows = list(
        Channel.objects.filter(near | _of_fleet())
        .order_by("id")
        .values_list("id", "project_id", "tenant_id", "events")
    )

    def found(place: Project | Tenant, event: Event) -> list[UUID]:
        return [
            id
            for id, of_project, of_tenant, events in rows
            if event in events
            and of_project in (None, place.id)
            and (of_tenant is None or of_tenant in above[place.id])
        ]

    return found


def sees(user: User, project: Project) -> bool:
    """By a role that they have now. One query."""
    return access.allowed(access.actor_for(user=user), Action.VIEW, project=project)


def _tenant_of(place: Project | Tenant) -> UUID:
    return place.tenant_id if isinstance(place, Project) else place.id


def _with_roles(roles: Iterable[Role], where: Q) -> QuerySet[User]:
    found = User.objects.filter(where, memberships__role__in=list(roles))
    return found.order_by("id").distinct()


def _at(place: Project | Tenant, way: str) -> Q:
    above = list(ancestry.ancestors(_tenant_of(place), parents=ancestry.parents()))
    of_tenants = Q(**{f"{way}tenant__in": above})
    return Q(**{f"{way}project": place}) | of_tenants if isinstance(place, Project) else of_tenants


def _of_fleet(way: str = "") -> Q:
    """`way` leads to the row that has the place."""
    return Q(**{f"{way}project": None, f"{way}tenant": None})
