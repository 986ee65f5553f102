"""Budgets with what is used of them: what the ledger has, and what runs and is not metered yet."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from controlplane.kernel import statements
from scheduler.core.quota.equivalents import DEVICE_MILLI, counts_milli
from scheduler.core.snapshot import BudgetView, FlavorKind
from scheduler.core.units import ONE_MILLI, BudgetId, CohortId, ProjectId
from tenants.models import Budget, BudgetMode, Period

HOUR_S = 3600
WARN_PERCENT = 80
_NEVER = timedelta(days=36500)
_WORDS = {Period.MONTH: "{} for this month", Period.QUARTER: "{} for this quarter"}


@dataclass(frozen=True, slots=True)
class Standing:
    """A budget in its period, in thousandths of a device times seconds. `running_milli` is what
    runs under it now, in thousandths of a device."""

    budget: Budget
    starts_at: datetime
    ends_at: datetime
    limit_milli_s: int
    used_milli_s: int
    running_milli: int
    at: datetime

    @property
    def name(self) -> str:
        """Whose it is, and for how long where that repeats."""
        owner = self.budget.project or self.budget.tenant
        return _WORDS.get(Period(self.budget.period), "{}").format(owner)

    @property
    def stopped_at(self) -> datetime | None:
        """When work was last stopped for it in this period; None where none was."""
        stopped_at = self.budget.used_up_at
        return stopped_at if stopped_at and stopped_at >= self.starts_at else None

    @property
    def left_milli_s(self) -> int:
        """0 where more was used, or work was stopped for it: where a pod is seen to have ended a
        little sooner, nothing comes back, or that work would start for a moment, again and
        again."""
        return 0 if self.stopped_at else max(0, self.limit_milli_s - self.used_milli_s)

    @property
    def used_milli_h(self) -> int:
        return self.used_milli_s // HOUR_S

    @property
    def left_milli_h(self) -> int:
        return self.left_milli_s // HOUR_S

    @property
    def state(self) -> str:
        """`ok`, `warned` from WARN_PERCENT on, `used` when nothing is left."""
        if not self.left_milli_s:
            return "used"
        warned = self.used_milli_s * 100 >= self.limit_milli_s * WARN_PERCENT
        return "warned" if warned else "ok"

    @property
    def lasts_until(self) -> datetime | None:
        """When it is used up if as much runs on as now; None when that is not in its period."""
        if not self.left_milli_s:
            return self.at
        if not self.running_milli:
            return None
        lasts = min(timedelta(seconds=self.left_milli_s / self.running_milli), _NEVER)
        return self.at + lasts if lasts < self.ends_at - self.at else None


# What counts on a day was begun on it, and is metered day by day (see tenants.models.past).
_COVERED = """
WITH RECURSIVE asked AS (
    SELECT * FROM unnest(%(ids)s::uuid[], %(projects)s::uuid[], %(tenants)s::uuid[],
                         %(starts)s::timestamptz[]) AS a(budget, project, tenant, starts_at)
), tree AS (
    SELECT budget, tenant, starts_at FROM asked WHERE tenant IS NOT NULL
    UNION ALL
    SELECT tree.budget, t.id, tree.starts_at
    FROM tree JOIN tenants_tenant t ON t.parent_id = tree.tenant
), covered AS (
    SELECT budget, project, starts_at FROM asked WHERE project IS NOT NULL
    UNION ALL
    SELECT tree.budget, p.id, tree.starts_at
    FROM tree JOIN tenants_project p ON p.tenant_id = tree.tenant
)"""
_USED = f"""
{_COVERED}, used AS (
    SELECT c.budget, u.flavor_id, u.milli_s::numeric AS milli_s, 0::bigint AS running
    FROM covered c JOIN tenants_pastuse u
      ON u.project_id = c.project AND u.day >= (c.starts_at AT TIME ZONE 'UTC')::date
    UNION ALL
    SELECT c.budget, p.flavor_id,
           p.amount_milli * greatest(0,
               floor(extract(epoch FROM coalesce(p.ended_at, %(at)s)))
               - floor(extract(epoch FROM greatest(coalesce(p.metered_until, p.started_at),
                                                   c.starts_at)))),
           CASE WHEN p.ended_at IS NULL THEN p.amount_milli ELSE 0 END
    FROM scheduler_placement p JOIN scheduler_workload w ON w.id = p.workload_id
    JOIN covered c ON c.project = w.project_id
    WHERE p.started_at IS NOT NULL AND p.released_at IS NULL
)
SELECT used.budget, f.kind, f.model, f.profile,
       sum(used.milli_s)::bigint, sum(used.running)::bigint
FROM used JOIN clusters_flavor f ON f.id = used.flavor_id GROUP BY 1, 2, 3, 4
"""  # noqa: S608  # constants
# Work that was not told to go, and holds devices.
_HELD = f"""
{_COVERED}
SELECT EXISTS (
    SELECT FROM covered c JOIN scheduler_workload w ON w.project_id = c.project
      AND w.ended_at IS NULL AND w.state IN ('ADMITTED', 'BOUND', 'RUNNING')
    JOIN scheduler_placement p ON p.workload_id = w.id AND p.released_at IS NULL
    JOIN clusters_flavor f ON f.id = p.flavor_id AND f.kind <> 'cpu'
)
"""  # noqa: S608  # constants


def standings(*, budgets: Iterable[Budget], at: datetime) -> list[Standing]:
    """Of those whose period has begun and not ended, in their order. One query, none without.

    Seconds are full ones of the clock, as in the ledger's days; slices count as the part of a
    device that they take from others, and cores nothing.
    """
    current = [(row, window) for row in budgets if (window := row.window(at=at)) is not None]
    if not current:
        return []
    used, running = _used([(row, window.starts_at) for row, window in current], at)
    return [
        Standing(
            row,
            window.starts_at,
            window.ends_at,
            row.limit_h * HOUR_S * ONE_MILLI,
            -(-used.get(row.id, 0) // DEVICE_MILLI),
            running.get(row.id, 0) // DEVICE_MILLI,
            at,
        )
        for row, window in current
    ]


def any_to_stop(*, at: datetime) -> bool:
    """Whether anything runs on devices under a budget in hard mode that is used up, and was not
    told to go. Three queries at most, one without such budgets."""
    hard = Budget.objects.select_related("project", "tenant").filter(mode=BudgetMode.HARD)
    used_up = [each for each in standings(budgets=hard, at=at) if not each.left_milli_s]
    if not used_up:
        return False
    with statements.cursor() as cursor:
        cursor.execute(_HELD, _asked([(each.budget, each.starts_at) for each in used_up]))
        [[found]] = cursor.fetchall()
    return bool(found)


def views(*, at: datetime) -> tuple[BudgetView, ...]:
    """Those that may keep work from starting, as the core sees them. Two queries, one without."""
    rows = Budget.objects.select_related("project", "tenant").exclude(mode=BudgetMode.WARN)
    return tuple(view(each) for each in standings(budgets=rows.order_by("id"), at=at))


def view(of: Standing) -> BudgetView:
    """As the core sees it."""
    budget = of.budget
    return BudgetView(
        BudgetId(str(budget.id)),
        of.name,
        of.limit_milli_s,
        max(of.used_milli_s, of.limit_milli_s - of.left_milli_s),
        int(of.ends_at.timestamp()),
        ProjectId(str(budget.project_id)) if budget.project_id else None,
        CohortId(str(budget.tenant_id)) if budget.tenant_id else None,
        safe=budget.mode == BudgetMode.SAFE,
        hard=budget.mode == BudgetMode.HARD,
    )


def _used(
    current: Iterable[tuple[Budget, datetime]], at: datetime
) -> tuple[dict[UUID, int], dict[UUID, int]]:
    """By budget, each times DEVICE_MILLI: what was used in seconds, and what runs."""
    used: dict[UUID, int] = {}
    running: dict[UUID, int] = {}
    with statements.cursor() as cursor:
        cursor.execute(_USED, {**_asked(current), "at": at})
        for budget, kind, model, profile, milli_s, milli in cursor.fetchall():
            counts = counts_milli(kind=FlavorKind(kind), model=model, profile=profile)
            used[budget] = used.get(budget, 0) + milli_s * counts
            running[budget] = running.get(budget, 0) + milli * counts
    return used, running


def _asked(current: Iterable[tuple[Budget, datetime]]) -> dict[str, list[object]]:
    """The parameters of _COVERED."""
    rows = list(current)
    return {
        "ids": [row.id for row, _ in rows],
        "projects": [row.project_id for row, _ in rows],
        "tenants": [row.tenant_id for row, _ in rows],
        "starts": [starts_at.astimezone(UTC) for _, starts_at in rows],
    }
