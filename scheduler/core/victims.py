"""Who may be evicted for whom, and how much harm that does.

PRIORITY: preemptible work of lower priority in the same project. RECLAIM: preemptible work of
PRIORITY: preemptible work of lower priority in the same project. RECLAIM: preemptible work of
another project, over what is guaranteed to it and to those above it, in a flavor that the workload
asks for (`guarantees`). Neither takes work that has not yet run for the least time its project
grants it. Pods beyond the least of their set go by themselves, by the same rules, whether or not
their workload may be evicted.

Harm, least first: such pods before whole workloads, borrowers before the project's own work, lower
priority, less work lost since the last checkpoint, fewer pods. Of a gang that goes as a whole all
counts, on each node.
"""

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from heapq import merge
from operator import attrgetter
from typing import NamedTuple

from scheduler.core import losses
from scheduler.core.cohorts import FLEET
from scheduler.core.draft import Draft
from scheduler.core.elastic import keeping, staying, surplus
from scheduler.core.equivalents import Parts
from scheduler.core.guarantees import gives, guarantor
from scheduler.core.quota import Book
from scheduler.core.reasons import PreemptRule
from scheduler.core.request import Option
from scheduler.core.snapshot import HeldView, HoldingView, PendingView, QueueView
from scheduler.core.units import ClusterId, FlavorId, NodeId, PlacementId, ProjectId, WorkloadId

Cost = tuple[int, int, int, int]
"""Its kind (0: pods of a borrower, 1: own pods, 2: a borrower, 3: own work), its priority, its
loss in thousandths of devices x seconds, its pods."""

UnitId = tuple[WorkloadId, PlacementId]
"""Of what goes as one: a pod by itself, or a workload, for which the second is ALL."""
ALL = PlacementId("")


class Held:
    """Work that may be evicted, or one pod of it that may go. `amounts` is what it gives back,
    thousandths by flavor, models too; `order` has the least harm first, whosever work it is.

    A pod is in `whole`, where that may go too, until it has been taken from it (`lose`).
    """

    __slots__ = ("amounts", "holding", "id", "is_whole", "on", "order", "placements", "whole")

    def __init__(
        self,
        holding: HoldingView,
        *,
        parts: Parts,
        at: int,
        pod: HeldView | None = None,
        whole: "Held | None" = None,
    ) -> None:
        self.holding = holding
        self.is_whole = pod is None
        self.whole = whole
        self.id: UnitId = holding.id, ALL if pod is None else pod.id
        self.placements = placements = staying(holding) if pod is None else (pod,)
        lost = lost_milli_s(holding=holding, placements=placements, at=at)
        rank = 0 if pod is None else pod.rank
        self.order = self.is_whole, holding.priority, lost, len(placements), -rank, self.id
        self.amounts = parts.sums(holding=keeping(holding, placements))
        self.on: dict[NodeId, tuple[HeldView, ...]] = {}
        for placement in placements:
            node = placement.node
            self.on[node] = (*self.on[node], placement) if node in self.on else (placement,)

    def is_in(self, gone: Container[UnitId]) -> bool:
        """Whether it is among those gone, by itself or with its workload."""
        return self.id in gone or (self.whole is not None and self.whole.id in gone)

    def lose(self, pod: "Held") -> None:
        """The pod has gone by itself."""
        self.placements = tuple(p for p in self.placements if p not in pod.placements)
        for node, gone in pod.on.items():
            self.on[node] = tuple(p for p in self.on[node] if p not in gone)
        for flavor, amount in pod.amounts.items():
            self.amounts[flavor] -= amount

    def regain(self, pod: "Held") -> None:
        """Undo `lose`."""
        self.placements = (*self.placements, *pod.placements)
        for node, back in pod.on.items():
            self.on[node] = (*self.on[node], *back)
        for flavor, amount in pod.amounts.items():
            self.amounts[flavor] += amount


_ORDER = attrgetter("order")


class Victim(NamedTuple):
    """Someone who may be evicted for a workload, or a pod that may go for it, by a rule."""

    held: Held
    rule: PreemptRule

    @property
    def id(self) -> UnitId:
        return self.held.id

    @property
    def kind(self) -> int:
        return 2 * self.held.is_whole + (self.rule is PreemptRule.PRIORITY)

    @property
    def cost(self) -> Cost:
        _, priority, lost_milli_s, pods, *_ = self.held.order
        if self.rule is PreemptRule.CONSOLIDATE:
            priority = 0  # it goes on elsewhere, whatever comes before it
        return self.kind, priority, lost_milli_s, pods


_KIND, _COST = attrgetter("kind"), attrgetter("cost")


def cost_of(victims: Sequence[Victim]) -> Cost:
    """Of some victims, one at least: the worst of their kinds, and what they lose in sum."""
    costs = [victim.cost for victim in victims]
    kind, priority = max(cost[0] for cost in costs), max(cost[1] for cost in costs)
    return kind, priority, loss_milli_s(victims), sum(cost[3] for cost in costs)


def loss_milli_s(victims: Iterable[Victim]) -> int:
    """What they lose in sum, as each one's cost says."""
    return sum(victim.cost[2] for victim in victims)


def lost_milli_s(*, holding: HoldingView, placements: Sequence[HeldView], at: int) -> int:
    """The work lost with these of its placements, of devices, of cores where they have none
    (`losses`)."""
    held = sum([p.amount_milli for p in placements if p.spans])
    held = held or sum([p.amount_milli for p in placements])
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
    """All work that may be evicted and all pods that may go by themselves, less what has been
    taken in this plan; least harm first."""

    def __init__(
        self,
        *,
        holding: Iterable[HoldingView],
        queues: Iterable[QueueView],
        parts: Parts,
        at: int,
    ) -> None:
        self._gone: set[UnitId] = set()
        self._of_project: dict[ProjectId, list[Held]] = {}
        self._of_flavor: dict[FlavorId, dict[ProjectId, list[Held]]] = {}
        self._on_node: dict[NodeId, list[Held]] = {}
        granted = {queue.project: queue.min_run_time_s for queue in queues}
        self._all: dict[UnitId, Held] = {}
        for each in holding:
            whole: Held | None = None
            min_run_time_s = granted.get(each.project, 0)
            if (
                each.preemptible
                and not each.releasing
                and not is_protected(holding=each, min_run_time_s=min_run_time_s, at=at)
            ):
                whole = self._all[each.id, ALL] = Held(each, parts=parts, at=at)
            for pod in surplus(each):
                self._all[each.id, pod.id] = Held(each, parts=parts, at=at, pod=pod, whole=whole)
        self._all = {held.id: held for held in sorted(self._all.values(), key=_ORDER)}
        for held in self._all.values():
            self._of_project.setdefault(held.holding.project, []).append(held)
            for flavor in held.amounts:
                of_flavor = self._of_flavor.setdefault(flavor, {})
                of_flavor.setdefault(held.holding.project, []).append(held)
            for node in held.on:
                self._on_node.setdefault(node, []).append(held)

    def __contains__(self, unit: UnitId) -> bool:
        """Whether it may be evicted, or go by itself, for some workload or other."""
        return unit in self._all

    @property
    def none(self) -> bool:
        """Whether nothing at all may be evicted."""
        return not self._all

    def forget(self, held: Held) -> None:
        """It is being evicted: not there for anyone else."""
        self._gone.add(held.id)

    def own(self, *, pending: PendingView) -> Iterator[Held]:
        """The project's own work of lower priority."""
        for held in self._of_project.get(pending.project, ()):
            if held.holding.priority >= pending.priority:
                if held.is_whole:
                    return
                continue
            if not held.is_in(self._gone):
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
        return (held for held in found if not held.is_in(self._gone))


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
        own = (
            Victim(held, PreemptRule.PRIORITY)
            for held in self._candidates.own(pending=self._pending)
            if held.holding.cluster == cluster
        )
        return merge(self._borrowers_in(cluster), own, key=_COST)

    def _borrowers_in(self, cluster: ClusterId) -> Iterator[Victim]:
        by_flavor = [self._candidates.with_flavor(*each) for each in self._borrowers.items()]
        before: Held | None = None
        for held in merge(*by_flavor, key=_ORDER):
            if held is not before and held.holding.cluster == cluster:
                yield Victim(held, PreemptRule.RECLAIM)
            before = held

    def on_node(self, node: NodeId) -> list[Victim]:
        """Those that hold something there, least harm first."""
        found = []
        for held in self._candidates.on_node(node):
            if self._borrows(held):
                found.append(Victim(held, PreemptRule.RECLAIM))
            elif self._is_own(held):
                found.append(Victim(held, PreemptRule.PRIORITY))
        found.sort(key=_KIND)
        return found

    def with_flavor(self, flavor: FlavorId) -> Iterator[Victim]:
        """Those that hold some of it, least harm first."""
        borrowing = (
            Victim(held, PreemptRule.RECLAIM)
            for held in self._candidates.with_flavor(flavor, self._members)
        )
        own = (
            Victim(held, PreemptRule.PRIORITY)
            for held in self._candidates.own(pending=self._pending)
            if flavor in held.amounts
        )
        return merge(borrowing, own, key=_COST)

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
