"""The only door to tenants' objects: what each role may do, and what each actor may see.

A row is visible when the actor holds any role at its project, at a tenant above it, or fleet-wide.
What is not visible is NotFound, never NotAllowed: an outsider learns nothing. Models that belong
to a project name the way there in `access_path` ("project", "workload__project"; "" is the row
itself).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from uuid import UUID

from django.db.models import Model, Q, QuerySet

from controlplane.kernel import statements
from controlplane.kernel.errors import NotAllowed, NotFound
from tenants import ancestry
from tenants.ancestry import Parents
from tenants.models import Delegation, Member, Project, Role, Scope, Tenant, Token, User

type Place = Project | Tenant | None
"""Where somebody has a role, or something is said of; None is the whole fleet."""
type Lent = Mapping[User, Sequence[Member]]
"""The roles by which somebody decides in the place of each of those users."""


class Action(StrEnum):
    VIEW = "view"
    SUBMIT = "submit"
    CANCEL = "cancel"  # anybody's workload; members always cancel their own
    REQUEST_QUOTA = "request-quota"
    DECIDE_GATE = "decide-gate"  # anybody's; its owner always decides
    DECIDE_REQUEST = "decide-request"
    EDIT_QUOTA = "edit-quota"
    MANAGE_MEMBERS = "manage-members"
    MANAGE_QUEUE = "manage-queue"  # hold, drain, cap and isolate what of a project runs
    EDIT_POLICY = "edit-policy"  # what may be submitted, within what holds above
    MANAGE_CHANNELS = "manage-channels"  # say which other systems are told what happens
    VIEW_SPEND = "view-spend"
    VIEW_AUDIT = "view-audit"
    OPERATE = "operate"  # clusters, flavors, rates: fleet-wide only


_ALL = frozenset(Action)
ROLE_ACTIONS: dict[Role, frozenset[Action]] = {
    Role.OWNER: _ALL - {Action.OPERATE, Action.DECIDE_REQUEST, Action.EDIT_QUOTA},
    Role.APPROVER: frozenset(
        {Action.VIEW, Action.DECIDE_REQUEST, Action.VIEW_SPEND, Action.VIEW_AUDIT}
    ),
    Role.OPERATOR: frozenset(
        {Action.VIEW, Action.CANCEL, Action.EDIT_QUOTA, Action.MANAGE_QUEUE, Action.EDIT_POLICY,
         Action.MANAGE_CHANNELS, Action.VIEW_SPEND, Action.VIEW_AUDIT, Action.OPERATE}
    ),
    Role.MEMBER: frozenset(
        {Action.VIEW, Action.SUBMIT, Action.REQUEST_QUOTA, Action.VIEW_SPEND}
    ),
    Role.VIEWER: frozenset({Action.VIEW}),
}  # fmt: skip
# Who gives and takes which roles at their place and below it. An owner says who decides without
# deciding: nobody gives themself a role that permits more than they may do already (ADR 0009).
ROLE_GRANTS: dict[Role, frozenset[Role]] = {
    Role.OWNER: frozenset(Role),
    Role.APPROVER: frozenset(),
    Role.OPERATOR: frozenset(),
    Role.MEMBER: frozenset(),
    Role.VIEWER: frozenset(),
}
# What a token may do at most, by scope, next to VIEW. DECIDE_REQUEST and MANAGE_MEMBERS are in
# none: a token never grants. Nor is MANAGE_CHANNELS: none that leaked has others told for good.
SCOPE_ACTIONS: dict[Scope, frozenset[Action]] = {
    Scope.READ: frozenset({Action.VIEW_SPEND, Action.VIEW_AUDIT}),
    Scope.SUBMIT: frozenset({Action.SUBMIT, Action.CANCEL}),
    Scope.GATE: frozenset({Action.DECIDE_GATE}),
    Scope.QUOTA: frozenset({Action.REQUEST_QUOTA}),
    Scope.OPERATE: frozenset(
        {Action.OPERATE, Action.EDIT_QUOTA, Action.MANAGE_QUEUE, Action.EDIT_POLICY}
    ),
}


# What no service account does, whatever its role: who makes its tokens would ask by it for what
# they then grant themselves.
_OF_PEOPLE = frozenset(
    {Action.REQUEST_QUOTA, Action.DECIDE_REQUEST, Action.DECIDE_GATE, Action.MANAGE_MEMBERS}
)
SERVICE_ROLES = (Role.MEMBER, Role.VIEWER)
"""Those that a service account may have. They permit nothing that the owners of its place, who
make its tokens, may not do themselves."""


@dataclass(frozen=True)
class Actor:
    """Who acts: a user, perhaps through a token. Roles are read once an actor, so once a
    request."""

    user: User
    token: Token | None = None
    memberships: tuple[Member, ...] = field(default=(), repr=False)
    _lent: list[Lent] = field(default_factory=list, init=False, repr=False, compare=False)

    @property
    def label(self) -> str:
        """As audit rows name it."""
        return f"token:{self.token.id}" if self.token else f"user:{self.user.id}"

    @property
    def name(self) -> str:
        return self.user.get_username()

    @cached_property
    def ceiling(self) -> frozenset[Action]:
        """All that the way of signing in permits, whatever the roles."""
        if self.token is None:
            return _ALL - {Action.DECIDE_REQUEST} if self.user.is_break_glass else _ALL
        granted = (SCOPE_ACTIONS[Scope(scope)] for scope in self.token.scopes)
        kept_back = _OF_PEOPLE if self.user.is_service else frozenset()
        return frozenset({Action.VIEW}).union(*granted) - kept_back

    @property
    def bound_to(self) -> UUID | None:
        """The project of its token, which sees nothing else; None of any other."""
        return self.token.project_id if self.token else None

    @property
    def is_bound(self) -> bool:
        """Whether it is a token of one project."""
        return self.bound_to is not None

    @property
    def for_gates_only(self) -> bool:
        """Whether it is an outside system, which is told of gates and of nothing else."""
        return self.token is not None and self.token.scopes == [Scope.GATE]

    @cached_property
    def fleet_roles(self) -> frozenset[Role]:
        return frozenset(
            Role(m.role) for m in self.memberships if m.tenant_id is None and m.project_id is None
        )

    def lent(self, *, at: datetime) -> Lent:
        """As `lent_to` when it is first asked, one query an actor."""
        if not self._lent:
            self._lent.append(lent_to(self, at=at))
        return self._lent[0]

    @cached_property
    def _tree(self) -> tuple[Parents, Mapping[UUID, UUID]]:
        """All tenants, and whose the projects are that they have a role in or are bound to. One
        query an actor."""
        near = {self.bound_to, *(m.project_id for m in self.memberships)}
        return ancestry.parents_and_homes(id for id in near if id is not None)

    @property
    def tenant_parents(self) -> Parents:
        """One query an actor."""
        return self._tree[0]

    def tenants_above(self, tenant_id: UUID | None) -> Iterable[UUID]:
        """The tenant and all its ancestors. Without one, nothing is read."""
        return (
            () if tenant_id is None else ancestry.ancestors(tenant_id, parents=self.tenant_parents)
        )

    def tenants_below(self, tenant_id: UUID) -> list[UUID]:
        """The tenant and all those that have it above them."""
        return ancestry.below(tenant_id, parents=self.tenant_parents)

    def roles_at(self, *, tenant_id: UUID, project_id: UUID | None = None) -> frozenset[Role]:
        """The roles held at that place: its own, inherited and fleet-wide."""
        held = self.memberships_at(tenant_id=tenant_id, project_id=project_id)
        return frozenset(Role(m.role) for m in held)

    def memberships_at(self, *, tenant_id: UUID, project_id: UUID | None = None) -> list[Member]:
        """Those by which the roles at that place are held."""
        elsewhere = any(m.tenant_id is not None for m in self.memberships)
        above = set(self.tenants_above(tenant_id)) if elsewhere else set()
        return [
            m
            for m in self.memberships
            if (m.tenant_id is None and m.project_id is None)
            or (m.tenant_id is not None and m.tenant_id in above)
            or (m.project_id is not None and m.project_id == project_id)
        ]

    def visible_tenants(self, action: Action = Action.VIEW) -> frozenset[UUID]:
        """Tenants at or below a membership that permits `action`. Unused for fleet-wide roles."""
        mine = {
            m.tenant_id
            for m in self.memberships
            if m.tenant_id is not None and action in ROLE_ACTIONS[Role(m.role)]
        }
        if not mine:
            return frozenset()
        return frozenset(
            tenant
            for tenant in self.tenant_parents
            if not mine.isdisjoint(self.tenants_above(tenant))
        )

    @property
    def sees_everywhere(self) -> bool:
        return bool(self.fleet_roles) and not self.is_bound

    @cached_property
    def seen_tenants(self) -> frozenset[UUID]:
        """Those that they have a role in, those below, and those above these and above projects of
        theirs. Unused for fleet-wide roles."""
        projects = self._tree[1]
        if self.bound_to is None:
            near = {*self.visible_tenants(), *projects.values()}
        else:
            home = projects.get(self.bound_to)
            held = home and self.roles_at(tenant_id=home, project_id=self.bound_to)
            near = {home} if home and held else set()
        return frozenset(above for each in near for above in self.tenants_above(each))

    def permits_everywhere(self, action: Action) -> bool:
        """Whether a fleet-wide role permits `action`."""
        return any(action in ROLE_ACTIONS[role] for role in self.fleet_roles)


def lent_to(actor: Actor, *, at: datetime) -> Lent:
    """Those who can sign in and let the actor decide in their place then. One query, none of a
    token, which decides nothing."""
    if actor.token is not None:
        return {}
    rows = Member.objects.filter(
        Delegation.holds(at=at, way="user__delegations__"),
        user__delegations__delegate=actor.user,
        user__is_active=True,
    )
    found: dict[User, list[Member]] = defaultdict(list)
    for each in rows.select_related("user").order_by("user_id", "id"):
        found[each.user].append(each)
    return dict(found)


def actor_for(*, user: User, token: Token | None = None) -> Actor:
    """The actor behind a request. A token that is bound to a project sees nothing else."""
    return Actor(user, token, tuple(statements.read(Member, "user_id = %s", [user.id])))


def visible_projects(actor: Actor, action: Action = Action.VIEW) -> Q:
    """The condition on Project rows in which this actor may do `action`."""
    if action not in actor.ceiling:
        return Q(id__in=())
    if actor.permits_everywhere(action):
        seen = Q()
    else:
        own = [
            m.project_id
            for m in actor.memberships
            if m.project_id is not None and action in ROLE_ACTIONS[Role(m.role)]
        ]
        seen = Q(tenant_id__in=actor.visible_tenants(action)) | Q(id__in=own)
    if actor.is_bound:
        seen &= Q(id=actor.bound_to)
    return seen


def for_actor[M: Model](
    queryset: QuerySet[M], *, actor: Actor, action: Action = Action.VIEW
) -> QuerySet[M]:
    """Only the rows in whose project the actor may do `action`, by default see.

    Raises TypeError for a model without `access_path`: an unscoped query is a defect.
    """
    if queryset.model is Project:
        return queryset.filter(visible_projects(actor, action))
    path = getattr(queryset.model, "access_path", None)
    if path is None:
        raise TypeError(f"{queryset.model.__name__} has no access_path")
    if not actor.is_bound and action in actor.ceiling and actor.permits_everywhere(action):
        return queryset
    projects = Project.objects.filter(visible_projects(actor, action)).values("id")
    return queryset.filter(**{f"{path}__in": projects})


def tenants_for_actor(actor: Actor) -> QuerySet[Tenant]:
    """All of them to a role in the whole fleet, else `seen_tenants`."""
    if actor.sees_everywhere:
        return Tenant.objects.all()
    return Tenant.objects.filter(id__in=actor.seen_tenants)


def sees_tenant(actor: Actor, tenant: Tenant) -> bool:
    """Whether it is one of these."""
    return actor.sees_everywhere or tenant.id in actor.seen_tenants


def allowed(
    actor: Actor, action: Action, *, project: Project, apart_from: UUID | None = None
) -> bool:
    """Whether the actor may do this in that project, also without the roles that came about
    through the user `apart_from`."""
    if action not in actor.ceiling:
        return False
    token = actor.token
    if token is not None and token.project_id not in (None, project.id):
        return False
    held = actor.memberships_at(tenant_id=project.tenant_id, project_id=project.id)
    return any(
        action in ROLE_ACTIONS[Role(m.role)] for m in held if not m.came_through(apart_from)
    )


def authorize(actor: Actor, action: Action, *, project: Project) -> None:
    """Raises NotFound when the actor can't even see the project, NotAllowed when only not this."""
    if not allowed(actor, Action.VIEW, project=project):
        raise NotFound("There is no such project.")
    if not allowed(actor, action, project=project):
        raise NotAllowed(f"Your role in {project.name} does not permit: {action.value}.")


def authorize_fleet(actor: Actor, action: Action) -> None:
    """For what belongs to no tenant: clusters, flavors, rates. Raises NotAllowed."""
    if not allowed_at(actor, action, place=None):
        raise NotAllowed(f"This needs a fleet-wide role that permits: {action.value}.")


def project_or_404(actor: Actor, project_id: UUID) -> Project:
    """The project, if the actor sees it. Raises NotFound, the same for foreign and missing ids."""
    found = statements.read(Project, "id = %s", [project_id])
    if not found or not allowed(actor, Action.VIEW, project=found[0]):
        raise NotFound("There is no such project.")
    return found[0]


def get_or_404[M: Model](queryset: QuerySet[M], *, actor: Actor, id: UUID) -> M:
    """One row by id, if the actor sees it. Raises NotFound."""
    row = for_actor(queryset, actor=actor).filter(pk=id).first()
    if row is None:
        name = queryset.model._meta.verbose_name
        raise NotFound(f"There is no such {name}.")
    return row


def allowed_for_tenant(actor: Actor, action: Action, *, tenant: Tenant) -> bool:
    """Whether the actor may do this to what belongs to the tenant itself."""
    roles = actor.roles_at(tenant_id=tenant.id)
    permitted = any(action in ROLE_ACTIONS[role] for role in roles)
    return permitted and not actor.is_bound and action in actor.ceiling


def authorize_tenant(actor: Actor, action: Action, *, tenant: Tenant) -> None:
    """For what belongs to a tenant itself: its projects, its members.

    Raises NotFound when the actor can't even see the tenant, NotAllowed when only not this.
    """
    if not sees_tenant(actor, tenant):
        raise NotFound("There is no such tenant.")
    if not allowed_for_tenant(actor, action, tenant=tenant):
        raise NotAllowed(f"Your role in {tenant.name} does not permit: {action.value}.")


def tenant_or_404(actor: Actor, tenant_id: UUID) -> Tenant:
    """The tenant, if the actor sees it. Raises NotFound."""
    tenant = tenants_for_actor(actor).filter(id=tenant_id).first()
    if tenant is None:
        raise NotFound("There is no such tenant.")
    return tenant


def allowed_at(actor: Actor, action: Action, *, place: Place) -> bool:
    """Whether the actor may do this to what belongs to the place itself."""
    if isinstance(place, Project):
        return allowed(actor, action, project=place)
    if place is not None:
        return allowed_for_tenant(actor, action, tenant=place)
    may = action in actor.ceiling and actor.permits_everywhere(action)
    return may and not actor.is_bound


def authorize_at(actor: Actor, action: Action, *, place: Place) -> None:
    """Raises NotFound when the actor can't even see the place, NotAllowed when only not this."""
    if isinstance(place, Project):
        authorize(actor, action, project=place)
    elif place is not None:
        authorize_tenant(actor, action, tenant=place)
    else:
        authorize_fleet(actor, action)


def ids_at(place: Place) -> tuple[UUID | None, UUID | None]:
    """The tenant of the place and its project, as the audit names where something was done."""
    if isinstance(place, Project):
        return place.tenant_id, place.id
    return (place.id if place else None), None


def project_and_tenant(place: Place) -> tuple[Project | None, Tenant | None]:
    """As rows name it that are of one place: both None is the fleet."""
    return (
        place if isinstance(place, Project) else None,
        place if isinstance(place, Tenant) else None,
    )
