"""Who may be evicted for whom, and how much harm that does.

PRIORITY: preemptible work of lower priority in the same project. RECLAIM: preemptible work of
another project, over what is guaranteed to it and to those above it, in a flavor that the workload
asks for (`guarantees`). Neither takes work that has not yet run for the least time its project
grants it.

Harm, least first: borrowers before the project's own work, lower priority, less work lost since
the last checkpoint, fewer pods. A gang goes as a whole, so on each node all of it counts.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from operator import attrgetter
from typing import NamedTuple

from scheduler.core import losses
from scheduler.core.cohorts import FLEET
from scheduler.core.draft import Draft
from scheduler.core.equivalents import Parts
from scheduler.core.guarantees import gives, guarantor
from scheduler.core.quota import Book
from scheduler.core.reasons import PreemptRule
from scheduler.core.request import Option
from scheduler.core.snapshot import HeldView, HoldingView, PendingView, QueueView
from scheduler.core.units import ClusterId, FlavorId, NodeId, ProjectId, WorkloadId

Cost = tuple[bool, int, int, int]
"""Whether it is own work, its priority, its loss in thousandths of devices x seconds, its pods."""


class Held:
    """Work that may be evicted. `amounts` is what it gives back, thousandths by flavor, models
    too; `order` has the least harm first, whosever work it is."""

    __slots__ = ("amounts", "holding", "on", "order")

    def __init__(self, holding: HoldingView, *, parts: Parts, at: int) -> None:
        self.holding = holding
        placements = holding.placements
        lost = lost_milli_s(holding=holding, at=at)
        self.order = holding.priority, lost, len(placements), holding.id
        self.amounts = parts.sums(holding=holding)
        self.on: dict[NodeId, tuple[HeldView, ...]] = {}
        for placement in placements:
            node = placement.node
            self.on[node] = (*self.on[node], placement) if node in self.on else (placement,)


_ORDER = attrgetter("order")


class Victim(NamedTuple):
    """Someone who may be evicted for a workload, by a rule."""

    held: Held
    rule: PreemptRule

    @property
    def id(self) -> WorkloadId:
        return self.held.holding.id

    @property
    def cost(self) -> Cost:
        priority, lost_milli_s, pods, _ = self.held.order
        if self.rule is PreemptRule.CONSOLIDATE:
            priority = 0  # it goes on elsewhere, whatever comes before it
        return self.rule is PreemptRule.PRIORITY, priority, lost_milli_s, pods


def cost_of(victims: Sequence[Victim]) -> Cost:
    """Of some victims, one at least: the worst of their kinds, and what they lose in sum."""
    costs = [victim.cost for victim in victims]
    own, priority = max(cost[0] for cost in costs), max(cost[1] for cost in costs)
    return own, priority, loss_milli_s(victims), sum(cost[3] for cost in costs)


def loss_milli_s(victims: Iterable[Victim]) -> int:
    """What they lose in sum, as each one's cost says."""
    return sum(victim.cost[2] for victim in victims)


def lost_milli_s(*, holding: HoldingView, at: int) -> int:
    """The work lost by its eviction, of devices, of cores where it has none (`losses`)."""
    held = sum([p.amount_milli for p in holding.placements if p.spans])
    held = held or sum([p.amount_milli for p in holding.placements])
    return losses.lost_milli_s(
        held_milli=held,
        started_at=holding.started_at,
        checkpointed_at=holding.checkpointed_at,
        at=at,
    )


def is_protected(*, holding: HoldingView, min_run_time_s: int, at: int) -> bool:
    """Whether it has not run as long as it is granted. Work that has not begun counts from its
    admission, or what never begins would be protected for ever."""
    since = holding.admitted_at if holding.started_at is None else holding.started_at
    return max(0, at - since) < min_run_time_s  # rounded seconds: it may begin after `at`


class Candidates:
    """All work that may be evicted, less what has been in this plan; least harm first."""

    def __init__(
        self,
        *,
        holding: Iterable[HoldingView],
        queues: Iterable[QueueView],
        parts: Parts,
        at: int,
    ) -> None:
        self._gone: set[WorkloadId] = set()
        self._of_project: dict[ProjectId, list[Held]] = {}
        self._of_flavor: dict[FlavorId, dict[ProjectId, list[Held]]] = {}
        self._on_node: dict[NodeId, list[Held]] = {}
        granted = {queue.project: queue.min_run_time_s for queue in queues}
        evictable = (
            Held(h, parts=parts, at=at)
            for h in holding
            if h.preemptible
            and not h.releasing
            and not is_protected(holding=h, min_run_time_s=granted.get(h.project, 0), at=at)
        )
        self._all = {held.holding.id: held for held in sorted(evictable, key=_ORDER)}
        for held in self._all.values():
            self._of_project.setdefault(held.holding.project, []).append(held)
            for flavor in held.amounts:
                of_flavor = self._of_flavor.setdefault(flavor, {})
                of_flavor.setdefault(held.holding.project, []).append(held)
            for node in held.on:
                self._on_node.setdefault(node, []).append(held)

    def __contains__(self, workload: WorkloadId) -> bool:
        """Whether it may be evicted, for some workload or other."""
        return workload in self._all

    @property
    def none(self) -> bool:
        """Whether nothing at all may be evicted."""
        return not self._all

    def forget(self, held: Held) -> None:
        """It is being evicted: not there for anyone else."""
        self._gone.add(held.holding.id)

    def own(self, *, pending: PendingView) -> Iterator[Held]:
        """The project's own work of lower priority."""
        for held in self._of_project.get(pending.project, ()):
            if held.holding.priority >= pending.priority:
                return
            if held.holding.id not in self._gone:
                yield held

    def exist(self, *, pending: PendingView, option: Option, book: Book, guarantor: int) -> bool:
        """Whether anyone may be evicted, by the rules alone."""
        if next(self.own(pending=pending), None) is not None:
            return True
        to = pending.project
        return any(
            next(self.borrowers(to=to, flavor=flavor, book=book, guarantor=guarantor), None)
            for flavor, asked in option.needs
            if asked
        )

    def borrowers(
        self, *, to: ProjectId, flavor: FlavorId, book: Book, guarantor: int
    ) -> Iterator[tuple[ProjectId, int, tuple[int, ...]]]:
        """Projects with work to evict that give the flavor back `to` one with that guarantor, each
        with the nearest member above both and those that have to stay at capacity."""
        if guarantor == FLEET:
            return
        ledger = book.ledger(flavor)
        for project in self._of_flavor.get(flavor, ()):
            number = book.cohorts.number.get(project)
            if project == to or (number is not None and ledger.over(number) <= 0):
                continue
            above, members = gives(book.cohorts, project=project, to=to)
            if above < guarantor and all(ledger.over(member) > 0 for member in members):
                yield project, above, members

    def all(self) -> Iterator[Held]:
        return self._left(self._all.values())

    def on_node(self, node: NodeId) -> Iterator[Held]:
        return self._left(self._on_node.get(node, ()))

    def with_flavor(self, flavor: FlavorId, projects: Iterable[ProjectId]) -> Iterator[Held]:
        """That of those projects."""
        of = self._of_flavor.get(flavor, {})
        return self._left(merge(*(of[p] for p in projects if p in of), key=_ORDER))

    def _left(self, found: Iterable[Held]) -> Iterator[Held]:
        return (held for held in found if held.holding.id not in self._gone)


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
    ) -> None:
        """Of a workload without a guarantor, FLEET, nobody is reclaimed from. `book` is the usage
        now."""
        self._candidates = candidates
        self._pending = pending
        self._book, self._now = soon.book, book
        self._needs = option.needs
        self._asked = [flavor for flavor, asked in option.needs if asked]
        self._borrowers: dict[FlavorId, set[ProjectId]] = {}
        self._above: dict[ProjectId, int] = {}
        self._members: dict[ProjectId, tuple[int, ...]] = {}
        for flavor in self._asked if guarantor != FLEET else ():
            found = self._borrowers[flavor] = set[ProjectId]()
            for project, above, members in candidates.borrowers(
                to=pending.project, flavor=flavor, book=soon.book, guarantor=guarantor
            ):
                found.add(project)
                self._above[project], self._members[project] = above, members

    def above(self, victim: Victim) -> int:
        """Of one who is reclaimed from: the nearest member above it and the workload."""
        return self._above[victim.held.holding.project]

    def in_cluster(self, cluster: ClusterId) -> Iterator[Victim]:
        """All of them that hold something there, least harm first."""
        by_flavor = [self._candidates.with_flavor(*each) for each in self._borrowers.items()]
        before: Held | None = None
        for held in merge(*by_flavor, key=_ORDER):
            if held is not before and held.holding.cluster == cluster:
                yield Victim(held, PreemptRule.RECLAIM)
            before = held
        for held in self._candidates.own(pending=self._pending):
            if held.holding.cluster == cluster:
                yield Victim(held, PreemptRule.PRIORITY)

    def on_node(self, node: NodeId) -> Iterator[Victim]:
        """Borrowers before own work, else least harm first."""
        own = []
        for held in self._candidates.on_node(node):
            if self._borrows(held):
                yield Victim(held, PreemptRule.RECLAIM)
            elif self._is_own(held):
                own.append(held)
        for held in own:
            yield Victim(held, PreemptRule.PRIORITY)

    def with_flavor(self, flavor: FlavorId) -> Iterator[Victim]:
        """As `on_node`."""
        for held in self._candidates.with_flavor(flavor, self._members):
            yield Victim(held, PreemptRule.RECLAIM)
        for held in self._candidates.own(pending=self._pending):
            if flavor in held.amounts:
                yield Victim(held, PreemptRule.PRIORITY)

    def _is_own(self, held: Held) -> bool:
        of, pending = held.holding, self._pending
        return of.project == pending.project and of.priority < pending.priority

    def _borrows(self, held: Held) -> bool:
        project = held.holding.project
        for flavor, projects in self._borrowers.items():
            if project in projects and flavor in held.amounts:
                return True
        return False

    def is_guaranteed(
        self, flavors: Iterable[FlavorId], *, taken: Iterable[Victim], below: int
    ) -> bool:
        """Whether it is guaranteed these by somebody below that member: once it is charged in
        `soon`, and as things are now, with but its own work of those `taken` gone. Who is evicted
        for another may be back before it, and have the guarantee that was free in between."""
        own = Counter[FlavorId]()
        for victim in taken:
            if victim.rule is PreemptRule.PRIORITY:
                own.update(victim.held.amounts)
        flavors, project = set(flavors), self._pending.project
        asked = [(flavor, amount) for flavor, amount in self._needs if flavor in flavors]
        charged = [(flavor, 0) for flavor, _ in asked]
        return FLEET not in (
            guarantor(self._book, project=project, needs=charged, below=below),
            guarantor(self._now, project=project, needs=asked, gives_way=own, below=below),
        )

    def may_go(self, victim: Victim, before: Iterable[Victim]) -> bool:
        """Whether all who give it stay at capacity without it and those evicted `before`: in each
        flavor asked for, or else in its model, if that is asked for too."""
        if victim.rule is PreemptRule.PRIORITY:
            return True
        project, seen, before = victim.held.holding.project, set[FlavorId](), tuple(before)
        for flavor in self._asked:
            if flavor in seen or not victim.held.amounts.get(flavor):
                continue
            part = self._book.parts.of(project=project, flavor=flavor)
            either = [flavor]
            if part is not None and part.whole in self._asked:
                either.append(part.whole)
            seen.update(either)
            if not any(self._spares(victim, before, flavor) for flavor in either):
                return False
        return True

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
