"""All that may be evicted, and all pods that may go by themselves: by project, flavor and node.

They are kept from one plan to the next and changed by what has changed. How harmful each is
depends on the time too, so an order is made where somebody asks for it.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from heapq import merge
from itertools import chain
from operator import attrgetter

from scheduler.core.held.elastic import surplus
from scheduler.core.held.least_lost import LeastLost
from scheduler.core.held.victims import Held, UnitId, in_sum, is_protected
from scheduler.core.quota.cohorts import FLEET
from scheduler.core.quota.equivalents import Parts
from scheduler.core.quota.ledger import Ledger
from scheduler.core.quota.quota import Book
from scheduler.core.request import Option
from scheduler.core.snapshot import HoldingView, PendingView, Snapshot
from scheduler.core.units import ClusterId, FlavorId, NodeId, ProjectId, WorkloadId

ORDER = attrgetter("order")

type _Givers = dict[int, list[tuple[ProjectId, tuple[int, ...]]]]
"""By a member of the tree: projects below it that are over capacity, as all are in between; each
with the numbers of those, from the highest down to its own."""


class _Line:
    """Some of them by id, put in order when that is asked for."""

    __slots__ = ("_at", "_in_order", "held")

    def __init__(self) -> None:
        self.held: dict[UnitId, Held] = {}
        self._in_order: list[Held] = []
        self._at: int | None = None

    def add(self, held: Held) -> None:
        self.held[held.id] = held
        self._at = None

    def drop(self, held: Held) -> None:
        del self.held[held.id]
        self._at = None

    def in_order(self, at: int) -> list[Held]:
        """Least harm first as it is at that moment."""
        if self._at != at:
            self._at, self._in_order = at, list(self.held.values())
            for held in self._in_order:
                held.settle(at)
            self._in_order.sort(key=ORDER)
        return self._in_order


class Candidates:
    """Those of one snapshot, then of the next (`follow`), less what has been taken in this plan;
    least harm first.

    What may have changed though its object has not is looked at anew with each snapshot: work that
    has not run for its least time yet, and work of which single pods may have been taken.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._rules = snapshot.flavors, snapshot.queues
        self._parts = Parts(flavors=snapshot.flavors, queues=snapshot.queues)
        self._granted = {queue.project: queue.min_run_time_s for queue in snapshot.queues}
        self._at = snapshot.at
        self._gone: set[UnitId] = set()
        self._without_queue: set[ProjectId] = set()
        self._anew: dict[WorkloadId, HoldingView] = {}
        self._others: dict[WorkloadId, HoldingView] = {}
        self._units: dict[WorkloadId, list[Held]] = {}
        self._all = _Line()
        self._least_lost: LeastLost | None = None
        self._of_project: dict[ProjectId, _Line] = {}
        self._of_flavor: dict[FlavorId, dict[ProjectId, _Line]] = {}
        self._on_node: dict[NodeId, _Line] = {}
        self._own: dict[ProjectId, dict[int, tuple[Held, ...]]] = {}
        self._own_amounts: dict[ProjectId, dict[int, Mapping[FlavorId, int]]] = {}
        self._givers: dict[Ledger, tuple[AbstractSet[int], _Givers]] = {}
        for each in snapshot.holding:
            self._add(each)

    def may_follow(self, snapshot: Snapshot) -> bool:
        """Whether its rules are the same, and it is no earlier: who has run for its least time
        stays a candidate."""
        return self._rules == (snapshot.flavors, snapshot.queues) and self._at <= snapshot.at

    def follow(self, *, gone: Iterable[HoldingView], come: Iterable[HoldingView], at: int) -> None:
        """Be those of the next snapshot: these objects are not in it any more, and these are new.
        Nobody has been taken yet."""
        self._at, self._gone, self._givers = at, set(), {}
        self._own, self._own_amounts = {}, {}
        anew, self._anew = self._anew, {}
        for each in gone:
            self._remove(each.id)
            anew.pop(each.id, None)
        for each in anew.values():
            self._remove(each.id)
        for each in (*anew.values(), *come):
            self._add(each)

    def _add(self, each: HoldingView) -> None:
        units: list[Held] = []
        whole: Held | None = None
        if each.preemptible and not each.releasing:
            min_run_time_s = self._granted.get(each.project, 0)
            if is_protected(holding=each, min_run_time_s=min_run_time_s, at=self._at):
                self._anew[each.id] = each
            else:
                whole = Held(each, parts=self._parts)
                units.append(whole)
        for pod in surplus(each):
            self._anew[each.id] = each
            units.append(Held(each, parts=self._parts, pod=pod, whole=whole))
        if whole is None:
            self._others[each.id] = each
        if units:
            self._units[each.id] = units
        for held in units:
            self._all.add(held)
            if self._least_lost is not None:
                self._least_lost.add(held)
            project = held.holding.project
            if project not in self._granted:
                self._without_queue.add(project)
            _line(self._of_project, project).add(held)
            for flavor in held.amounts:
                _line(self._of_flavor.setdefault(flavor, {}), project).add(held)
            for node in held.on:
                _line(self._on_node, node).add(held)

    def _remove(self, id: WorkloadId) -> None:
        self._others.pop(id, None)
        for held in self._units.pop(id, ()):
            self._all.drop(held)
            if self._least_lost is not None:
                self._least_lost.drop(held)
            project = held.holding.project
            _drop(self._of_project, project, held)
            for flavor in held.amounts:
                _drop(self._of_flavor[flavor], project, held)
            for node in held.on:
                _drop(self._on_node, node, held)

    def __contains__(self, unit: UnitId) -> bool:
        """Whether it may be evicted, or go by itself, for some workload or other."""
        return unit in self._all.held

    @property
    def others(self) -> Collection[HoldingView]:
        """Those that may not be evicted as a whole."""
        return self._others.values()

    @property
    def none(self) -> bool:
        """Whether nothing at all may be evicted."""
        return not self._all.held

    def forget(self, held: Held) -> None:
        """It is being evicted: not there for anyone else."""
        self._gone.add(held.id)
        self._own.pop(held.holding.project, None)
        self._own_amounts.pop(held.holding.project, None)

    def spare(self, workloads: Iterable[WorkloadId]) -> None:
        """Nobody evicts these in this plan, nor lets pods of them go."""
        for id in workloads:
            for held in self._units.get(id, ()):
                self.forget(held)

    def own(self, *, pending: PendingView) -> Sequence[Held]:
        """The project's own work of lower priority."""
        known, priority = self._own.setdefault(pending.project, {}), pending.priority
        if priority not in known:
            listed = self._in_order(self._of_project.get(pending.project))
            known[priority] = tuple(self._lower(listed, pending))
        return known[priority]

    def any_own(self, *, pending: PendingView) -> Iterator[Held]:
        """As `own`, in any order: for who does not ask how harmful they are."""
        line = self._of_project.get(pending.project)
        return self._lower(line.held.values() if line is not None else (), pending)

    def _lower(self, some: Iterable[Held], pending: PendingView) -> Iterator[Held]:
        return (held for held in self._left(some) if held.holding.priority < pending.priority)

    def own_amounts(self, *, pending: PendingView) -> Mapping[FlavorId, int]:
        """What that gives back, thousandths by flavor. Asked while nobody is gone for a trial."""
        known, priority = self._own_amounts.setdefault(pending.project, {}), pending.priority
        if priority not in known:
            known[priority] = in_sum(self.any_own(pending=pending))
        return known[priority]

    def exist(self, *, pending: PendingView, option: Option, book: Book, guarantor: int) -> bool:
        """Whether anyone may be evicted, by the rules alone."""
        if next(self.any_own(pending=pending), None):
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
        path = book.cohorts.paths[book.cohorts.number.get(to, FLEET)]
        givers = self._givers_of(flavor, book) if guarantor != FLEET else {}
        for above, below in zip((FLEET, *path), path, strict=False):
            if above >= guarantor:
                return
            for project, members in givers.get(above, ()):
                if below not in members[:1]:
                    yield project, above, members

    def _givers_of(self, flavor: FlavorId, book: Book) -> _Givers:
        """Who may give the flavor back to whom. Found once for all who ask while the same members
        are over capacity."""
        ledger, held = book.ledger(flavor), self._of_flavor.get(flavor, {})
        beyond, kept = ledger.beyond, self._givers.get(ledger)
        if kept is not None and kept[0] == beyond:
            return kept[1]
        found: _Givers = {FLEET: [(of, ()) for of in self._without_queue if of in held]}
        for number in sorted(beyond):
            project = book.cohorts.projects.get(number)
            if project not in held:
                continue
            path = book.cohorts.paths[number]
            for nth in range(len(path) - 1, -1, -1):
                if path[nth] not in beyond:
                    break
                found.setdefault(path[nth - 1] if nth else FLEET, []).append((project, path[nth:]))
        self._givers[ledger] = frozenset(beyond), found
        return found

    def all(self) -> Iterator[Held]:
        return self._left(self._in_order(self._all))

    def least_lost(self, *, cluster: ClusterId, model: str) -> Iterator[Held]:
        """Those who go as a whole and hold devices of the model there, or anything for none: the
        least loss first, whatever their priority."""
        if self._least_lost is None:
            self._least_lost = LeastLost(flavors=self._rules[0])
            for held in self._all.held.values():
                self._least_lost.add(held)
        for held in self._left(self._least_lost.of(cluster=cluster, model=model, at=self._at)):
            held.settle(self._at)
            yield held

    def on_node(self, node: NodeId) -> Iterator[Held]:
        return self._left(self._in_order(self._on_node.get(node)))

    def any_with_flavor(self, flavor: FlavorId, projects: Iterable[ProjectId]) -> Iterator[Held]:
        """As `with_flavor`, in any order."""
        of = self._of_flavor.get(flavor, {})
        lines = (of[project].held.values() for project in projects if project in of)
        return self._left(chain.from_iterable(lines))

    def with_flavor(self, flavor: FlavorId, projects: Iterable[ProjectId]) -> Iterator[Held]:
        """That of those projects."""
        of = self._of_flavor.get(flavor, {})
        lines = [self._in_order(of.get(project)) for project in projects]
        return self._left(merge(*lines, key=ORDER))

    def _in_order(self, line: _Line | None) -> Sequence[Held]:
        return () if line is None else line.in_order(self._at)

    def _left(self, found: Iterable[Held]) -> Iterator[Held]:
        return (held for held in found if not held.is_in(self._gone))


def _line[K](lines: dict[K, _Line], key: K) -> _Line:
    line = lines.get(key)
    if line is None:
        line = lines[key] = _Line()
    return line


def _drop[K](lines: dict[K, _Line], key: K, held: Held) -> None:
    lines[key].drop(held)
    if not lines[key].held:
        del lines[key]
