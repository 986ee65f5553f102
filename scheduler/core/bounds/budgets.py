"""Budgets of devices' time: what a project, or a cohort above it, may still use until a day.

Under a budget that is used up nothing starts that asks for devices; what runs goes on, unless it
is in hard mode (`used_up`). A budget in safe mode, as Slurm's "safe" beside GrpTRESMins, covers
what starts to its end: the run-time limit times what it holds, as far as that lies before the
budget's end, beside what runs by the same measure. Slices count as the part of a device that they
take from others. Where there are none, budgets cost a look-up.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from copy import copy
from dataclasses import replace
from operator import itemgetter
from typing import Protocol

from scheduler.core.bounds.limits import because
from scheduler.core.plan import Place
from scheduler.core.quota.devices import Devices
from scheduler.core.quota.equivalents import PARTS
from scheduler.core.reasons import Reason, ReasonCode
from scheduler.core.request import Option
from scheduler.core.snapshot import (
    BudgetView,
    HeldView,
    HoldingView,
    PendingView,
    Snapshot,
)
from scheduler.core.units import CohortId, FlavorId, ProjectId

HOUR_S = 3600
_HOUR = HOUR_S * PARTS


class Workload(Protocol):
    """As far as budgets look at it."""

    @property
    def project(self) -> ProjectId: ...
    @property
    def run_time_limit_s(self) -> int | None: ...


class Budgets:
    """What is left, moved as work starts and ends; `add` what runs before the first question."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._at = snapshot.at
        self._coming: Counter[BudgetView] = Counter()
        self._over = dict(bound(snapshot))
        self._devices = Devices(snapshot.flavors if self._over else ())

    def copy(self) -> "Budgets":
        """The same, to be moved apart from it."""
        other = copy(self)
        other._coming = Counter(self._coming)
        return other

    @property
    def bound(self) -> Collection[ProjectId]:
        """The projects that it `binds`."""
        return self._over.keys()

    def binds(self, project: ProjectId) -> bool:
        """Whether any that may keep its work waiting is over the project."""
        return project in self._over

    def is_safe(self, project: ProjectId) -> bool:
        """Whether any in safe mode is over the project."""
        return bool(self._safe(project))

    @property
    def timed(self) -> frozenset[ProjectId]:
        """The projects of whose work the run-time limits count."""
        return frozenset(filter(self.is_safe, self._over))

    def _safe(self, project: ProjectId) -> list[BudgetView]:
        return [budget for budget in self._over.get(project, ()) if budget.safe]

    def add(self, *, workload: Workload, holds: Iterable[Place | HeldView]) -> None:
        """It holds these from now on."""
        self._move(1, workload, holds)

    def remove(self, *, workload: Workload, holds: Iterable[Place | HeldView]) -> None:
        """Take back what `add` put in."""
        self._move(-1, workload, holds)

    def _move(self, sign: int, workload: Workload, holds: Iterable[Place | HeldView]) -> None:
        if workload.project not in self._over:
            return
        rate = self._devices.of((held.flavor, held.amount_milli) for held in holds)
        for budget in self._safe(workload.project):
            self._coming[budget] += sign * self._asked(budget, workload, rate)

    def reached(self, pending: PendingView) -> Reason | None:
        """Why its least start is not covered, whatever flavor it gets; None when it may be."""
        if pending.project not in self._over:
            return None
        return self._why_not(pending, self._devices.least(pending))

    def lacking(self, pending: PendingView) -> tuple[BudgetView, int] | None:
        """The nearest budget that does not cover its least start, whatever flavor it gets, and
        how much more it would have to be; None when all do, or only its run time is lacking."""
        if pending.project not in self._over:
            return None
        found = self._short(pending, self._devices.least(pending))
        if found is None or self._is_undeclared(found, pending):
            return None
        if not found.safe:
            return found, found.used_milli_s - found.limit_milli_s + 1
        more = self._asked(found, pending, self._devices.least(pending)) - self._left(found)
        return found, max(1, -(-more // PARTS))

    def longest_s(self, pending: PendingView) -> tuple[BudgetView, int] | None:
        """The budget in safe mode that covers its least start for the shortest time, and that;
        None when there is none, or it asks for no devices."""
        rate = self._devices.least(pending)
        safe = self._safe(pending.project)
        if not safe or not rate:
            return None
        covered = ((min(self._left(each) // rate, each.ends_at - self._at), each) for each in safe)
        least_s, budget = min(covered, key=itemgetter(0))
        return budget, least_s

    def lacks(self, *, pending: PendingView, option: Option) -> Reason | None:
        """Why its least start is not covered with the option; None when it is."""
        if pending.project not in self._over:
            return None
        return self._why_not(pending, self._devices.of(option.needs))

    def narrow(self, *, pending: PendingView, option: Option, spare: dict[FlavorId, int]) -> None:
        """Leave in `spare` no more than is covered; for what lacks nothing with the option.

        The least start of each flavor stays; what is left beyond goes to the flavors in turn.
        """
        safe = self._safe(pending.project)
        if not safe:
            return
        most = min(self._left(b) // max(1, self._lasts_s(b, pending)) for b in safe)
        self._devices.narrow(needs=option.needs, most=most, spare=spare)

    def covers(self, *, workload: Workload, amounts: Iterable[tuple[FlavorId, int]]) -> bool:
        """Whether it may hold these thousandths of flavors, beside what was added."""
        if workload.project not in self._over:
            return True
        return self._why_not(workload, self._devices.of(amounts)) is None

    def _short(self, workload: Workload, rate: int) -> BudgetView | None:
        """The nearest budget that does not cover it."""
        for budget in self._over[workload.project] if rate else ():
            if budget.used_milli_s >= budget.limit_milli_s:
                return budget
            if budget.safe and (
                workload.run_time_limit_s is None
                or self._asked(budget, workload, rate) > self._left(budget)
            ):
                return budget
        return None

    @staticmethod
    def _is_undeclared(budget: BudgetView, workload: Workload) -> bool:
        spent = budget.used_milli_s >= budget.limit_milli_s
        return not spent and workload.run_time_limit_s is None

    def _why_not(self, workload: Workload, rate: int) -> Reason | None:
        budget = self._short(workload, rate)
        if budget is None:
            return None
        told: dict[str, int | str] = {"budget": budget.name, "ends_at": budget.ends_at}
        if self._is_undeclared(budget, workload):
            return because(ReasonCode.RUN_TIME_UNKNOWN, **told)
        told["limit_milli"] = budget.limit_milli_s // HOUR_S
        told["used_milli"] = budget.used_milli_s // HOUR_S
        if budget.hard and budget.used_milli_s >= budget.limit_milli_s:
            told["mode"] = "hard"
        if budget.used_milli_s < budget.limit_milli_s:
            told["asked_milli"] = -(-self._asked(budget, workload, rate) // _HOUR)
            told["coming_milli"] = -(-self._coming[budget] // _HOUR)
            told["left_milli"] = max(0, self._left(budget) // _HOUR)
        return because(ReasonCode.BUDGET_USED, **told)

    def _left(self, budget: BudgetView) -> int:
        """Of one in safe mode, less what runs and starts may still use; negative when that is
        more than there is. In the unit of rates times seconds."""
        return (budget.limit_milli_s - budget.used_milli_s) * PARTS - self._coming[budget]

    def _asked(self, budget: BudgetView, workload: Workload, rate: int) -> int:
        return rate * self._lasts_s(budget, workload)

    def _lasts_s(self, budget: BudgetView, workload: Workload) -> int:
        """How long it may run from now on and before the budget ends: that long where nobody
        knows."""
        most = budget.ends_at - self._at
        if workload.run_time_limit_s is None:
            return most
        started_at = workload.started_at if isinstance(workload, HoldingView) else None
        begins = self._at if started_at is None else started_at
        return max(0, min(most, begins + workload.run_time_limit_s - self._at))


def used_since(before: Snapshot, then: Snapshot) -> tuple[BudgetView, ...]:
    """The budgets of the first, when what holds in it has come to what holds in the second: of
    those in safe mode what could be used until then is used."""
    counted = []
    for snapshot in (before, then):
        budgets = Budgets(snapshot)
        for held in snapshot.holding:
            budgets.add(workload=held, holds=held.placements)
        counted.append(budgets._coming)
    first, second = counted
    return tuple(
        replace(each, used_milli_s=each.used_milli_s - (second[each] - first[each]) // PARTS)
        for each in before.budgets
    )


def bound(snapshot: Snapshot) -> Iterator[tuple[ProjectId, tuple[BudgetView, ...]]]:
    """The projects with budgets that may keep work waiting, and those, the nearest first. One that
    is over, or that has enough left whatever starts, keeps nobody waiting."""
    binding: dict[tuple[ProjectId | None, CohortId | None], list[BudgetView]] = {}
    for budget in sorted(snapshot.budgets, key=lambda each: (each.ends_at, each.id)):
        spent = budget.used_milli_s >= budget.limit_milli_s
        if (budget.safe or spent) and budget.ends_at > snapshot.at:
            binding.setdefault((budget.project, budget.cohort), []).append(budget)
    if not binding:
        return
    parents = {cohort.id: cohort.parent for cohort in snapshot.cohorts}
    for queue in snapshot.queues:
        over = list(binding.get((queue.project, None), ()))
        cohort = queue.cohort
        while cohort is not None:
            over += binding.get((None, cohort), ())
            cohort = parents.get(cohort)
        if over:
            yield queue.project, tuple(over)
