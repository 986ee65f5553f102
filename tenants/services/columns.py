"""What is said of a project, or of a tenant, in columns of its row that the next cycle goes by."""

from collections.abc import Mapping
from datetime import datetime
from uuid import UUID

from django.db import transaction

from controlplane.audit.services import Entry
from controlplane.kernel import hints
from tenants import access
from tenants.access import Actor
from tenants.models import Project, Tenant
from tenants.services import trail

type Value = int | str | UUID | list[str] | None


def say[Row: (Project, Tenant)](
    of: Row,
    *,
    action: str,
    values: Mapping[str, Value],
    actor: Actor,
    at: datetime,
) -> Row:
    """Set these columns of the row, which is locked, and audit the action with what they were."""
    with transaction.atomic():
        row = type(of).objects.select_for_update(no_key=True).get(id=of.id)
        before = {name: _told(getattr(row, name)) for name in values}
        for name, value in values.items():
            setattr(row, name, value)
        row.save(update_fields=values)
        after = {name: _told(value) for name, value in values.items()}
        trail.record(entry(row, action=action, before=before, after=after), actor=actor, at=at)
        hints.hint(hints.CYCLE)
    return row


def _told(value: Value) -> int | str | list[str] | None:
    return str(value) if isinstance(value, UUID) else value


def entry(
    of: Project | Tenant, *, action: str, before: Mapping[str, object], after: Mapping[str, object]
) -> Entry:
    """What is audited of an act on it."""
    tenant_id, project_id = access.ids_at(of)
    return Entry(
        action=action,
        target_type="project" if project_id else "tenant",
        target_id=of.id,
        tenant_id=tenant_id,
        project_id=project_id,
        before=before,
        after=dict(after),
    )
