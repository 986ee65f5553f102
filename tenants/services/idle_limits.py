"""Saying for how long work may leave its devices unused, and how long before it is told. It is
for those who decide about quota, as what lies idle is kept from others.
"""

from datetime import datetime
from uuid import UUID

from controlplane.kernel.errors import Invalid
from tenants import access
from tenants.access import Action, Actor
from tenants.models import MAX_IDLE_TIMEOUT_S, Project, Tenant
from tenants.selectors import idle_limits as selectors
from tenants.selectors.idle_limits import IdleLimit
from tenants.services import columns, tightening


def set_for_project(
    *, actor: Actor, project: Project, limit: IdleLimit | None, at: datetime
) -> Project:
    """Of its own; None says nothing. It holds for what runs already too.

    Raises NotFound or NotAllowed for the project, Invalid for a limit that can't be, or is longer
    than what a tenant above says.
    """
    access.authorize(actor, Action.EDIT_QUOTA, project=project)
    _check(limit)
    _check_place(actor, project, limit, above=project.tenant_id)
    return columns.say(
        project, action="project.idle-limit", values=_said(limit), actor=actor, at=at
    )


def set_for_tenant(
    *, actor: Actor, tenant: Tenant, limit: IdleLimit | None, at: datetime
) -> Tenant:
    """For all below it that say nothing shorter; None says nothing.

    Raises NotFound or NotAllowed for the tenant, Invalid for a limit that can't be, is longer than
    what a tenant above says, or shorter than what somebody below does.
    """
    access.authorize_tenant(actor, Action.EDIT_QUOTA, tenant=tenant)
    _check(limit)
    _check_place(actor, tenant, limit, above=tenant.parent_id)
    return columns.say(tenant, action="tenant.idle-limit", values=_said(limit), actor=actor, at=at)


def _said(limit: IdleLimit | None) -> dict[str, int | None]:
    if limit is None:
        return {"idle_timeout_s": None, "idle_warning_s": None}
    return {"idle_timeout_s": limit.timeout_s, "idle_warning_s": limit.warning_s}


def _check(limit: IdleLimit | None) -> None:
    if limit is None:
        return
    if not 0 <= limit.timeout_s <= MAX_IDLE_TIMEOUT_S:
        raise Invalid(
            f"{limit.timeout_s} s is not between 0, which is never, and {MAX_IDLE_TIMEOUT_S} s,"
            " 30 days.",
            pointer="/idle_timeout_s",
            code="out-of-range",
        )
    if not 0 <= limit.warning_s <= limit.timeout_s:
        raise Invalid(
            f"{limit.warning_s} s is not between 0 and the time-out, {limit.timeout_s} s.",
            pointer="/idle_warning_s",
            code="out-of-range",
        )


def _check_place(
    actor: Actor, of: Project | Tenant, limit: IdleLimit | None, *, above: UUID | None
) -> None:
    said = selectors.said(tenant_id=above)
    tightening.check(
        actor=actor,
        of=of,
        column="idle_timeout_s",
        asked=limit.timeout_s if limit else None,
        above=said.limit.timeout_s if said else None,
        by=said.by if said else "",
        zero_is_most=True,
    )
