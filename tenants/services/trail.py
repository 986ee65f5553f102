"""The audit rows of what somebody did, in their name. Parts of the system write their own."""

from datetime import datetime

from controlplane.audit import services as audit
from controlplane.audit.services import Entry
from tenants.access import Actor


def record(*entries: Entry, actor: Actor, at: datetime) -> None:
    """Append one row an entry, in the caller's transaction."""
    audit.record(actor=actor.label, actor_name=actor.name, entries=entries, at=at)
