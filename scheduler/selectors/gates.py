"""Reading gates: those of a workload or an array, those that wait for an actor, all that wait."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Exists, Min, OuterRef, Q, QuerySet

from scheduler.core.lifecycle import State
from scheduler.models import LIVE, Gate, GateState, Workload, WorkloadArray
from tenants import access
from tenants.access import Action, Actor
from tenants.models import GateKind, Project

OF_WAITING = """(
    EXISTS (SELECT FROM scheduler_workload w
            WHERE w.id = g.workload_id AND w.ended_at IS NULL AND w.state = 'PENDING')
    OR EXISTS (SELECT FROM scheduler_workload w
               WHERE w.array_id = g.array_id AND w.ended_at IS NULL AND w.state = 'PENDING'))
"""
"""Whether a gate `g` is of work that waits: one of work that was cancelled is never decided."""


def of_workload(workload: Workload) -> list[Gate]:
    """Its own, or those of its array, as they were declared. One query."""
    of = Q(workload=workload) if workload.array_id is None else Q(array=workload.array_id)
    return _listed(of)


def of_array(array: WorkloadArray) -> list[Gate]:
    """As they were declared. One query."""
    return _listed(Q(array=array))


def _listed(of: Q) -> list[Gate]:
    return list(Gate.objects.filter(of).select_related("owner", "decided_by").order_by("id"))


def waiting() -> QuerySet[Gate]:
    """All that are not decided, of work that waits; order them by id."""
    waits = Workload.objects.filter(LIVE, state=State.PENDING)
    return Gate.objects.filter(
        Exists(waits.filter(id=OuterRef("workload")))
        | Exists(waits.filter(array=OuterRef("array"))),
        state=GateState.WAITING,
    )


def to_decide(*, actor: Actor) -> QuerySet[Gate]:
    """Those of `waiting` that the actor owns, or as who administers their projects may decide."""
    administers = Project.objects.filter(access.visible_projects(actor, Action.DECIDE_GATE))
    mine = Q(owner=actor.user) | Q(project__in=administers.values("id"))
    rows = access.for_actor(waiting().filter(mine), actor=actor)
    return rows.select_related(
        "project__tenant",
        "owner",
        "decided_by",
        "workload__submitted_by",
        "array__submitted_by",
    )


@dataclass(frozen=True, slots=True)
class Backlog:
    """How many gates of a kind wait, and since when the first of them, None for none."""

    kind: str
    count: int
    since: datetime | None


def backlog() -> Iterable[Backlog]:
    """Of each kind, in all projects. One query."""
    rows = waiting().order_by().values_list("kind").annotate(Count("id"), Min("created_at"))
    found = {kind: (count, since) for kind, count, since in rows}
    return [Backlog(kind, *found.get(kind, (0, None))) for kind in GateKind.values]
