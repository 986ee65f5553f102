"""Changing weights: the part that a project, or a tenant, has in fair share among its siblings.
What one gets more of the others get less, so it is for who sets the quotas there."""

from datetime import datetime

from controlplane.kernel.errors import Invalid
from tenants import access
from tenants.access import Action, Actor
from tenants.models import Project, Tenant
from tenants.services import columns

MAX_WEIGHT = 1000


def set_for_project(*, actor: Actor, project: Project, weight: int, at: datetime) -> Project:
    """The next cycle goes by it. Raises NotFound or NotAllowed for the project, Invalid for a
    weight out of range."""
    access.authorize(actor, Action.EDIT_QUOTA, project=project)
    check(weight)
    return columns.say(
        project, action="project.weight", values={"weight": weight}, actor=actor, at=at
    )


def set_for_tenant(*, actor: Actor, tenant: Tenant, weight: int, at: datetime) -> Tenant:
    """The same among the tenants under its parent, or all that have none. Raises NotAllowed to
    who sets no quotas of tenants, which is fleet-wide, and Invalid for a weight out of range."""
    access.authorize_fleet(actor, Action.EDIT_QUOTA)
    check(weight)
    return columns.say(
        tenant, action="tenant.weight", values={"weight": weight}, actor=actor, at=at
    )


def check(weight: int) -> None:
    """Raises Invalid for a weight out of range."""
    if not 1 <= weight <= MAX_WEIGHT:
        message = f"A weight is from 1 to {MAX_WEIGHT}."
        raise Invalid(message, pointer="/weight", code="out-of-range")
