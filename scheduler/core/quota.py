"""Who uses how much of each flavor, and how much more each may: exact integers, no policy.

Today the fleet is one flat cohort; a tree of cohorts goes behind the same `Book`.
"""

from collections.abc import Iterable

from scheduler.core.snapshot import PodSetView, QueueView, QuotaView
from scheduler.core.units import FlavorId, ProjectId


def amount_milli(*, pod_set: PodSetView) -> int:
    """What one pod is charged, in thousandths of its flavor.

    With GPUs it is the GPU flavor alone; without, it is the cores it asks for.
    """
    if pod_set.gpu_count:
        return pod_set.gpu_count * pod_set.gpu_milli
    return pod_set.cpu_milli


class Book:
    """Usage against quota. Mutable: a draft charges it and takes charges back.

    Laws, per flavor, on every increase (the database enforces the same):
      used[p] <= nominal[p] + borrowing[p]
      sum of max(used[q], nominal[q] - lending[q]) over all q <= sum of nominal[q]
    A missing borrowing limit is no limit, a missing lending limit lends all of nominal. A project
    without a quota row for a flavor may use none of it.
    """

    __slots__ = ("_committed", "_kept", "_nominal", "_quotas", "_used")

    def __init__(self, *, queues: Iterable[QueueView]) -> None:
        self._quotas: dict[tuple[ProjectId, FlavorId], QuotaView] = {}
        self._used: dict[tuple[ProjectId, FlavorId], int] = {}
        self._nominal: dict[FlavorId, int] = {}
        self._kept: dict[FlavorId, int] = {}
        for queue in queues:
            for quota in queue.quotas:
                self._quotas[queue.project, quota.flavor] = quota
        for (_, flavor), quota in self._quotas.items():
            self._nominal[flavor] = self._nominal.get(flavor, 0) + quota.nominal_milli
            self._kept[flavor] = self._kept.get(flavor, 0) + _kept(quota)
        self._committed = dict(self._kept)

    def charge(self, *, project: ProjectId, flavor: FlavorId, amount_milli: int) -> None:
        """Add to usage; a negative amount gives back. Checks nothing: ask `available` first."""
        key = project, flavor
        before = self._used.get(key, 0)
        after = before + amount_milli
        self._used[key] = after
        kept = _kept(self._quotas.get(key))
        grown = max(after, kept) - max(before, kept)
        if grown:
            self._committed[flavor] = self._committed.get(flavor, 0) + grown

    def available(self, *, project: ProjectId, flavor: FlavorId) -> int | None:
        """How much more the project may take now; None without a quota row.

        Negative after a quota cut: running work is left alone, and nothing is admitted until
        enough of it has ended. Zero or negative also while others use what this project lends.
        """
        quota = self._quotas.get((project, flavor))
        if quota is None:
            return None
        used = self._used.get((project, flavor), 0)
        kept = _kept(quota)
        room = self._nominal[flavor] - self._committed[flavor] + max(used, kept)
        # Below its kept part the cohort's sum does not grow with use; but while that sum is over
        # the total (after a quota cut elsewhere) the database admits nobody.
        free = room - max(used, kept) if room < kept else room - used
        if quota.borrowing_limit_milli is None:
            return free
        return min(free, quota.nominal_milli + quota.borrowing_limit_milli - used)

    def ceiling(self, *, project: ProjectId, flavor: FlavorId) -> int | None:
        """The most the project could hold if nobody else used any; None without a quota row."""
        quota = self._quotas.get((project, flavor))
        if quota is None:
            return None
        most = self._nominal[flavor] - (self._kept[flavor] - _kept(quota))
        if quota.borrowing_limit_milli is None:
            return most
        return min(most, quota.nominal_milli + quota.borrowing_limit_milli)

    def used(self, *, project: ProjectId, flavor: FlavorId) -> int:
        return self._used.get((project, flavor), 0)

    def nominal(self, *, project: ProjectId, flavor: FlavorId) -> int:
        """The project's own guarantee; 0 without a quota row."""
        quota = self._quotas.get((project, flavor))
        return quota.nominal_milli if quota else 0

    def borrowing_limit(self, *, project: ProjectId, flavor: FlavorId) -> int | None:
        """None is no limit; 0 without a quota row."""
        quota = self._quotas.get((project, flavor))
        return quota.borrowing_limit_milli if quota else 0

    def fleet_nominal(self, *, flavor: FlavorId) -> int:
        """The sum of all projects' nominal quotas."""
        return self._nominal.get(flavor, 0)

    def usage(self) -> dict[tuple[ProjectId, FlavorId], int]:
        """All that is in use, without zeros."""
        return {key: amount for key, amount in self._used.items() if amount}

    def over_law(self, *, flavor: FlavorId) -> int:
        """By how much the cohort's sum exceeds its nominal total; 0 or less is lawful."""
        return self._committed.get(flavor, 0) - self._nominal.get(flavor, 0)


def _kept(quota: QuotaView | None) -> int:
    """The part of nominal that is never lent."""
    if quota is None or quota.lending_limit_milli is None:
        return 0
    return max(0, quota.nominal_milli - quota.lending_limit_milli)
