"""Changing the order in which work waits: its priority, and its turn in its project's queue."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from django.db import connection, transaction
from django.db.models import F, Q

from controlplane.audit.services import Entry
from controlplane.kernel import hints
from controlplane.kernel.errors import Conflict, Invalid
from scheduler.core.lifecycle import TERMINAL, State
from scheduler.models import LIVE, Workload, WorkloadArray, WorkloadEvent
from scheduler.services import policies, workloads
from scheduler.services.specs import PRIORITY_CLASSES
from tenants import access
from tenants.access import Action, Actor
from tenants.models import Project
from tenants.services import trail
from tenants.services.quotas import VersionMismatch


class To(StrEnum):
    FIRST = "first"
    LAST = "last"


@dataclass(frozen=True, slots=True)
class Change:
    """None leaves the priority, or the turn, as it is. `version` is the one of the workload that
    the caller saw; None changes whatever is there."""

    priority_class: str | None = None
    to: To | None = None
    version: int | None = None


class _Waiting(NamedTuple):
    id: UUID
    array: UUID | None
    version: int
    priority_class: str


# In the planner's order; those who change places exchange the turns that they have, so that nobody
# else's changes (ADR 0053).
_EXCHANGE = """
WITH queued AS (
    SELECT id, priority, at, name,
           row_number() OVER (PARTITION BY priority ORDER BY second, name) AS nth,
           row_number() OVER (PARTITION BY priority
                              ORDER BY (id = ANY(%(moved)s)) <> %(first)s, second, name) AS wanted
    FROM (SELECT id, priority, at, extract(epoch FROM at)::bigint AS second, name
          FROM (SELECT id, priority, coalesce(turn_at, submitted_at) AS at,
                       coalesce(turn_of, id) AS name
                FROM scheduler_workload WHERE id = ANY(%(among)s)) turns) timed)
UPDATE scheduler_workload w SET turn_at = theirs.at, turn_of = theirs.name
FROM queued own JOIN queued theirs ON theirs.priority = own.priority AND theirs.nth = own.wanted
WHERE w.id = own.id AND own.wanted <> own.nth
RETURNING w.id
"""


def reorder(*, actor: Actor, work: Workload | WorkloadArray, change: Change, at: datetime) -> None:
    """Give what waits of it another priority, or put it first or last of those of its priority:
    among its submitter's work in the project, or among all if the actor administers that.

    What is so already changes nothing. Raises NotAllowed, Invalid when there is nothing to change,
    no such priority or none that its project's policy permits, VersionMismatch when the workload
    is no longer at the version that the caller saw, and Conflict when nothing of it waits.
    """
    workloads.authorize(actor, work, "reorder")
    _check(change)
    if change.priority_class:
        problem = policies.priority_problem(work.project, change.priority_class)
        if problem:
            raise Invalid(problem.message, code=problem.code, problems=(problem,))
    with transaction.atomic():
        # One at a time in a project: what another one moves has to be seen.
        Project.objects.select_for_update(no_key=True).get(id=work.project_id)
        among = _locked(work, change, everybody=_administers(actor, work))
        moved = [each for each in among if work.id in (each.id, each.array)]
        if not moved:
            raise Conflict(_why_not(work))
        if isinstance(work, Workload):
            _check_version(moved[0], work.name, change.version)
        touched = _prioritized(moved, change.priority_class)
        exchanged = _exchanged(moved, among, change.to)
        if exchanged:
            touched = moved
        if touched:
            ids = [each.id for each in touched]
            Workload.objects.filter(id__in=ids).update(version=F("version") + 1)
            _tell(actor, work, touched, change, at)
            _tell_others(actor, work, exchanged - {each.id for each in moved}, change, at)
            hints.hint(hints.CYCLE)
    if isinstance(work, Workload):
        work.refresh_from_db()


def _administers(actor: Actor, work: Workload | WorkloadArray) -> bool:
    return access.allowed(actor, Action.CANCEL, project=work.project)


def _check(change: Change) -> None:
    if change.priority_class is None and change.to is None:
        raise Invalid("Say what changes: a priority_class, or first or last, or both.")
    if change.priority_class not in (None, *PRIORITY_CLASSES):
        known = ", ".join(PRIORITY_CLASSES)
        raise Invalid(
            f"There is no priority {change.priority_class!r}; known: {known}.",
            pointer="/priority_class",
        )


def _locked(work: Workload | WorkloadArray, change: Change, *, everybody: bool) -> list[_Waiting]:
    """It, as far as it waits, and whom it may change places with, all by id."""
    waiting = Workload.objects.filter(LIVE, project=work.project_id, state=State.PENDING)
    if change.to is None:
        waiting = waiting.filter(Q(id=work.id) | Q(array=work.id))
    elif not everybody:
        waiting = waiting.filter(submitted_by=work.submitted_by_id)
    rows = waiting.order_by("id").select_for_update(no_key=True)
    return [
        _Waiting(*row) for row in rows.values_list("id", "array_id", "version", "priority_class")
    ]


def _check_version(there: _Waiting, name: str, version: int | None) -> None:
    if version not in (None, there.version):
        raise VersionMismatch(
            f"{name} is at version {there.version} by now, of priority {there.priority_class},"
            f" not {version}; look again."
        )


def _why_not(work: Workload | WorkloadArray) -> str:
    if isinstance(work, WorkloadArray):
        return f"No element of {work.name} waits: there is nothing to reorder."
    work.refresh_from_db(fields=["state"])
    if work.state in TERMINAL:
        return f"{work.name} has ended already ({work.state})."
    return f"{work.name} is {work.state}; only work that waits is reordered."


def _prioritized(moved: list[_Waiting], wanted: str | None) -> list[_Waiting]:
    """Those of another priority, which have that one now."""
    others = [each for each in moved if wanted not in (None, each.priority_class)]
    if others and wanted is not None:
        Workload.objects.filter(id__in=[each.id for each in others]).update(
            priority_class=wanted, priority=PRIORITY_CLASSES[wanted]
        )
    return others


def _exchanged(moved: list[_Waiting], among: list[_Waiting], to: To | None) -> set[UUID]:
    """Those whose turn is another now."""
    if to is None:
        return set()
    with connection.cursor() as cursor:
        cursor.execute(
            _EXCHANGE,
            {
                "moved": [each.id for each in moved],
                "among": [each.id for each in among],
                "first": to == To.FIRST,
            },
        )
        return {id for (id,) in cursor.fetchall()}


def _tell(
    actor: Actor,
    work: Workload | WorkloadArray,
    touched: list[_Waiting],
    change: Change,
    at: datetime,
) -> None:
    among = "the project" if _administers(actor, work) else actor.name
    put = f"put {change.to} among those of {among}" if change.to else ""
    WorkloadEvent.objects.bulk_create(
        WorkloadEvent(
            workload_id=each.id,
            at=at,
            kind="reordered",
            message=f"{', '.join(filter(None, (_said(each, change), put)))} by {actor.name}",
        )
        for each in touched
    )
    kind = "array" if isinstance(work, WorkloadArray) else "workload"
    before = sorted({each.priority_class for each in touched})
    after = {"priority_class": change.priority_class or ", ".join(before)}
    if change.to:
        after |= {"to": change.to.value, "among": among}
    entry = Entry(
        action=f"{kind}.reorder",
        target_type=kind,
        target_id=work.id,
        tenant_id=work.project.tenant_id,
        project_id=work.project_id,
        before={"priority_class": ", ".join(before)},
        after=after,
    )
    trail.record(entry, actor=actor, at=at)


def _tell_others(
    actor: Actor,
    work: Workload | WorkloadArray,
    others: Iterable[UUID],
    change: Change,
    at: datetime,
) -> None:
    """Those that have another's turn since that was moved: told by another kind of line, since
    they are at the version that they were. Who moved it knows of their own, and of an array its
    first element that waits is told."""
    rows = Workload.objects.filter(id__in=others).exclude(submitted_by=actor.user)
    first = rows.order_by("array_id", "array_index").distinct("array_id")
    told = rows.filter(Q(array=None) | Q(id__in=first.values("id"))).order_by("id")
    WorkloadEvent.objects.bulk_create(
        WorkloadEvent(
            workload_id=id,
            at=at,
            kind="turn",
            message=f"has another's turn: {work.name} was put {change.to} by {actor.name}"[:500],
        )
        for id in told.values_list("id", flat=True)
    )


def _said(each: _Waiting, change: Change) -> str:
    if change.priority_class in (None, each.priority_class):
        return ""
    return f"priority {each.priority_class} → {change.priority_class}"
