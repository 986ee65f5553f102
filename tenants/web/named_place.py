"""The project or tenant that a body or a query names, as everybody says it who takes either, and
what forms call it."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from controlplane.kernel.errors import Invalid
from tenants import access
from tenants.access import Actor, Place
from tenants.models import Project, Tenant

ONE_OF_TWO = "Name a project or a tenant, one of the two."


def place_named(actor: Actor, named: Mapping[str, Any], *, root: str = "/") -> Place:
    """None, the fleet, where neither is named. `root` begins the pointers: "?" of a query.

    Raises Invalid for both, NotFound for one that the actor does not see. Any: validated input.
    """
    project: UUID | None = named.get("project")
    tenant: UUID | None = named.get("tenant")
    if project and tenant:
        raise Invalid(ONE_OF_TWO, pointer=f"{root}tenant")
    if project:
        return access.project_or_404(actor, project)
    return access.tenant_or_404(actor, tenant) if tenant else None


def one_named(actor: Actor, named: Mapping[str, Any], *, root: str = "/") -> Project | Tenant:
    """The same where it can't be the fleet. Raises Invalid for neither, too."""
    place = place_named(actor, named, root=root)
    if place is None:
        raise Invalid(ONE_OF_TWO, pointer=f"{root}project", code="required")
    return place


def called(of: Project | Tenant) -> str:
    """As forms and messages name whom something is for: a tenant with all below it."""
    return of.full_name if isinstance(of, Project) else f"{of.name}, all of it"
