"""Writing audit rows, in the caller's transaction. Nothing here reads or changes one."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from controlplane.audit.models import AuditEvent


@dataclass(frozen=True, slots=True)
class Entry:
    """One act to record. `before` and `after` hold only fields that every reader may see."""

    action: str
    target_type: str
    target_id: UUID
    tenant_id: UUID | None = None
    project_id: UUID | None = None
    before: Mapping[str, Any] = field(default_factory=dict)  # Any: JSON values
    after: Mapping[str, Any] = field(default_factory=dict)  # Any: JSON values


def record(*, actor: str, actor_name: str, entries: Iterable[Entry], at: datetime) -> None:
    """Append one row an entry."""
    AuditEvent.objects.bulk_create(
        [
            AuditEvent(
                at=at,
                actor=actor,
                actor_name=actor_name,
                action=entry.action,
                target_type=entry.target_type,
                target_id=entry.target_id,
                tenant_id=entry.tenant_id,
                project_id=entry.project_id,
                before=dict(entry.before),
                after=dict(entry.after),
            )
            for entry in entries
        ],
        batch_size=1000,
    )
