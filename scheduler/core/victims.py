"""Who may be evicted for whom, and how much harm that does.

PRIORITY: preemptible work of lower priority in the same project. RECLAIM: preemptible work of
another project that is over its nominal quota in a flavor that the workload asks for.

Harm, least first: borrowers before the project's own work, lower priority, less device-time lost.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from scheduler.core.draft import Draft
from scheduler.core.quota import Book
from scheduler.core.reasons import PreemptRule
from scheduler.core.request import Option
from scheduler.core.snapshot import HeldView, HoldingView, PendingView
from scheduler.core.units import ClusterId, FlavorId, NodeId, ProjectId, WorkloadId

Harm = tuple[bool, int, int, str]


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """Work that may be evicted. `amounts` is what it gives back, in thousandths per flavor."""

    holding: HoldingView
    lost_milli_s: int
    amounts: Mapping[FlavorId, int]
    on: Mapping[NodeId, tuple[HeldView, ...]]


@dataclass(frozen=True, slots=True)
class Victim:
    """Someone who may be evicted for a workload, by a rule."""

    held: Held
    rule: PreemptRule

    @property
    def id(self) -> WorkloadId:
        return self.held.holding.id

    @property
    def harm(self) -> Harm:
        of = self.held.holding
        own = self.rule is PreemptRule.PRIORITY
        return own, of.priority, self.held.lost_milli_s, of.id


def lost_milli_s(*, holding: HoldingView, at: int) -> int:
    """The work lost by eviction: thousandths of devices x seconds run (of cores without any)."""
    held = [p.amount_milli for p in holding.placements if p.spans]
    held = held or [p.amount_milli for p in holding.placements]
    since = at if holding.started_at is None else holding.started_at
    return sum(held) * max(0, at - since)


def over_milli(*, book: Book, project: ProjectId, flavor: FlavorId) -> int:
    """Use beyond the project's nominal quota; negative below it."""
    used = book.used(project=project, flavor=flavor)
    return used - book.nominal(project=project, flavor=flavor)


class Candidates:
    """All work that may be evicted, less what has been in this plan; least harm first."""

    def __init__(self, *, holding: Iterable[HoldingView], at: int) -> None:
        self._gone: set[WorkloadId] = set()
        self._of_project: dict[ProjectId, list[Held]] = {}
        self._of_flavor: dict[FlavorId, list[Held]] = {}
        self._holders: dict[FlavorId, set[ProjectId]] = {}
        self._on_node: dict[ClusterId, dict[NodeId, list[Held]]] = {}
        evictable = [h for h in holding if h.preemptible and not h.releasing]
        for held in sorted((_held(h, at) for h in evictable), key=_harm_by_itself):
            self._of_project.setdefault(held.holding.project, []).append(held)
            for flavor in held.amounts:
                self._of_flavor.setdefault(flavor, []).append(held)
                self._holders.setdefault(flavor, set()).add(held.holding.project)
            nodes = self._on_node.setdefault(held.holding.cluster, {})
            for node in held.on:
                nodes.setdefault(node, []).append(held)

    @property
    def none(self) -> bool:
        """Whether nothing at all may be evicted."""
        return not self._of_project

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

    def nodes(self, cluster: ClusterId) -> Iterable[NodeId]:
        """Nodes of the cluster where something may be evicted."""
        return self._on_node.get(cluster, {})

    def on_node(self, cluster: ClusterId, node: NodeId) -> list[Held]:
        held_here = self._on_node.get(cluster, {}).get(node, ())
        return [held for held in held_here if held.holding.id not in self._gone]

    def with_flavor(self, flavor: FlavorId) -> list[Held]:
        holders = self._of_flavor.get(flavor, ())
        return [held for held in holders if held.holding.id not in self._gone]


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

    def nodes(self, cluster: ClusterId) -> Iterable[NodeId]:
        return self._candidates.nodes(cluster)

    def on_node(self, cluster: ClusterId, node: NodeId) -> Iterator[Victim]:
        return self._in_order(self._candidates.on_node(cluster, node))

    def with_flavor(self, flavor: FlavorId) -> Iterator[Victim]:
        return self._in_order(self._candidates.with_flavor(flavor))

    def _in_order(self, found: Sequence[Held]) -> Iterator[Victim]:
        """Borrowers before own work, otherwise in the order that they come in."""
        project, priority = self._pending.project, self._pending.priority
        if self._borrowers:
            for held in found:
                if self._borrows(held):
                    yield Victim(held, PreemptRule.RECLAIM)
        for held in found:
            if held.holding.project == project and held.holding.priority < priority:
                yield Victim(held, PreemptRule.PRIORITY)

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


def _held(holding: HoldingView, at: int) -> Held:
    amounts: dict[FlavorId, int] = {}
    on: dict[NodeId, tuple[HeldView, ...]] = {}
    for placement in holding.placements:
        amounts[placement.flavor] = amounts.get(placement.flavor, 0) + placement.amount_milli
        on[placement.node] = (*on.get(placement.node, ()), placement)
    return Held(holding, lost_milli_s(holding=holding, at=at), amounts, on)


def _harm_by_itself(held: Held) -> tuple[int, int, str]:
    return held.holding.priority, held.lost_milli_s, held.holding.id
