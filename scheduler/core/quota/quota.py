"""Who uses how much of each flavor, and how much more each may: exact integers, no policy.

The algebra is Kueue's for hierarchical cohorts (KEP-79; `pkg/cache/scheduler/resource_node.go`).
For each member m of the tree, per flavor, with c ranging over its children:

  capacity(m) = nominal(m) + sum of capacity(c) - kept(c)
  kept(m)     = max(0, capacity(m) - lending limit(m)), 0 without a limit
  used(m)     = what is charged to it + sum of max(0, used(c) - kept(c))

The law, which every increase has to leave true at each member whose use it raises:

  used(m) <= capacity(m) + borrowing limit(m); for the fleet, used <= capacity

What stays within a member's kept part raises nobody's use above it. The database keeps the same
law, by triggers (ADR 0018). What of its use is guaranteed to whom is another law: `guarantees`.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from typing import NamedTuple

from scheduler.core.plan import Place
from scheduler.core.quota.cohorts import FLEET, Cohorts
from scheduler.core.quota.equivalents import Parts
from scheduler.core.quota.ledger import Ledger
from scheduler.core.snapshot import (
    CohortView,
    FlavorView,
    HeldView,
    HoldingView,
    Isolation,
    PodSetView,
    QueueView,
    QuotaView,
)
from scheduler.core.units import FlavorId, ProjectId


def amount_milli(*, pod_set: PodSetView) -> int:
    """What one pod is charged, in thousandths of its flavor.

    With GPUs it is the GPU flavor alone; without, it is the cores it asks for.
    """
    if pod_set.gpu_count:
        return pod_set.gpu_count * pod_set.gpu_milli
    return pod_set.cpu_milli


class Bounds(NamedTuple):
    """What holds for a project of one flavor: `limit` None is no borrowing limit."""

    nominal: int
    limit: int | None
    ceiling: int
    used: int


class Book:
    """Usage against quota. Mutable: a draft charges it and takes charges back.

    A missing borrowing limit is no limit, a missing lending limit lends all. A project without a
    quota row of its own for a flavor may use none of it.
    """

    __slots__ = ("_ledgers", "_strays", "cohorts", "isolations", "parts")

    def __init__(
        self,
        *,
        cohorts: Iterable[CohortView] = (),
        queues: Iterable[QueueView],
        flavors: Iterable[FlavorView] = (),
    ) -> None:
        """Without `flavors` nothing that is charged counts of a model too. `isolations` has the
        least that a project accepts, where that is not any."""
        self.parts = Parts(flavors=flavors, queues=queues)
        self.isolations: Mapping[ProjectId, Isolation] = {
            queue.project: queue.least_isolation
            for queue in queues
            if queue.least_isolation is not Isolation.NONE
        }
        self.cohorts = Cohorts(cohorts=cohorts, queues=queues)
        self._ledgers: dict[FlavorId, Ledger] = {}
        self._strays: dict[tuple[ProjectId, FlavorId], int] = {}

    def copy(self) -> "Book":
        """Another with the same in use."""
        twin = copy(self)
        twin._ledgers = {flavor: ledger.copy() for flavor, ledger in self._ledgers.items()}
        twin._strays = dict(self._strays)
        return twin

    def charge(self, *, project: ProjectId, flavor: FlavorId, amount_milli: int) -> None:
        """Add to usage, of the flavor's model too; a negative amount gives back. Checks nothing:
        ask `available` first."""
        number = self.cohorts.number.get(project)
        if number is None:
            key = project, flavor
            self._strays[key] = self._strays.get(key, 0) + amount_milli
            return
        for of, amount in self.parts.charges(
            project=project, flavor=flavor, amount_milli=amount_milli
        ):
            self.ledger(of).charge(number, amount)

    def available(self, *, project: ProjectId, flavor: FlavorId) -> int | None:
        """How much more the project may take now; None without a quota row.

        Negative after a quota cut: running work is left alone, and nothing is admitted until
        enough of it has ended. Zero or negative also while others use what this project lends.
        """
        number = self._with_quota(project, flavor)
        return None if number is None else self.ledger(flavor).available(number)

    @contextmanager
    def given_back(
        self, *, project: ProjectId, holders: Collection[Place | HeldView]
    ) -> Iterator[None]:
        """For as long as it is entered, as if the project had given these back."""

        def charge(sign: int) -> None:
            for holder in holders:
                amount = sign * holder.amount_milli
                self.charge(project=project, flavor=holder.flavor, amount_milli=amount)

        charge(-1)
        try:
            yield
        finally:
            charge(1)

    @contextmanager
    def without(self, *, project: ProjectId, flavors: Iterable[FlavorId]) -> Iterator[None]:
        """For as long as it is entered, as if the project itself used none of these."""
        taken: list[tuple[Ledger, int, int, int]] = []
        number = self.cohorts.number.get(project)
        for flavor in flavors:
            if number is not None:
                ledger = self.ledger(flavor)
                used, leaves = ledger.used[number], ledger.used[number] - ledger.lasting[number]
                taken.append((ledger, number, used, leaves))
                ledger.charge(number, -used, leaves=-leaves)
        try:
            yield
        finally:
            for ledger, of, used, leaves in taken:
                ledger.charge(of, used, leaves=leaves)

    def is_lawful(self, *, project: ProjectId, flavor: FlavorId) -> bool:
        """Whether the project may hold what it has been charged; False without a quota row. What
        it keeps for itself is its own, even while others are over what they may hold; what is
        awaited is not."""
        number = self._with_quota(project, flavor)
        if number is None:
            return False
        ledger = self.ledger(flavor)
        return ledger.is_lawful(number) and min(ledger.left_of_awaited(number), default=0) >= 0

    def ceiling(self, *, project: ProjectId, flavor: FlavorId) -> int | None:
        """The most the project could hold if nobody else used any; None without a quota row."""
        number = self._with_quota(project, flavor)
        return None if number is None else self.ledger(flavor).ceiling(number)

    def bounds(self, *, project: ProjectId, flavor: FlavorId) -> Bounds:
        """All at once, as the reasons of a plan ask it for thousands; 0 of all but what is used
        without a quota row."""
        number = self._with_quota(project, flavor)
        if number is None:
            return Bounds(0, 0, 0, self.used(project=project, flavor=flavor))
        ledger = self.ledger(flavor)
        quota, used = ledger.quotas[number], ledger.used[number]
        limit = quota.borrowing_limit_milli if quota else None
        return Bounds(ledger.nominal[number], limit, ledger.ceiling(number), used)

    def leave(self, *, holding: HoldingView) -> None:
        """What it holds was charged, and is on its way back."""
        number = self.cohorts.number.get(holding.project)
        if number is not None:
            for flavor, amount in self.parts.sums(holding=holding).items():
                self.ledger(flavor).leave(number, amount)

    def guaranteed(self, *, project: ProjectId, flavor: FlavorId) -> int:
        """The most that the project could hold without borrowing if nobody else used any: its own
        nominal, and that of those above it, as far as its limits let it."""
        path = self.cohorts.paths[self.cohorts.number.get(project, FLEET)]
        return self.ledger(flavor).firm_ceiling(path)

    def used(self, *, project: ProjectId, flavor: FlavorId) -> int:
        number = self.cohorts.number.get(project)
        if number is None:
            return self._strays.get((project, flavor), 0)
        return self.ledger(flavor).used[number]

    def nominal(self, *, project: ProjectId, flavor: FlavorId) -> int:
        """The project's own guarantee; 0 without a quota row."""
        quota = self._quota(project, flavor)
        return quota.nominal_milli if quota else 0

    def borrowing_limit(self, *, project: ProjectId, flavor: FlavorId) -> int | None:
        """None is no limit; 0 without a quota row."""
        quota = self._quota(project, flavor)
        return quota.borrowing_limit_milli if quota else 0

    def fleet_nominal(self, *, flavor: FlavorId) -> int:
        """The sum of all nominal quotas."""
        return self.ledger(flavor).total

    def flavors(self) -> set[FlavorId]:
        """Those of which anything is in use by projects."""
        held = {flavor for flavor, ledger in self._ledgers.items() if any(ledger.used)}
        return held | {flavor for (_, flavor), amount in self._strays.items() if amount}

    def usage(self) -> dict[tuple[ProjectId, FlavorId], int]:
        """All that is in use by projects, without zeros."""
        found = {
            (project, flavor): ledger.used[number]
            for flavor, ledger in self._ledgers.items()
            for project, number in self.cohorts.number.items()
        }
        return {key: amount for key, amount in (found | self._strays).items() if amount}

    def ledger(self, flavor: FlavorId) -> Ledger:
        """Quota and use of the flavor, by the numbers of `cohorts`."""
        found = self._ledgers.get(flavor)
        if found is None:
            found = self._ledgers[flavor] = Ledger(self.cohorts, flavor)
        return found

    def _quota(self, project: ProjectId, flavor: FlavorId) -> QuotaView | None:
        number = self.cohorts.number.get(project)
        return None if number is None else self.cohorts.quotas[number].get(flavor)

    def _with_quota(self, project: ProjectId, flavor: FlavorId) -> int | None:
        number = self.cohorts.number.get(project)
        if number is None or flavor not in self.cohorts.quotas[number]:
            return None
        return number
