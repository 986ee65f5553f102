"""Where a project stands in the planner's order: the terms that are compared, one by one.

What must not live here: how they are compared (`core.admitting.order`) and reckoned
(`core.quota.share`).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings

from scheduler.core.lifecycle import State
from scheduler.core.quota.quota import Book
from scheduler.core.quota.share import SCALE, Shares
from scheduler.core.units import FlavorId, ProjectId
from scheduler.models import Workload
from scheduler.selectors import fleet
from tenants.models import Project, Tenant
from tenants.selectors import past

PPM = 10**6


@dataclass(frozen=True, slots=True)
class Standing:
    """A member of the tree above a project, or the project: less of both comes first.

    `share_ppm` is what it uses now beyond its guarantee, `past_ppm` what it used on average
    before, halved for each half-life since: in millionths of the fleet's nominal quota, of the
    flavor of which it is most, divided by its weight. `past_ppm` is None when no past counts.
    """

    name: str
    share_ppm: int
    past_ppm: int | None

    @property
    def share_text(self) -> str:
        return _percent(self.share_ppm)

    @property
    def past_text(self) -> str:
        return "" if self.past_ppm is None else _percent(self.past_ppm)


def standings(*, projects: Iterable[Project], at: datetime) -> dict[UUID, tuple[Standing, ...]]:
    """Of each project, which the caller may see: those above it from the top, then its own. Five
    queries, or one while the shares that were read last are kept."""
    wanted = list(projects)
    tenants = {t.id: t for t in Tenant.objects.only("name", "parent_id")}
    shares = _shares(wanted, at=at)
    window_s = past.window_s()
    found = {}
    for project in wanted:
        id = ProjectId(str(project.id))
        names = [project.name]
        above: UUID | None = project.tenant_id
        while above is not None:
            names.append(tenants[above].name)
            above = tenants[above].parent_id
        pairs = zip(shares.of(project=id), shares.past(project=id), strict=True)
        found[project.id] = tuple(
            Standing(
                name,
                share * PPM // SCALE,
                used * PPM // (SCALE * window_s) if window_s else None,
            )
            for name, (share, used) in zip(reversed(names), pairs, strict=False)
        )
    return found


def of_waiting(*, workload: Workload, at: datetime) -> tuple[Standing, ...]:
    """Its project's while it waits, then ()."""
    if workload.state != State.PENDING:
        return ()
    return standings(projects=[workload.project], at=at)[workload.project_id]


# With when they were read. Each is made of all quotas and all that was used for months: most of
# what it costs to show one workload of a large fleet.
_kept: tuple[datetime, Shares] | None = None


def _shares(projects: Iterable[Project], *, at: datetime) -> Shares:
    """As they are, or were within the last BERTH_STANDING_S and have all these projects."""
    global _kept  # one a process
    if _kept is not None:
        read_at, shares = _kept
        is_young = timedelta() <= at - read_at < timedelta(seconds=settings.BERTH_STANDING_S)
        if is_young and all(shares.of(project=ProjectId(str(each.id))) for each in projects):
            return shares
    shares = Shares(book=_book(at))
    _kept = at, shares
    return shares


def _book(at: datetime) -> Book:
    """With what is in use now."""
    book = Book(cohorts=fleet.cohorts(), queues=fleet.queues(past=past.decayed(at=at)))
    for project, flavor, used in fleet.rows(
        "SELECT project_id::text, flavor_id::text, used_milli FROM tenants_quota"
        " WHERE used_milli > 0"
    ):
        book.charge(project=ProjectId(project), flavor=FlavorId(flavor), amount_milli=used)
    return book


def _percent(ppm: int) -> str:
    if 0 < ppm < 1000:
        return "under 0.1 %"
    return f"{ppm / 10_000:.1f} %"
