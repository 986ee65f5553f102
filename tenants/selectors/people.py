"""Reading tenants, projects, members and tokens, as far as an actor may see."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from django.db.models import Q, QuerySet

from controlplane.kernel.errors import NotFound
from tenants import access
from tenants.access import ROLE_ACTIONS, SCOPE_ACTIONS, Action, Actor
from tenants.models import Member, Project, Role, Scope, Tenant, Token


def tenants(*, actor: Actor) -> QuerySet[Tenant]:
    """As `access.tenants_for_actor`; order them by id."""
    return access.tenants_for_actor(actor).select_related("queue_changed_by")


def projects(
    *, actor: Actor, tenant_id: UUID | None = None, action: Action = Action.VIEW
) -> QuerySet[Project]:
    """Projects in which the actor may do `action`, with their tenants; order them by id.

    `tenant_id` narrows it to one tenant's own. Raises NotFound for a tenant the actor does not
    see.
    """
    projects = Project.objects.select_related("tenant", "queue_changed_by")
    rows = access.for_actor(projects, actor=actor, action=action)
    if tenant_id is not None:
        rows = rows.filter(tenant=access.tenant_or_404(actor, tenant_id))
    return rows


def projects_by_name(*, actor: Actor, action: Action = Action.VIEW) -> list[Project]:
    """The same by tenant and name, as forms and filters list them. One query."""
    rows = projects(actor=actor, action=action)
    return list(rows.order_by("tenant__name", "name", "id"))


def project(*, actor: Actor, id: UUID) -> Project:
    """One project with its tenant. Raises NotFound."""
    rows = Project.objects.select_related("tenant", "queue_changed_by")
    found = access.for_actor(rows, actor=actor).filter(id=id).first()
    return found or access.project_or_404(actor, id)


def roles(*, actor: Actor, project: Project) -> list[Role]:
    """What the actor is in that project, inherited roles included."""
    return sorted(actor.roles_at(tenant_id=project.tenant_id, project_id=project.id))


def members(*, actor: Actor, project: Project) -> QuerySet[Member]:
    """Who has a role at the project or at a tenant above it, except fleet-wide; order them by id.

    Raises NotFound when the actor does not see the project.
    """
    access.authorize(actor, Action.VIEW, project=project)
    return with_role(actor=actor, place=project)


def with_role(*, actor: Actor, place: Project | Tenant) -> QuerySet[Member]:
    """The same of a project or tenant that the caller sees."""
    tenant = place.tenant_id if isinstance(place, Project) else place.id
    at_or_above = Q(tenant_id__in=list(actor.tenants_above(tenant)))
    if isinstance(place, Project):
        at_or_above |= Q(project=place)
    return Member.objects.filter(at_or_above).select_related(
        "user", "granted_by", "tenant", "project", "group_role"
    )


def fleet_members(*, actor: Actor) -> QuerySet[Member]:
    """Who has a role in the whole fleet; order them by id.

    Raises NotAllowed for who has none there.
    """
    access.authorize_fleet(actor, Action.VIEW)
    return Member.objects.filter(project=None, tenant=None).select_related(
        "user", "granted_by", "group_role"
    )


def member(*, actor: Actor, id: UUID) -> Member:
    """One membership at a place the actor sees. Raises NotFound."""
    seen = access.for_actor(Project.objects.all(), actor=actor).values("id")
    places = Q(project_id__in=seen) | Q(tenant__in=access.tenants_for_actor(actor).values("id"))
    if actor.fleet_roles:
        places |= Q(project__isnull=True, tenant__isnull=True)
    rows = Member.objects.select_related("user", "tenant", "project", "group_role")
    found = rows.filter(places, id=id).first()
    if found is None:
        raise NotFound("There is no such member.")
    return found


def memberships(*, actor: Actor) -> Sequence[Member]:
    """The actor's roles; to a token of a project, those that reach it."""
    token = actor.token
    if token is None or token.project is None:
        return actor.memberships
    place = token.project
    return actor.memberships_at(tenant_id=place.tenant_id, project_id=place.id)


def tokens(*, actor: Actor) -> QuerySet[Token]:
    """The actor's own tokens, revoked and expired ones too; order them by -id. To one of a project
    those of that project."""
    own = Token.objects.filter(user=actor.user).select_related("project")
    return own.filter(project=actor.token.project_id) if actor.token and actor.is_bound else own


def tokens_by_end(
    rows: QuerySet[Token], *, at: datetime, ended: int
) -> tuple[list[Token], list[Token]]:
    """Those of `rows` that live, and as many of the others; the newest first. Two queries."""
    rows = rows.order_by("-id")
    live = Q(revoked_at=None, expires_at__gt=at)
    return list(rows.filter(live)), list(rows.exclude(live)[:ended])


def token(*, actor: Actor, id: UUID) -> Token:
    """One of the actor's own, or of a service account whose place they own. Raises NotFound."""
    rows = Token.objects.select_related(
        "project", "user__service_tenant", "user__service_project__tenant"
    )
    found = rows.filter(id=id).first()
    if found is not None:
        place = found.user.service_place
        owns = place is not None and access.allowed_at(actor, Action.MANAGE_MEMBERS, place=place)
        if found.user_id == actor.user.id or owns:
            return found
    raise NotFound("There is no such token.")


def offered_scopes(*, actor: Actor) -> list[Scope]:
    """Those that permit a token of the actor anything: to read, and to decide gates that are its
    own, always, the others by roles. A service account, which does less, owns no gates."""
    if actor.user.is_service:
        submits = any(m.role == Role.MEMBER for m in actor.memberships)
        return [Scope.READ, Scope.SUBMIT] if submits else [Scope.READ]
    always = {Scope.READ, Scope.GATE}
    own = frozenset[Action]().union(*(ROLE_ACTIONS[Role(m.role)] for m in actor.memberships))
    return [scope for scope in Scope if scope in always or SCOPE_ACTIONS[scope] & own]
