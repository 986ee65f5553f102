"""Which cycle decided what became of a workload, and whether its plan can be made again.

Of a cycle this tells no more than its id, its moment and the digest of its plan: what it was
planned from is of all tenants, and only `manage.py replay_cycle` reads it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from scheduler.core.lifecycle import State
from scheduler.core.snapshot import SCHEMA
from scheduler.models import CycleInput, CycleRecord, Workload, WorkloadEvent

_PLANNED = {("state", State.ADMITTED.value), ("state", State.PREEMPTING.value)} | {
    ("grown", ""),
    ("shrunk", ""),
}
"""By kind and state after it: what of a timeline a cycle may have decided."""


@dataclass(frozen=True, slots=True)
class Decided:
    """The cycle of that moment. `digest` is that of its plan, "" where its inputs are not kept;
    `replayable`: they are, and this version reads them."""

    cycle: UUID
    at: datetime
    digest: str
    replayable: bool


def of_events(events: Iterable[WorkloadEvent]) -> dict[UUID, Decided]:
    """By the id of those that a cycle decided: it writes them with its own moment. One query, or
    none."""
    moments = {one.id: one.at for one in events if (one.kind, one.after) in _PLANNED}
    found = _at(set(moments.values())) if moments else {}
    return {id: found[at] for id, at in moments.items() if at in found}


def of_waiting(*, workload: Workload) -> Decided | None:
    """The last that is kept of those that held it for its present kind of reason, else the one
    that told it last; None before the first, or when that is forgotten. At most two queries."""
    if workload.reason_at is None:
        return None
    told = _at({workload.reason_at}).get(workload.reason_at)
    if told is not None and told.replayable:
        return told
    newest = CycleInput.objects.select_related("cycle").defer("payload").order_by("-cycle_id")
    kept = newest.first()
    if kept is None or kept.outdated or kept.schema != SCHEMA:
        return told
    return Decided(kept.cycle_id, kept.cycle.at, kept.digest, replayable=True)


def _at(moments: set[datetime]) -> dict[datetime, Decided]:
    """Of cycles of one moment, which only a clock that stands still has, the last."""
    rows = CycleRecord.objects.filter(at__in=moments).order_by("id")
    columns = rows.values_list("id", "at", "input__digest", "input__schema")
    return {
        at: Decided(id, at, digest or "", replayable=schema == SCHEMA)
        for id, at, digest, schema in columns
    }
