"""The tree that quota and fair share go by, in tables: filled once while it stays the same."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from scheduler.core.held.holders import Holders
from scheduler.core.quota.cohorts import FLEET
from scheduler.core.quota.quota import Book
from scheduler.core.quota.share import Shares
from scheduler.core.snapshot import FlavorView
from scheduler.core.sweep import state as s
from scheduler.core.sweep.state import Ints, Tree, Unfit
from scheduler.core.units import ProjectId

MOST = 1 << 58
"""Larger quantities are left to the plan by hand."""

# `Quotas.groups`: a member, then as in `evictable`, with a flavor in the place of its model.
GROUP_MEMBER: Final = 0
GROUP_FLAVOR: Final = 1
GROUP_COUNT: Final = 3
GROUP_COLUMNS: Final = 4


class Quotas:
    """The tables of one tree for these flavors: what there is to use, and where projects stand."""

    def __init__(self, flavors: Sequence[FlavorView], book: Book) -> None:
        """Raises Unfit."""
        cohorts = self._cohorts = book.cohorts
        self._flavors = flavors
        if max(map(abs, cohorts.weights)) >= MOST:
            raise Unfit("a weight is too large")
        depths = list(map(len, cohorts.paths))
        columns = [cohorts.parents, cohorts.weights, depths]
        self._members = np.ascontiguousarray(np.array(columns, np.int64).T)
        self._ledgers = np.zeros((s.LEDGERS, len(flavors), len(depths)), np.int64)
        self._levels = np.zeros((0, cohorts.depth, 2), np.int64)
        self._rows = {flavor.id: row for row, flavor in enumerate(flavors)}
        self._holders: Holders | None = None
        self._groups: Ints = np.zeros((0, GROUP_COLUMNS), np.int64)
        for row, flavor in enumerate(flavors):
            ledger = book.ledger(flavor.id)
            limits = [quota.borrowing_limit_milli if quota else None for quota in ledger.quotas]
            for column, values in {
                s.KEPT: ledger.kept,
                s.CAPACITY: ledger.capacity,
                s.NOMINAL: ledger.nominal,
                s.LIMIT: [s.UNLIMITED if x is None else min(x, s.UNLIMITED) for x in limits],
                s.QUOTED: [int(quota is not None) for quota in ledger.quotas],
                s.CEILING: [ledger.ceiling(number) for number in range(len(depths))],
                s.FIRM_CEILING: [ledger.firm_ceiling(path) for path in cohorts.paths],
            }.items():
                if column != s.LIMIT:
                    _check(flavor, values)
                self._ledgers[column, row] = values

    def suit(self, flavors: Sequence[FlavorView], book: Book) -> bool:
        """Whether that is their tree."""
        return self._cohorts is book.cohorts and self._flavors == flavors

    def tree(self, book: Book, shares: Shares) -> Tree:
        """With what is in use there. Raises Unfit."""
        ledgers = self._ledgers.copy()
        for row, flavor in enumerate(self._flavors):
            ledger = book.ledger(flavor.id)
            for column, values in {
                s.USED: ledger.used,
                s.LASTING: ledger.lasting,
                s.OVER: shares.over(flavor=flavor.id),
            }.items():
                _check(flavor, values)
                ledgers[column, row] = values
            ledgers[s.GIVERS, row, FLEET] = s.UNKNOWN
        return Tree(self._members, ledgers, np.full(len(self._members), s.UNKNOWN))

    def groups(self, holders: Holders) -> Ints:
        """Those of whom any are left, of these flavors: whose they are, and how many."""
        if self._holders is not holders:
            self._holders, self._groups = holders, self._groups[:0]
        number, rows = self._cohorts.number, self._rows
        if new := [
            (number.get(project, FLEET), rows.get(flavor, s.UNKNOWN), _within(priority), 0)
            for project, flavor, priority in holders.groups[len(self._groups) :]
        ]:
            self._groups = np.concatenate((self._groups, np.array(new, np.int64)))
        self._groups[:, GROUP_COUNT] = holders.counts
        left = (self._groups[:, GROUP_COUNT] > 0) & (self._groups[:, GROUP_FLAVOR] >= 0)
        return self._groups[left]

    def levels(self, projects: Sequence[ProjectId], shares: Shares) -> Ints:
        """`Queues.levels` of these, the last time's first. Of the past only the order counts, so
        its place in the order stands for it."""
        first = len(self._levels)
        if first < len(projects):
            more = np.zeros((len(projects) - first, *self._levels.shape[1:]), np.int64)
            self._levels = np.concatenate((self._levels, more))
            for i, project in enumerate(projects[first:], first):
                path = self._cohorts.paths[self._cohorts.number.get(project, 0)]
                self._levels[i, : len(path), s.COMPARED] = path
                self._levels[i, len(path) :, s.COMPARED] = path[-1] if path else s.UNKNOWN
        made = self._levels
        if shares.has_past:
            without = (0,) * self._cohorts.depth
            pasts = [shares.past(project=project) or without for project in projects]
            values = sorted({value for past in pasts for value in past})
            place = {value: n for n, value in enumerate(values)}
            made = made.copy()
            made[:, :, s.PAST] = [[place[value] for value in past] for past in pasts]
        return made


def _within(priority: int) -> int:
    return max(-MOST, min(priority, MOST))


def _check(flavor: FlavorView, values: Sequence[int]) -> None:
    if max(map(abs, values)) >= MOST:
        raise Unfit(f"a quantity of {flavor.id} is too large")
