"""Tenants, their projects and quotas, as pages show them."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from tenants import access
from tenants.access import Action, Actor
from tenants.models import Grant, Project, Quota, TenantQuota

_MOMENT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Fall:
    """When a quota falls back next, for what was granted for a time ends, and to how much."""

    at: datetime
    to_milli: int


@dataclass(frozen=True, slots=True)
class QuotaLine:
    """A project's quota of a flavor, in thousandths; a limit None is none. `fall` is None where
    all of it is there for good, or nobody asked."""

    flavor: str
    flavor_id: UUID
    nominal_milli: int
    borrowing_limit_milli: int | None
    lending_limit_milli: int | None
    used_milli: int
    version: int
    enforce_at: datetime | None
    fall: Fall | None = None

    @property
    def over_milli(self) -> int:
        """Held beyond what it allows; 0 or less where it is kept."""
        if self.borrowing_limit_milli is None:
            return 0
        return self.used_milli - self.nominal_milli - self.borrowing_limit_milli


@dataclass(frozen=True, slots=True)
class SharedLine:
    """What a tenant has of a flavor for all below it, beside their own, in thousandths; its limits
    bound what they borrow and lend together, None is no limit."""

    tenant: str
    tenant_id: UUID
    flavor: str
    nominal_milli: int
    borrowing_limit_milli: int | None
    lending_limit_milli: int | None
    enforce_at: datetime | None


@dataclass(frozen=True, slots=True)
class Branch:
    """A project with its quotas by flavor. `path` are the tenants above it, from the top, and
    `shared` what those have."""

    id: UUID
    name: str
    path: tuple[str, ...]
    quotas: tuple[QuotaLine, ...]
    may_request: bool
    may_edit: bool
    shared: tuple[SharedLine, ...]


def branches(*, actor: Actor) -> tuple[Branch, ...]:
    """Every project the actor sees, in tree order. Five queries."""
    names = dict(access.tenants_for_actor(actor).values_list("id", "name"))
    projects = list(access.for_actor(Project.objects.all(), actor=actor))
    quotas = with_falls(by_project(projects))
    shared = _shared(names)
    above = {
        project.id: [
            tenant
            for tenant in reversed(list(actor.tenants_above(project.tenant_id)))
            if tenant in names
        ]
        for project in projects
    }
    paths = {id: tuple(names[tenant] for tenant in tenants) for id, tenants in above.items()}
    projects.sort(key=lambda project: (paths[project.id], project.name, str(project.id)))
    return tuple(
        Branch(
            id=project.id,
            name=project.name,
            path=paths[project.id],
            quotas=quotas.get(project.id, ()),
            may_request=access.allowed(actor, Action.REQUEST_QUOTA, project=project),
            may_edit=access.allowed(actor, Action.EDIT_QUOTA, project=project),
            shared=tuple(line for tenant in above[project.id] for line in shared.get(tenant, ())),
        )
        for project in projects
    )


def _shared(names: Mapping[UUID, str]) -> dict[UUID, tuple[SharedLine, ...]]:
    """Tenant → its own quotas, by the flavor's name. One query."""
    found: dict[UUID, tuple[SharedLine, ...]] = {}
    rows = TenantQuota.objects.filter(tenant_id__in=list(names)).select_related("flavor")
    for quota in rows.order_by("flavor__name"):
        line = SharedLine(
            tenant=names[quota.tenant_id],
            tenant_id=quota.tenant_id,
            flavor=quota.flavor.name,
            nominal_milli=quota.nominal_milli,
            borrowing_limit_milli=quota.borrowing_limit_milli,
            lending_limit_milli=quota.lending_limit_milli,
            enforce_at=quota.enforce_at,
        )
        found[quota.tenant_id] = (*found.get(quota.tenant_id, ()), line)
    return found


def by_project(projects: Iterable[Project]) -> dict[UUID, tuple[QuotaLine, ...]]:
    """Project → its quotas, by the flavor's name. One query."""
    found: dict[UUID, tuple[QuotaLine, ...]] = {}
    rows = Quota.objects.filter(project_id__in=[project.id for project in projects])
    for quota in rows.select_related("flavor").order_by("flavor__name"):
        found[quota.project_id] = (*found.get(quota.project_id, ()), quota_line(quota))
    return found


def with_falls(
    quotas: Mapping[UUID, tuple[QuotaLine, ...]],
) -> dict[UUID, tuple[QuotaLine, ...]]:
    """The same, each with when it falls back next by what is in force. One query."""
    rows = Grant.objects.filter(Grant.for_a_time(), request__project__in=list(quotas))
    for_a_time: dict[tuple[UUID, UUID], list[Grant]] = {}
    for grant in rows.select_related("request"):
        of = grant.request.project_id, grant.request.flavor_id
        for_a_time.setdefault(of, []).append(grant)
    return {
        project: tuple(
            replace(line, fall=_fall(line, for_a_time.get((project, line.flavor_id), ())))
            for line in lines
        )
        for project, lines in quotas.items()
    }


def _fall(line: QuotaLine, grants: Collection[Grant]) -> Fall | None:
    """An end that leaves as much is none."""
    for end in sorted(grant.until_at for grant in grants if grant.until_at):
        left_milli = Grant.lasting_milli(
            grants, nominal_milli=line.nominal_milli, until_at=end + _MOMENT
        )
        if left_milli < line.nominal_milli:
            return Fall(end, left_milli)
    return None


def quota_line(quota: Quota) -> QuotaLine:
    return QuotaLine(
        flavor=quota.flavor.name,
        flavor_id=quota.flavor_id,
        nominal_milli=quota.nominal_milli,
        borrowing_limit_milli=quota.borrowing_limit_milli,
        lending_limit_milli=quota.lending_limit_milli,
        used_milli=quota.used_milli,
        version=quota.version,
        enforce_at=quota.enforce_at,
    )
