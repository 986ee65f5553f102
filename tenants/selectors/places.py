"""The tree of tenants with what all below each has, who has a role at a place, and whose quotas
somebody sets."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from django.db.models import F, Q, QuerySet, Sum

from clusters.models import SEVENTHS
from tenants import access
from tenants.access import Action, Actor
from tenants.models import Budget, Member, Project, Quota, Reservation, Tenant, TenantQuota
from tenants.selectors.people import projects_by_name, with_role


@dataclass(frozen=True, slots=True)
class Total:
    """Of a flavor, over a tenant and all below it that the reader sees, in thousandths."""

    flavor: str
    used_milli: int
    nominal_milli: int


@dataclass(frozen=True, slots=True)
class TenantLine:
    """A tenant in its tree; `level` counts from 1. `projects` are its own, by name."""

    tenant: Tenant
    level: int
    projects: tuple[tuple[UUID, str], ...]
    totals: tuple[Total, ...]


def tenant_lines(*, actor: Actor) -> tuple[TenantLine, ...]:
    """All that the actor sees, each behind its parent, siblings by name. Five queries.

    Quotas over a whole model are left out: they bind beside those of its flavors.
    """
    tenants = {row.id: row for row in access.tenants_for_actor(actor)}
    projects: dict[UUID, list[tuple[UUID, str]]] = defaultdict(list)
    seen = access.for_actor(Project.objects.all(), actor=actor)
    for id, name, tenant in seen.order_by("name").values_list("id", "name", "tenant_id"):
        projects[tenant].append((id, name))
    totals = _totals(actor, seen, tenants)
    children: dict[UUID | None, list[Tenant]] = defaultdict(list)
    for row in sorted(tenants.values(), key=lambda row: (row.name, str(row.id))):
        children[row.parent_id if row.parent_id in tenants else None].append(row)

    def walk(parent: UUID | None, level: int) -> Iterable[TenantLine]:
        for row in children[parent]:
            found = totals.get(row.id, {})
            yield TenantLine(
                tenant=row,
                level=level,
                projects=tuple(projects[row.id]),
                totals=tuple(Total(name, *found[name]) for name in sorted(found)),
            )
            yield from walk(row.id, level + 1)

    return tuple(walk(None, 1))


def _totals(
    actor: Actor, projects: QuerySet[Project], tenants: Iterable[UUID]
) -> dict[UUID, dict[str, tuple[int, int]]]:
    """Tenant → flavor → what is used and what is nominal there and below."""
    rows = Quota.objects.filter(project__in=projects.values("id"))
    own = [
        *rows.values_list("project__tenant_id", "flavor__name").annotate(
            Sum("used_milli"), Sum("nominal_milli")
        ),
        *TenantQuota.objects.filter(tenant__in=list(tenants))
        .annotate(none=F("nominal_milli") * 0)
        .values_list("tenant_id", "flavor__name", "none", "nominal_milli"),
    ]
    found: dict[UUID, dict[str, tuple[int, int]]] = defaultdict(dict)
    for tenant, flavor, used, nominal in own:
        if flavor.endswith(SEVENTHS):
            continue
        for above in actor.tenants_above(tenant):
            before = found[above].get(flavor, (0, 0))
            found[above][flavor] = before[0] + used, before[1] + nominal
    return found


def people(*, actor: Actor, place: Project | Tenant) -> list[Member]:
    """Who has a role there or above it, but in the whole fleet; the nearest first, by name.

    The caller sees the place.
    """
    tenant = place.tenant_id if isinstance(place, Project) else place.id
    far = {id: nth for nth, id in enumerate(actor.tenants_above(tenant), 1)}
    return sorted(
        with_role(actor=actor, place=place),
        key=lambda each: (
            far[each.tenant_id] if each.tenant_id else 0, each.user.username, each.role
        ),
    )  # fmt: skip


def of_seen[M: (Budget, Reservation)](rows: QuerySet[M], *, actor: Actor) -> QuerySet[M]:
    """Those of the projects and of the tenants that the actor sees."""
    projects = Project.objects.filter(access.visible_projects(actor)).values("id")
    tenants = access.tenants_for_actor(actor).values("id")
    return rows.filter(Q(project__in=projects) | Q(tenant__in=tenants))


def quota_owners(*, actor: Actor) -> list[Project | Tenant]:
    """Those whose quotas the actor may set, by name: of tenants who may in the whole fleet."""
    fleet_wide = access.allowed_at(actor, Action.EDIT_QUOTA, place=None)
    return [
        *projects_by_name(actor=actor, action=Action.EDIT_QUOTA),
        *(Tenant.objects.order_by("name", "id") if fleet_wide else ()),
    ]


def owned_tenants(*, actor: Actor) -> list[Tenant]:
    """Those in which the actor says what hangs there, by name."""
    rows = access.tenants_for_actor(actor).order_by("name", "id")
    return [
        row for row in rows if access.allowed_for_tenant(actor, Action.MANAGE_MEMBERS, tenant=row)
    ]
