"""The audit rows of what somebody did, in their name, or of what came by time. Other parts of the
system write their own."""

from datetime import datetime

from controlplane.audit import services as audit
from controlplane.audit.services import Entry
from tenants.access import Actor

TIME = "system:time"


def record(*entries: Entry, actor: Actor | None, at: datetime) -> None:
    """Append one row an entry, in the caller's transaction. None is nobody: its time had come."""
    label, name = (actor.label, actor.name) if actor else (TIME, "time")
    audit.record(actor=label, actor_name=name, entries=entries, at=at)
