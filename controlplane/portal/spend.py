"""What was spent by project, flavor and day; apart from it, what running work has cost since."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from clusters.models import Flavor
from controlplane.api.auth import actor_of, named_project
from controlplane.kernel import clock
from controlplane.kernel.charts import Series, StackedBars, stacked_bars
from controlplane.kernel.errors import NotFound
from controlplane.kernel.htmx import page, partial, revision, ten_seconds, unchanged
from controlplane.templatetags.berth import money
from scheduler.selectors import accrual, losses
from tenants import access
from tenants.access import Action
from tenants.models import Project
from tenants.selectors import people, prices
from tenants.selectors import spend as spending
from tenants.selectors.spend import Spent

PERIODS = (7, 30, 90)


@dataclass(frozen=True, slots=True)
class Row:
    """A project and a flavor: charged in the period, and running unmetered."""

    project: str
    flavor: str
    charged: Decimal
    running: Decimal
    per_hour: Decimal


@page("GET", "HEAD")
def spend(request: HttpRequest) -> HttpResponse:
    """Of the projects whose spend the actor may see: others are not counted anywhere here."""
    actor = actor_of(request)
    zone, at = timezone.get_current_timezone(), ten_seconds(clock.now())
    period = _period(request.GET.get("days", "30"))
    chosen = named_project(request)
    if chosen is not None:
        access.authorize(actor, Action.VIEW_SPEND, project=chosen)
    listed = people.projects_by_name(actor=actor, action=Action.VIEW_SPEND)
    wanted = {project.id for project in ([chosen] if chosen else listed)}
    days = _days(at=at, count=period, zone=zone)
    month = spending.month_start(at=at, zone=zone)
    since = min(month, datetime.combine(days[0], time(), zone))
    spent = [
        one
        for one in spending.by_day(actor=actor, filters=spending.Filters(since=since), zone=zone)
        if one.project_id in wanted
    ]
    running = [
        one
        for one in accrual.by_project_and_flavor(
            actor=actor, prices=prices.at_moment(at=at), at=at
        )
        if one.project_id in wanted
    ]
    lost = [
        one
        for one in losses.by_project(
            actor=actor,
            project_id=chosen.id if chosen else None,
            since=datetime.combine(days[0], time(), zone),
            until=None,
        )
        if one.project in wanted
    ]
    rev = revision(spent, running, lost, period, sorted(wanted))
    same = unchanged(request, rev)
    if same is not None:
        return same
    names = _names(listed)
    in_period = [one for one in spent if one.day >= days[0]]
    context = {
        "rev": rev,
        "month": month,
        "month_total": sum((one.amount for one in spent if one.day >= month.date()), Decimal(0)),
        "period_total": sum((one.amount for one in in_period), Decimal(0)),
        "running_total": sum((one.amount for one in running), Decimal(0)),
        "per_hour": sum((one.per_hour for one in running), Decimal(0)),
        "unpriced": any(not one.priced for one in running),
        "by_flavor": _chart("by-flavor", "By flavor", in_period, days, None),
        "by_project": _chart("by-project", "By project", in_period, days, names),
        "rows": _rows(in_period, running, names),
        "losses": [(names[one.project], one) for one in lost if one.project is not None],
        "period": period,
        "periods": PERIODS,
        "project": chosen,
        "projects": listed,
        "at": at,
    }
    return partial(request, "portal/spend.html", "figures", context)


def _period(text: str) -> int:
    if text not in {str(days) for days in PERIODS}:
        raise NotFound("There is no such period.")
    return int(text)


def _days(*, at: datetime, count: int, zone: tzinfo) -> tuple[date, ...]:
    """The last `count` local days, oldest first, today last."""
    today = at.astimezone(zone).date()
    return tuple(today - timedelta(days=back) for back in reversed(range(count)))


def _names(projects: Sequence[Project]) -> Mapping[UUID, str]:
    """With the tenant where a project's name alone is not enough."""
    plain = [project.name for project in projects]
    return {
        project.id: project.name if plain.count(project.name) == 1 else project.full_name
        for project in projects
    }


def _chart(
    id: str,
    title: str,
    spent: Sequence[Spent],
    days: Sequence[date],
    by: Mapping[UUID, str] | None,
) -> StackedBars:
    return stacked_bars(
        id=id,
        title=title,
        labels=[f"{day.day} {day:%b}" for day in days],
        series=[Series(name, values) for name, values in _stacked(spent, by=by, days=days)],
        unit=money,
    )


def _stacked(
    spent: Sequence[Spent], *, by: Mapping[UUID, str] | None, days: Sequence[date]
) -> list[tuple[str, list[Decimal]]]:
    """(name, a value for each day) with the largest total first; `by` maps projects to names, None
    stacks by flavor."""
    at = {day: n for n, day in enumerate(days)}
    sums: dict[str, list[Decimal]] = {}
    for one in spent:
        if one.day in at:
            name = one.flavor if by is None else by[one.project_id]
            values = sums.setdefault(name, [Decimal(0)] * len(days))
            values[at[one.day]] += one.amount
    return sorted(sums.items(), key=lambda item: (-sum(item[1]), item[0]))


def _rows(
    spent: Sequence[Spent], running: Sequence[accrual.Running], names: Mapping[UUID, str]
) -> list[Row]:
    """The largest first."""
    sums: dict[tuple[str, str], list[Decimal]] = {}
    for one in spent:
        sums.setdefault((names[one.project_id], one.flavor), [Decimal(0)] * 3)[0] += one.amount
    flavors = dict(
        Flavor.objects.filter(id__in={part.flavor_id for part in running}).values_list(
            "id", "name"
        )
    )
    for part in running:
        held = sums.setdefault((names[part.project_id], flavors[part.flavor_id]), [Decimal(0)] * 3)
        held[1] += part.amount
        held[2] += part.per_hour
    rows = [Row(*key, *values) for key, values in sums.items()]
    return sorted(rows, key=lambda row: (-row.charged - row.running, row.project, row.flavor))
