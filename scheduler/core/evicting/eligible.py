"""Whom one workload may evict, by the rules of `victims`."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from heapq import merge
from operator import attrgetter

from scheduler.core.fleet.draft import Draft
from scheduler.core.held.candidates import ORDER, Candidates
from scheduler.core.held.victims import Held, UnitId, Victim, in_sum
from scheduler.core.quota import guarantees
from scheduler.core.quota.cohorts import FLEET
from scheduler.core.quota.floors import Floor
from scheduler.core.quota.quota import Book
from scheduler.core.reasons import PreemptRule
from scheduler.core.request import Option
from scheduler.core.snapshot import HoldingView, PendingView
from scheduler.core.units import ClusterId, FlavorId, NodeId, ProjectId

_COST = attrgetter("cost")

type GoesAhead = Callable[[HoldingView, guarantees.Needs], bool]
"""Whether what went ahead would do so again, were it evicted for who asks for that."""


class Eligible:
    """Whom one workload may evict, for one option, as `soon` stands."""

    def __init__(
        self,
        *,
        candidates: Candidates,
        pending: PendingView,
        option: Option,
        soon: Draft,
        book: Book,
        guarantor: int,
        late: int | None,
        goes_ahead: GoesAhead,
    ) -> None:
        """Of a workload without a guarantor, FLEET, nobody is reclaimed from, nor of one that has
        none in `soon`: what is guaranteed may be promised to another. `book` is the usage now.

        In `late`, unless None, others may come up before it in this round (`Admission.late`).
        """
        self._candidates = candidates
        self._pending = pending
        self._late = late
        self._goes_ahead = goes_ahead
        self._book, self._now = soon.book, book
        self._needs = option.needs
        self._asked = [flavor for flavor, asked in option.needs if asked]
        self._borrowed: dict[ProjectId, list[FlavorId]] = {}
        self._above: dict[ProjectId, int] = {}
        self._members: dict[ProjectId, tuple[int, ...]] = {}
        self._spared = frozenset[UnitId]()
        self._victims: dict[Held, Victim] = {}
        self._on_node: dict[NodeId, list[Victim]] = {}
        own, project = candidates.own_amounts(pending=pending), pending.project
        later = guarantees.guarantor(soon.book, project=project, needs=option.needs, gives_way=own)
        guarantor = min(guarantor, later)
        for flavor in self._asked if guarantor != FLEET else ():
            for project, above, members in candidates.borrowers(
                to=pending.project, flavor=flavor, book=soon.book, guarantor=guarantor
            ):
                self._borrowed.setdefault(project, []).append(flavor)
                self._above[project], self._members[project] = above, members

    def above(self, victim: Victim) -> int:
        """Of one who is reclaimed from: the nearest member above it and the workload."""
        return self._above[victim.held.holding.project]

    def everyone(self) -> Iterator[Held]:
        """All of them, in any order, some twice."""
        yield from self._candidates.any_own(pending=self._pending)
        for flavor in self._asked:
            yield from self._candidates.any_with_flavor(flavor, self._givers(flavor))

    def in_cluster(self, cluster: ClusterId) -> Iterator[Victim]:
        """All of them that hold something there, least harm first."""
        own = (
            self._victim(held, PreemptRule.PRIORITY)
            for held in self._candidates.own(pending=self._pending)
            if held.holding.cluster == cluster
        )
        return merge(self._borrowers_in(cluster), own, key=_COST)

    def _borrowers_in(self, cluster: ClusterId) -> Iterator[Victim]:
        by_flavor = [
            self._candidates.with_flavor(flavor, self._givers(flavor)) for flavor in self._asked
        ]
        before: Held | None = None
        for held in merge(*by_flavor, key=ORDER):
            if held is not before and held.holding.cluster == cluster:
                yield self._victim(held, PreemptRule.RECLAIM)
            before = held

    def _givers(self, flavor: FlavorId) -> list[ProjectId]:
        """Those who give the flavor back."""
        return [project for project, of in self._borrowed.items() if flavor in of]

    def on_node(self, node: NodeId) -> list[Victim]:
        """Those that hold something there, least harm first. To be read."""
        found = self._on_node.get(node)
        if found is None:
            listed = self._candidates.on_node(node)
            ruled = ((held, self._rule(held)) for held in listed)
            found = [self._victim(held, rule) for held, rule in ruled if rule is not None]
            found.sort(key=_kind)
            self._on_node[node] = found
        return found

    def _victim(self, held: Held, rule: PreemptRule) -> Victim:
        found = self._victims.get(held)
        if found is None:
            found = self._victims[held] = Victim.of(held, rule)
        return found

    def _rule(self, held: Held) -> PreemptRule | None:
        """By which it may be evicted."""
        of, pending = held.holding, self._pending
        for flavor in self._borrowed.get(of.project, ()):
            if flavor in held.amounts:
                return PreemptRule.RECLAIM
        own = of.project == pending.project and of.priority < pending.priority
        return PreemptRule.PRIORITY if own else None

    def with_flavor(self, flavor: FlavorId) -> Iterator[Victim]:
        """Those that hold some of it, least harm first."""
        borrowing = (
            self._victim(held, PreemptRule.RECLAIM)
            for held in self._candidates.with_flavor(flavor, self._members)
        )
        own = (
            self._victim(held, PreemptRule.PRIORITY)
            for held in self._candidates.own(pending=self._pending)
            if flavor in held.amounts
        )
        return merge(borrowing, own, key=_COST)

    def any_with_flavor(self, flavor: FlavorId) -> Iterator[Held]:
        """As `with_flavor`, in any order."""
        yield from self._candidates.any_with_flavor(flavor, self._members)
        for held in self._candidates.any_own(pending=self._pending):
            if flavor in held.amounts:
                yield held

    def is_guaranteed(
        self, flavors: Iterable[FlavorId], *, taken: Iterable[Victim], below: int
    ) -> bool:
        """Whether it is guaranteed these by somebody below that member: once it is charged in
        `soon`, and as things are now, with but its own work of those `taken` gone. Who is evicted
        for another may be back before it, and have the guarantee that was free in between."""
        own = in_sum(v.held for v in taken if v.rule is PreemptRule.PRIORITY)
        flavors, project = set(flavors), self._pending.project
        asked = [(flavor, amount) for flavor, amount in self._needs if flavor in flavors]
        charged = [(flavor, 0) for flavor, _ in asked]
        if guarantees.guarantor(self._book, project=project, needs=charged, below=below) == FLEET:
            return False
        now = guarantees.guarantor(
            self._now, project=project, needs=asked, gives_way=own, below=below
        )
        return now != FLEET

    def sparing(self, units: Iterable[UnitId]) -> "Eligible":
        """The same without these."""
        other = copy(self)
        other._spared = self._spared.union(units)
        return other

    def may_go(self, victim: Victim, before: Sequence[Victim]) -> bool:
        """Whether it may be evicted: its floors are kept without it and those evicted `before`,
        and it would not come before this one."""
        if victim.id in self._spared or self._comes_first(victim):
            return False
        return all(
            any(self._spares(victim, before, flavor) for flavor in floor.flavors)
            for floor in self.floors(victim)
        )

    def _comes_first(self, victim: Victim) -> bool:
        """Whether it may start again before this one does, or goes ahead again."""
        of = victim.held.holding
        if self._late is not None and victim.rule is PreemptRule.RECLAIM:
            in_late = self.above(victim) >= self._late  # on one path: it, or below it
            if in_late and of.priority >= self._pending.priority:
                return True
        return bool(of.ahead_of) and victim.held.is_whole and self._goes_ahead(of, self._needs)

    def floors(self, victim: Victim) -> Iterator[Floor]:
        """That all who give it stay at capacity, in each flavor asked for or else in its model."""
        project, seen = victim.held.holding.project, set[FlavorId]()
        for flavor in self._asked if victim.rule is PreemptRule.RECLAIM else ():
            if flavor in seen or not victim.held.amounts.get(flavor):
                continue
            part = self._book.parts.of(project=project, flavor=flavor)
            whole = () if part is None or part.whole not in self._asked else (part.whole,)
            seen.update((flavor, *whole))
            yield Floor(self._members[project], (flavor, *whole))

    def _spares(self, victim: Victim, before: Sequence[Victim], flavor: FlavorId) -> bool:
        ledger, gone = self._book.ledger(flavor), victim.held.amounts.get(flavor, 0)
        for member in self._members[victim.held.holding.project]:
            others = sum(
                other.held.amounts.get(flavor, 0)
                for other in before
                if member in self._members.get(other.held.holding.project, ())
            )
            if gone + others > ledger.over(member):
                return False
        return True


def _kind(victim: Victim) -> int:
    return victim.cost[0]
