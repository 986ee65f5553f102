"""Reading quotas, as far as an actor may see."""

from collections import Counter
from datetime import datetime
from uuid import UUID

from django.db.models import Count, Q, QuerySet

from tenants import access
from tenants.access import Actor
from tenants.models import Quota, QuotaRequest, TenantQuota


def quotas(
    *, actor: Actor, project_id: UUID | None = None, flavor: str | None = None
) -> QuerySet[Quota]:
    """Quotas with project and flavor; order them by id. Raises NotFound for the project."""
    rows = Quota.objects.select_related("project", "flavor")
    return narrowed(rows, actor=actor, project_id=project_id, flavor=flavor)


def tenant_quotas(
    *, actor: Actor, tenant_id: UUID | None = None, flavor: str | None = None
) -> QuerySet[TenantQuota]:
    """Quotas of the tenants that the actor sees, with flavor; order them by id. Raises NotFound
    for the tenant."""
    rows = TenantQuota.objects.select_related("flavor")
    if tenant_id is not None:
        rows = rows.filter(tenant=access.tenant_or_404(actor, tenant_id))
    if flavor is not None:
        rows = rows.filter(flavor__name=flavor)
    return rows.filter(tenant__in=access.tenants_for_actor(actor))


def enforced_counts(*, at: datetime) -> dict[str, int]:
    """How many quotas, of projects and tenants, are below what is held and enforced: "now", or
    "later". Two queries."""
    found = Counter(now=0, later=0)
    for model in (Quota, TenantQuota):
        found.update(
            model.objects.aggregate(
                now=Count("id", filter=Q(enforce_at__lte=at)),
                later=Count("id", filter=Q(enforce_at__gt=at)),
            )
        )
    return dict(found)


def narrowed[M: (Quota, QuotaRequest)](
    rows: QuerySet[M], *, actor: Actor, project_id: UUID | None, flavor: str | None
) -> QuerySet[M]:
    """Those of the project, else of all that the actor sees, and of the flavor by its name. Raises
    NotFound for the project."""
    if project_id is not None:
        rows = rows.filter(project=access.project_or_404(actor, project_id))
    if flavor is not None:
        rows = rows.filter(flavor__name=flavor)
    return access.for_actor(rows, actor=actor)
