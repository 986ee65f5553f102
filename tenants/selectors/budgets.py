"""Reading budgets, as far as an actor may see."""

from uuid import UUID

from django.db.models import QuerySet

from controlplane.kernel.errors import NotFound
from tenants import access
from tenants.access import Actor
from tenants.models import Budget
from tenants.selectors import places


def budgets(
    *, actor: Actor, project_id: UUID | None = None, tenant_id: UUID | None = None
) -> QuerySet[Budget]:
    """Those of the projects and tenants that the actor sees, with their owners; order them by id.

    Of `project_id` and `tenant_id` only what is those's own. Raises NotFound for one that the
    actor does not see.
    """
    rows = _seen(actor)
    if project_id is not None:
        rows = rows.filter(project=access.project_or_404(actor, project_id))
    if tenant_id is not None:
        rows = rows.filter(tenant=access.tenant_or_404(actor, tenant_id))
    return rows


def budget(*, actor: Actor, id: UUID) -> Budget:
    """With its owner. Raises NotFound for one that the actor does not see."""
    found = _seen(actor).filter(id=id).first()
    if found is None:
        raise NotFound("There is no such budget.")
    return found


def _seen(actor: Actor) -> QuerySet[Budget]:
    return places.of_seen(Budget.objects.select_related("project", "tenant"), actor=actor)
