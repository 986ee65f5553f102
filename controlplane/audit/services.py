"""Writing audit rows, in the caller's transaction. Nothing here reads or changes one."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from controlplane.audit.actions import ACTIONS
from controlplane.audit.models import AuditEvent
from controlplane.kernel import bulk
from controlplane.kernel.ids import uuid7s


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


INSERT = """
INSERT INTO audit_auditevent (id, at, actor, actor_name, action, target_type, target_id, tenant_id,
                              project_id, before, after)
"""
"""How a statement begins that records what it changes: what follows selects these columns."""


def record(*, actor: str, actor_name: str, entries: Iterable[Entry], at: datetime) -> None:
    """Append one row an entry. Raises ValueError for an action, or a field of it, that ACTIONS
    does not have, which is a defect."""
    rows = list(entries)
    for entry in rows:
        _check(entry)
    bulk.insert(
        AuditEvent,
        id=uuid7s(len(rows)),
        at=at,
        actor=actor,
        actor_name=actor_name,
        action=[entry.action for entry in rows],
        target_type=[entry.target_type for entry in rows],
        target_id=[entry.target_id for entry in rows],
        tenant_id=[entry.tenant_id for entry in rows],
        project_id=[entry.project_id for entry in rows],
        before=[dict(entry.before) for entry in rows],
        after=[dict(entry.after) for entry in rows],
    )


def _check(entry: Entry) -> None:
    known = ACTIONS.get(entry.action)
    if known is None:
        raise ValueError(f"no audited action is called {entry.action}")
    if not known.issuperset(entry.before) or not known.issuperset(entry.after):
        others = sorted({*entry.before, *entry.after} - known)
        raise ValueError(f"{entry.action} does not tell of {', '.join(others)}")
