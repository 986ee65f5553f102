"""Saying for how long work may leave its devices unused, and how long before it is told. It is
for those who decide about quota, as what lies idle is kept from others.
"""

from datetime import datetime

from django.db import transaction

from controlplane.audit.services import Entry
from controlplane.kernel import hints
from controlplane.kernel.errors import Invalid
from tenants import access
from tenants.access import Action, Actor
from tenants.models import MAX_IDLE_TIMEOUT_S, Project, Tenant
from tenants.selectors.idle_limits import IdleLimit
from tenants.services import trail


def set_for_project(
    *, actor: Actor, project: Project, limit: IdleLimit | None, at: datetime
) -> Project:
    """Of its own; None takes its tenant's. It holds for what runs already too.

    Raises NotFound or NotAllowed for the project, Invalid for a limit that can't be.
    """
    access.authorize(actor, Action.EDIT_QUOTA, project=project)
    _check(limit)
    with transaction.atomic():
        row = Project.objects.select_for_update(no_key=True).get(id=project.id)
        before, after = _change(row, limit)
        entry = Entry(
            action="project.idle-limit",
            target_type="project",
            target_id=row.id,
            tenant_id=row.tenant_id,
            project_id=row.id,
            before=before,
            after=after,
        )
        trail.record(entry, actor=actor, at=at)
        hints.hint(hints.CYCLE)
    return row


def set_for_tenant(
    *, actor: Actor, tenant: Tenant, limit: IdleLimit | None, at: datetime
) -> Tenant:
    """For all below it that say nothing themselves; None takes what is above it.

    Raises NotFound or NotAllowed for the tenant, Invalid for a limit that can't be.
    """
    access.authorize_tenant(actor, Action.EDIT_QUOTA, tenant=tenant)
    _check(limit)
    with transaction.atomic():
        row = Tenant.objects.select_for_update(no_key=True).get(id=tenant.id)
        before, after = _change(row, limit)
        entry = Entry(
            action="tenant.idle-limit",
            target_type="tenant",
            target_id=row.id,
            tenant_id=row.id,
            before=before,
            after=after,
        )
        trail.record(entry, actor=actor, at=at)
        hints.hint(hints.CYCLE)
    return row


type _Said = dict[str, int | None]


def _change(row: Project | Tenant, limit: IdleLimit | None) -> tuple[_Said, _Said]:
    """What it said, and says from now on."""
    before = _said(row)
    row.idle_timeout_s = None if limit is None else limit.timeout_s
    row.idle_warning_s = None if limit is None else limit.warning_s
    row.save(update_fields=["idle_timeout_s", "idle_warning_s"])
    return before, _said(row)


def _said(row: Project | Tenant) -> _Said:
    return {"idle_timeout_s": row.idle_timeout_s, "idle_warning_s": row.idle_warning_s}


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
