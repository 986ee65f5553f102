"""Saying how long work runs before it may be evicted. It keeps what is lent from its owner for
that long, so it is for those who decide about quota, and at most a day."""

from datetime import datetime
from uuid import UUID

from controlplane.kernel.errors import Invalid
from tenants import access
from tenants.access import Action, Actor
from tenants.models import MAX_MIN_RUN_TIME_S, Project, Tenant
from tenants.selectors import run_times as selectors
from tenants.services import columns, tightening


def set_for_project(
    *, actor: Actor, project: Project, seconds: int | None, at: datetime
) -> Project:
    """Of its own; None says nothing. It holds for what runs already too.

    Raises NotFound or NotAllowed for the project, Invalid for seconds out of range, or more than
    what a tenant above says.
    """
    access.authorize(actor, Action.EDIT_QUOTA, project=project)
    _check(seconds)
    _check_place(actor, project, seconds, above=project.tenant_id)
    return columns.say(
        project, action="project.min-run-time", values=_said(seconds), actor=actor, at=at
    )


def set_for_tenant(*, actor: Actor, tenant: Tenant, seconds: int | None, at: datetime) -> Tenant:
    """For all below it that say nothing shorter; None says nothing.

    Raises NotFound or NotAllowed for the tenant, Invalid for seconds out of range, more than what
    a tenant above says, or less than what somebody below does.
    """
    access.authorize_tenant(actor, Action.EDIT_QUOTA, tenant=tenant)
    _check(seconds)
    _check_place(actor, tenant, seconds, above=tenant.parent_id)
    return columns.say(
        tenant, action="tenant.min-run-time", values=_said(seconds), actor=actor, at=at
    )


def _said(seconds: int | None) -> dict[str, int | None]:
    return {"min_run_time_s": seconds}


def _check(seconds: int | None) -> None:
    if seconds is not None and not 0 <= seconds <= MAX_MIN_RUN_TIME_S:
        raise Invalid(
            f"{seconds} s is not between 0 and {MAX_MIN_RUN_TIME_S} s, a day.",
            pointer="/min_run_time_s",
            code="out-of-range",
        )


def _check_place(
    actor: Actor, of: Project | Tenant, seconds: int | None, *, above: UUID | None
) -> None:
    said = selectors.said(tenant_id=above)
    tightening.check(
        actor=actor,
        of=of,
        column="min_run_time_s",
        asked=seconds,
        above=said.seconds if said else None,
        by=said.by if said else "",
        zero_is_most=False,
    )
