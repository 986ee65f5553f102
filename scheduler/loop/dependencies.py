"""What was waited for has ended: who waited may start, or, if it ended in another way, never will
and is cancelled."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from controlplane.kernel import hints
from scheduler.core.lifecycle import State
from scheduler.models import Dependency, DependencyKind, Workload
from scheduler.selectors.fleet import rows
from scheduler.services.dependencies import UNSUCCESSFUL, came_true
from scheduler.services.transition import Step, transition

ACTOR = "system:scheduler"

# Each that is waited for is looked at once, however many wait for it. An id is of a workload or of
# an array, never of both.
_OPEN = """
WITH waits AS MATERIALIZED (
    SELECT id, kind, workload_id, array_id, coalesce(on_workload_id, on_array_id) AS needs
    FROM scheduler_dependency WHERE settled_at IS NULL),
needed AS (
    SELECT n.needs, s.states FROM (SELECT DISTINCT needs FROM waits) n, LATERAL (
        SELECT array_agg(DISTINCT w.state) AS states FROM scheduler_workload w
        WHERE w.id = n.needs OR w.array_id = n.needs) s)
SELECT o.id, o.kind, o.workload_id, o.array_id, o.needs, k.states
FROM waits o JOIN needed k ON k.needs = o.needs ORDER BY o.id
"""


@dataclass(frozen=True, slots=True)
class _Broken:
    """A dependency that never comes true: who waits, by workload or array, and for what."""

    of: UUID
    kind: str
    needs: UUID
    states: tuple[str, ...]


def settle(*, at: datetime) -> int:
    """Note which dependencies are settled, and cancel who waits in vain; how many were settled.

    Those who waited for the cancelled ones are settled by the next call, which is hinted.
    """
    settled, broken = [], []
    for id, kind, workload, array, needs, states in rows(_OPEN):
        true = came_true(kind=kind, states=states)
        if true is None:
            continue
        settled.append(id)
        if not true:
            broken.append(_Broken(workload or array, kind, needs, tuple(states)))
    if settled:
        with transaction.atomic():
            _cancel({one.of: one for one in reversed(broken)}, at)
            Dependency.objects.filter(id__in=settled).update(settled_at=at)
    return len(settled)


def _cancel(broken: Mapping[UUID, _Broken], at: datetime) -> None:
    if not broken:
        return
    of_them = Q(id__in=list(broken)) | Q(array_id__in=list(broken))
    waiting = Workload.objects.filter(of_them, state=State.PENDING).order_by("id")
    names = _names(broken)
    moved = transition(
        [
            Step(
                row.id,
                row.project_id,
                State.PENDING,
                State.CANCELLED,
                _why(one, names.get((row.project_id, one.needs), str(one.needs))),
            )
            for row in waiting
            if (one := broken.get(row.id) or broken.get(row.array_id or row.id))
        ],
        actor=ACTOR,
        actor_name="scheduler",
        at=at,
    )
    if moved:
        hints.hint(hints.CYCLE)


def _names(broken: Mapping[UUID, _Broken]) -> dict[tuple[UUID, UUID], str]:
    """By project and id: readers of another project are told the id alone."""
    needed = {one.needs for one in broken.values()}
    found = Workload.objects.filter(Q(id__in=needed) | Q(array_id__in=needed, array_index=0))
    return {
        (row.project_id, row.array_id if row.array_id in needed else row.id): (
            row.array.name if row.array is not None and row.array_id in needed else row.name
        )
        for row in found.select_related("array")
    }


def _why(one: _Broken, name: str) -> str:
    if one.kind == DependencyKind.AFTER_FAILURE:
        return f"cancelled: it was to start after {name} failed, which succeeded"
    ended = " and ".join(sorted(UNSUCCESSFUL.intersection(one.states)))
    return f"cancelled: it was to start after {name} succeeded, which is {ended}"
