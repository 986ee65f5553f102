"""Tenants, their projects and quotas, and the requests for more, as pages show them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import QuerySet

from tenants import access
from tenants.access import Action, Actor
from tenants.models import Project, Quota, QuotaRequest, TenantQuota


@dataclass(frozen=True, slots=True)
class QuotaLine:
    """A project's quota of a flavor, in thousandths; a limit None is none."""

    flavor: str
    flavor_id: UUID
    nominal_milli: int
    borrowing_limit_milli: int | None
    lending_limit_milli: int | None
    used_milli: int
    version: int
    enforce_at: datetime | None

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


@dataclass(frozen=True, slots=True)
class QuotaRequestLine:
    """A request for quota and, while it is open, the quota as it is now."""

    id: UUID
    project: str
    project_id: UUID
    tenant: str
    flavor: str
    nominal_milli: int
    reason: str
    requested_by: str
    requested_at: datetime
    own: bool
    decision: str
    decided_by: str
    decided_at: datetime | None
    note: str
    granted_milli: int | None
    quota: QuotaLine | None
    may_decide: bool

    @property
    def state(self) -> str:
        return self.decision or "open"


def branches(*, actor: Actor) -> tuple[Branch, ...]:
    """Every project the actor sees, in tree order. Four queries."""
    names = dict(access.tenants_for_actor(actor).values_list("id", "name"))
    projects = list(access.for_actor(Project.objects.all(), actor=actor))
    quotas = by_project(projects)
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
        found[quota.project_id] = (*found.get(quota.project_id, ()), _quota_line(quota))
    return found


def _quota_line(quota: Quota) -> QuotaLine:
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


def open_requests(*, actor: Actor, limit: int = 100) -> tuple[QuotaRequestLine, ...]:
    """What waits for an answer, oldest first. Two queries."""
    rows = access.for_actor(QuotaRequest.objects.filter(decision=""), actor=actor)
    return _request_lines(rows.order_by("id")[:limit], actor=actor)


def decided_requests(
    *, actor: Actor, before: UUID | None = None, limit: int = 20
) -> tuple[tuple[QuotaRequestLine, ...], UUID | None]:
    """The answered ones, newest first, and the id to go on from, None at the end. Two queries."""
    rows = access.for_actor(QuotaRequest.objects.exclude(decision=""), actor=actor)
    if before is not None:
        rows = rows.filter(id__lt=before)
    found = _request_lines(rows.order_by("-id")[: limit + 1], actor=actor)
    return found[:limit], found[limit - 1].id if len(found) > limit else None


def to_decide_count(*, actor: Actor) -> int:
    """Open requests of others that the actor may decide. One query."""
    rows = QuotaRequest.objects.filter(decision="").exclude(requested_by=actor.user)
    return access.for_actor(rows, actor=actor, action=Action.DECIDE_REQUEST).count()


def _request_lines(rows: QuerySet[QuotaRequest], *, actor: Actor) -> tuple[QuotaRequestLine, ...]:
    found = list(rows.select_related("project__tenant", "flavor", "requested_by", "decided_by"))
    quotas = _current(found)
    return tuple(
        QuotaRequestLine(
            id=row.id,
            project=row.project.name,
            project_id=row.project_id,
            tenant=row.project.tenant.name,
            flavor=row.flavor.name,
            nominal_milli=row.nominal_milli,
            reason=row.reason,
            requested_by=row.requested_by.get_username(),
            requested_at=row.requested_at,
            own=row.requested_by_id == actor.user.id,
            decision=row.decision,
            decided_by=row.decided_by.get_username() if row.decided_by else "",
            decided_at=row.decided_at,
            note=row.note,
            granted_milli=row.granted_milli,
            quota=quotas.get((row.project_id, row.flavor_id)),
            may_decide=not row.decision
            and row.requested_by_id != actor.user.id
            and access.allowed(actor, Action.DECIDE_REQUEST, project=row.project),
        )
        for row in found
    )


def _current(requests: Sequence[QuotaRequest]) -> dict[tuple[UUID, UUID], QuotaLine]:
    """(project, flavor) → the quota now, of the open requests."""
    projects = {row.project_id for row in requests if not row.decision}
    rows = Quota.objects.filter(project_id__in=projects).select_related("flavor")
    return {(quota.project_id, quota.flavor_id): _quota_line(quota) for quota in rows}
