"""What was waited for has ended: who waited may start, or, if it ended in another way, never will
and is cancelled, or held where its submitter asked for that."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from controlplane.kernel import hints
from scheduler.core.lifecycle import State
from scheduler.models import Dependency, DependencyKind, OnUnmet, Workload
from scheduler.selectors.fleet import rows
from scheduler.services.dependencies import UNSUCCESSFUL, came_true
from scheduler.services.transition import Step, transition

ACTOR = "system:scheduler"

_OPEN = """
SELECT id, kind, coalesce(workload_id, array_id), coalesce(on_workload_id, on_array_id), on_unmet
FROM scheduler_dependency WHERE settled_at IS NULL AND unmet_at IS NULL ORDER BY id
"""
# Each that is waited for is looked at once, however many wait for it. By lists rather than joins,
# which are nested loops, of seconds, where thousands came since the last ANALYZE. An id is of a
# workload or of an array, never of both.
_STATES = """
SELECT w.id, array[w.state] FROM scheduler_workload w WHERE w.id = ANY(%s)
UNION ALL
SELECT w.array_id, array_agg(DISTINCT w.state) FROM scheduler_workload w
WHERE w.array_id = ANY(%s) GROUP BY 1
"""


@dataclass(frozen=True, slots=True)
class _Broken:
    """A dependency that never comes true: who waits, by workload or array, and for what."""

    of: UUID
    kind: str
    needs: UUID
    states: tuple[str, ...]


def settle(*, at: datetime) -> int:
    """Note which dependencies are settled, and cancel, or hold, who waits in vain; of how many the
    outcome was seen.

    Those who waited for the cancelled ones are settled by the next call, which is hinted.
    """
    settled, held, broken = [], [], []
    for id, kind, of, needs, on_unmet, states in _open():
        true = came_true(kind=kind, states=states)
        if true is None:
            continue
        if not true and on_unmet == OnUnmet.HOLD:
            held.append(id)
            continue
        settled.append(id)
        if not true:
            broken.append(_Broken(of, kind, needs, states))
    if settled or held:
        with transaction.atomic():
            _cancel({one.of: one for one in reversed(broken)}, at)
            Dependency.objects.filter(id__in=settled).update(settled_at=at)
            Dependency.objects.filter(id__in=held).update(unmet_at=at)
    return len(settled) + len(held)


def _open() -> Iterator[tuple[UUID, str, UUID, UUID, str, tuple[str, ...]]]:
    """Of each that is open: id, kind, who waits, for what, what if in vain, the states of that."""
    found = rows(_OPEN)
    if found:
        needed = list({needs for *_, needs, _ in found})
        states = {needs: tuple(of) for needs, of in rows(_STATES, [needed, needed])}
        for row in found:
            yield *row, states[row[3]]


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
