"""Who may be evicted for whom, and how much harm that does.

PRIORITY: preemptible work of lower priority in the same project. RECLAIM: preemptible work of
another project that is over its nominal quota in a flavor that the workload asks for. Neither
takes work that has not yet run for the least time its project grants it.

Harm, least first: borrowers before the project's own work, lower priority, less work lost since
the last checkpoint, fewer pods. A gang goes as a whole, so on each node all of it counts.
"""

from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from operator import attrgetter
from typing import NamedTuple

from scheduler.core.draft import Draft
from scheduler.core.quota import Book
from scheduler.core.reasons import PreemptRule
from scheduler.core.request import Option
from scheduler.core.snapshot import HeldView, HoldingView, PendingView, QueueView
from scheduler.core.units import ClusterId, FlavorId, NodeId, ProjectId, WorkloadId

Cost = tuple[bool, int, int, int]
"""Whether it is own work, its priority, its loss in thousandths of devices x seconds, its pods."""


class Held:
    """Work that may be evicted. `amounts` is what it gives back, thousandths by flavor; `order`
    has the least harm first, whosever work it is."""

    __slots__ = ("amounts", "holding", "on", "order")

    def __init__(self, holding: HoldingView, *, at: int) -> None:
        self.holding = holding
        placements = holding.placements
        lost = lost_milli_s(holding=holding, at=at)
        self.order = holding.priority, lost, len(placements), holding.id
        self.amounts: dict[FlavorId, int] = {}
        self.on: dict[NodeId, tuple[HeldView, ...]] = {}
        for placement in placements:
            flavor, node = placement.flavor, placement.node
            self.amounts[flavor] = self.amounts.get(flavor, 0) + placement.amount_milli
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
        return self.rule is PreemptRule.PRIORITY, priority, lost_milli_s, pods


def cost_of(victims: Sequence[Victim]) -> Cost:
    """Of some victims, one at least: the worst of their kinds, and what they lose in sum."""
    costs = [victim.cost for victim in victims]
    own, priority = max(cost[0] for cost in costs), max(cost[1] for cost in costs)
    return own, priority, sum(cost[2] for cost in costs), sum(cost[3] for cost in costs)


def lost_milli_s(*, holding: HoldingView, at: int) -> int:
    """The work lost by eviction: thousandths of devices (of cores without any) x seconds run since
    the last checkpoint."""
    held = sum([p.amount_milli for p in holding.placements if p.spans])
    held = held or sum([p.amount_milli for p in holding.placements])
    since = at if holding.started_at is None else holding.started_at
    if holding.checkpointed_at is not None:
        since = max(since, holding.checkpointed_at)
    return held * max(0, at - since)


def is_protected(*, holding: HoldingView, min_run_time_s: int, at: int) -> bool:
    """Whether it has not run as long as it is granted. Work that has not begun counts from its
    admission, or what never begins would be protected for ever."""
    since = holding.admitted_at if holding.started_at is None else holding.started_at
    return max(0, at - since) < min_run_time_s  # rounded seconds: it may begin after `at`


def over_milli(*, book: Book, project: ProjectId, flavor: FlavorId) -> int:
    """Use beyond the project's nominal quota; negative below it."""
    used = book.used(project=project, flavor=flavor)
    return used - book.nominal(project=project, flavor=flavor)


class Candidates:
    """All work that may be evicted, less what has been in this plan; least harm first."""

    def __init__(
        self, *, holding: Iterable[HoldingView], queues: Iterable[QueueView], at: int
    ) -> None:
        self._gone: set[WorkloadId] = set()
        self._of_project: dict[ProjectId, list[Held]] = {}
        self._of_flavor: dict[FlavorId, list[Held]] = {}
        self._holders: dict[FlavorId, set[ProjectId]] = {}
        self._on_node: dict[NodeId, list[Held]] = {}
        granted = {queue.project: queue.min_run_time_s for queue in queues}
        evictable = (
            Held(h, at=at)
            for h in holding
            if h.preemptible
            and not h.releasing
            and not is_protected(holding=h, min_run_time_s=granted.get(h.project, 0), at=at)
        )
        self._all = {held.holding.id: held for held in sorted(evictable, key=_ORDER)}
        for held in self._all.values():
            self._of_project.setdefault(held.holding.project, []).append(held)
            for flavor in held.amounts:
                self._of_flavor.setdefault(flavor, []).append(held)
                self._holders.setdefault(flavor, set()).add(held.holding.project)
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

    def exist(self, *, pending: PendingView, option: Option, book: Book, reclaiming: bool) -> bool:
        """Whether anyone may be evicted, by the rules alone."""
        if next(self.own(pending=pending), None) is not None:
            return True
        return reclaiming and any(
            next(self.borrowers(pending=pending, flavor=flavor, book=book), None) is not None
            for flavor, asked in option.needs
            if asked
        )

    def borrowers(
        self, *, pending: PendingView, flavor: FlavorId, book: Book
    ) -> Iterator[ProjectId]:
        """Other projects with work to evict that are over nominal in the flavor."""
        for project in self._holders.get(flavor, ()):
            over = over_milli(book=book, project=project, flavor=flavor)
            if over > 0 and project != pending.project:
                yield project

    def on_node(self, node: NodeId) -> Iterator[Held]:
        return self._left(self._on_node.get(node, ()))

    def with_flavor(self, flavor: FlavorId) -> Iterator[Held]:
        return self._left(self._of_flavor.get(flavor, ()))

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
        reclaiming: bool,
    ) -> None:
        self._candidates = candidates
        self._pending = pending
        self._book = soon.book
        self._asked = [flavor for flavor, asked in option.needs if asked]
        self._borrowers = {
            flavor: set(candidates.borrowers(pending=pending, flavor=flavor, book=soon.book))
            for flavor in (self._asked if reclaiming else ())
        }

    def in_cluster(self, cluster: ClusterId) -> Iterator[Victim]:
        """All of them that hold something there, least harm first."""
        by_flavor = [self._candidates.with_flavor(flavor) for flavor in self._borrowers]
        before: Held | None = None
        for held in merge(*by_flavor, key=_ORDER):
            if held is not before and held.holding.cluster == cluster and self._borrows(held):
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
        if self._borrowers:
            for held in self._candidates.with_flavor(flavor):
                if self._borrows(held):
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

    def may_go(self, victim: Victim, before: Iterable[Victim]) -> bool:
        """Whether its project stays at nominal without it and those evicted `before`."""
        if victim.rule is PreemptRule.PRIORITY:
            return True
        project = victim.held.holding.project
        for flavor in self._asked:
            gone = victim.held.amounts.get(flavor, 0)
            if gone:
                for other in before:
                    if other.held.holding.project == project:
                        gone += other.held.amounts.get(flavor, 0)
                if gone > over_milli(book=self._book, project=project, flavor=flavor):
                    return False
        return True
