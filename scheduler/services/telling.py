"""People are told what became of their work, and how much of a budget is used: read from what is
there, so that no cycle waits for it, and folded, so that many events are one message (ADR 0121).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import transaction

from controlplane.kernel import statements
from controlplane.kernel.ids import least_since
from scheduler.core.lifecycle import State
from scheduler.models import Told
from scheduler.selectors import budgets
from tenants.models import Budget, Event, Project, User
from tenants.selectors import recipients
from tenants.services import notices

SETTLED_S = 60
"""Seconds after which an event that is not there yet does not come any more: longer than a task
may last, and than clocks of machines differ."""
LOOKED_BACK_S = 86_400
"""After a longer standstill what happened before is not told: it is old, and on the timelines."""
NAMED = 3

_TOLD_OF = (
    ("state", State.RUNNING, Event.WORK_STARTED),
    ("state", State.PENDING, Event.WORK_STOPPED),
    ("state", State.SUCCEEDED, Event.WORK_ENDED),
    ("state", State.FAILED, Event.WORK_ENDED),
    ("idle", "", Event.WORK_IDLE),
)
"""Kinds of a timeline's lines, and to which state work came, from another; who cancels work
knows."""
_MARKS = {"warned": Event.BUDGET_WARNED, "used": Event.BUDGET_USED_UP}

_FOLDED = """
SELECT (array_agg(e.id ORDER BY e.id))[1], w.project_id, w.submitted_by_id, b.event,
       count(*), count(*) FILTER (WHERE e.after = 'FAILED'),
       (array_agg(w.id ORDER BY e.id))[1], (array_agg(w.name ORDER BY e.id))[:%s]
FROM scheduler_workloadevent e
JOIN unnest(%s::text[], %s::text[], %s::text[]) AS b(kind, state, event)
  ON b.kind = e.kind AND b.state = e.after
JOIN scheduler_workload w ON w.id = e.workload_id
WHERE e.id >= %s::uuid AND e.id < %s::uuid AND (e.kind <> 'state' OR e.before <> '')
GROUP BY w.project_id, w.submitted_by_id, b.event
ORDER BY 1
"""


@dataclass(frozen=True, slots=True)
class _Stretch:
    """What became of somebody's work in one project, of one event: `names` are of the first, and
    `workload` is the first."""

    first: UUID
    project: UUID
    submitter: UUID
    event: str
    count: int
    failed: int
    workload: UUID
    names: list[str]


@transaction.atomic
def of_work(*, at: datetime) -> int:
    """Tell of all events that settled since this was last done, each once; how many messages."""
    until = least_since(SETTLED_S)
    told, _ = Told.objects.select_for_update().get_or_create(
        reader="people", defaults={"until": until}
    )
    begun = max(told.until, least_since(LOOKED_BACK_S))
    if begun >= until:
        return 0
    Told.objects.filter(reader=told.reader).update(until=until)
    stretches = _stretches(begun, until)
    projects = Project.objects.in_bulk({each.project for each in stretches})
    people = User.objects.in_bulk({each.submitter for each in stretches})
    channels_of = recipients.channels_of(projects.values())
    count = 0
    for each in stretches:
        project = projects[each.project]
        channels = channels_of(project, Event(each.event))
        count += _tell(each, project, people[each.submitter], channels, at=at)
    return count


def _stretches(begun: UUID, until: UUID) -> list[_Stretch]:
    columns = [list(map(str, column)) for column in zip(*_TOLD_OF, strict=True)]
    with statements.cursor() as cursor:
        cursor.execute(_FOLDED, [NAMED, *columns, begun, until])
        return [_Stretch(*row) for row in cursor.fetchall()]


def _tell(
    of: _Stretch, project: Project, submitter: User, channels: Sequence[UUID], *, at: datetime
) -> bool:
    body = {
        "count": of.count,
        "failed": of.failed,
        "names": of.names,
        "workload": str(of.workload) if of.count == 1 else None,
    }
    return notices.of_work(
        Event(of.event),
        f"{of.event}:{of.first}",
        project=project,
        submitter=submitter,
        channels=channels,
        body=body,
        at=at,
    )


def of_budgets(*, at: datetime) -> int:
    """Tell of each budget once a period that most of it is used, and that all is; how many."""
    rows = Budget.objects.select_related("project", "tenant").order_by("id")
    count = 0
    for each in budgets.standings(budgets=rows, at=at):
        if event := _MARKS.get(each.state):
            limit_h = each.budget.limit_h
            # Of more hours both are told again.
            cause = f"budget:{each.budget.id}:{each.starts_at:%Y%m%d}:{limit_h}:{each.state}"
            body = {"budget": each.name, "limit_h": limit_h, "percent": budgets.WARN_PERCENT}
            with transaction.atomic():
                count += notices.of_budget(event, cause, each.budget, body=body, at=at)
    return count
