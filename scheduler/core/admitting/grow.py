"""Growth: work that runs with fewer pods than it asks for gets more, of what nobody waits for.

Asked once all that waits was decided, of what is then free: not of what is kept, reserved or
promised. One pod after another goes to who comes first: higher priority, then as in `share`, then
who runs the longest.

What grows now may not be taken back by the next plan. So nothing grows on a flavor that work of
its own project waits for, unless that is of lower priority; nor on what another project waits for
that could reclaim it (`guarantees`). While anything of it is on its way back a workload does not
grow. What may not be preempted grows within what is its own (`firm`).
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heapreplace

from scheduler.core.admitting.admission import Admission
from scheduler.core.bounds import firm
from scheduler.core.bounds.limits import IN_VAIN
from scheduler.core.fleet.domains import Domain
from scheduler.core.held.elastic import asks, gives_back, keeping, leaving, running
from scheduler.core.held.holders import Holders
from scheduler.core.placing.layouts import Layout
from scheduler.core.placing.place import place_more
from scheduler.core.plan import Grow, Place, Plan
from scheduler.core.quota.cohorts import FLEET
from scheduler.core.quota.guarantees import gives, guarantor
from scheduler.core.quota.quota import amount_milli
from scheduler.core.quota.share import Shares
from scheduler.core.request import Option, Request, Requests
from scheduler.core.snapshot import (
    FlavorView,
    HeldView,
    HoldingView,
    PendingView,
    PodSetView,
    SetTopologyView,
    Snapshot,
    TopologyView,
)
from scheduler.core.units import FlavorId, ProjectId, UserId, WorkloadId

type _Key = tuple[int, tuple[int, ...], int, WorkloadId]


@dataclass(slots=True)
class _Short:
    """Work that runs with fewer pods than it asks for: `lacks` has the number of the pod set of
    each that is missing, those to come first first. `within` is where its pods stand together, of
    the whole and of its pod sets."""

    held: HoldingView
    view: PendingView
    option: Option
    within: Layout
    lacks: list[int]


class Growth:
    """What grows in a plan that has decided on all that waits."""

    def __init__(
        self,
        *,
        snapshot: Snapshot,
        holders: Holders,
        admission: Admission,
        shares: Shares,
    ) -> None:
        self._snapshot = snapshot
        self._elastic = holders.elastic
        self._admission = admission
        self._shares = shares
        draft, by_limit = admission.draft, bool(admission.windows)
        self._requests = Requests(flavors=draft.flavors, book=draft.book, by_limit=by_limit)
        self._windows = admission.windows.copy()
        self._budgets = admission.caps.budgets.copy()
        self._grown: dict[tuple[ProjectId, UserId], Counter[FlavorId]] = defaultdict(Counter)
        self._full: set[tuple[object, ...]] = set()
        self._ahead: dict[tuple[ProjectId, FlavorId], int] = {}
        self._owed: dict[FlavorId, dict[ProjectId, int]] = {}

    def run(self, *, made: Plan, max_admits: int) -> tuple[Grow, ...]:
        """What grows beside what was `made`, a pod counting as an admission; who grows first
        comes first. The drafts are left as they were, to be asked of those that wait."""
        most = max_admits - len(made.admits)
        short = list(self._short(made)) if most > 0 else []
        if not short:
            return ()
        in_vain = {id for id, reason in made.reasons().items() if reason.code in IN_VAIN}
        decided = in_vain | {admit.workload for admit in made.admits}
        self._look_at(p for p in self._snapshot.pending if p.id not in decided)
        drafts = self._admission.drafts
        marks = [draft.checkpoint() for draft in drafts]
        heap = [(self._key(each), each) for each in short]
        heapify(heap)
        grown: dict[WorkloadId, list[Place]] = {}
        while heap and most:
            stored, first = heap[0]
            key = self._key(first)
            if key != stored:
                heapreplace(heap, (key, first))
            elif (place := self._one_more(first)) is None:
                heappop(heap)
            else:
                most -= 1
                places = grown.setdefault(first.view.id, [])
                places.append(replace(place, rank=len(places)))
        for draft, mark in zip(drafts, marks, strict=True):
            draft.rollback(mark)
        return tuple(Grow(id, tuple(places)) for id, places in grown.items())

    def _look_at(self, waiting: Iterable[PendingView]) -> None:
        """Note for which flavors projects wait: with what priority, and the deepest guarantor that
        any has, were all of its own work gone that may have to give way to it."""
        seen: set[tuple[ProjectId, int, Request]] = set()
        ways: dict[tuple[ProjectId, int], Counter[FlavorId]] = {}
        book = self._admission.draft.book
        for pending in waiting:
            project, priority = pending.project, pending.priority
            request = self._requests.of(pending)
            if (project, priority, request) in seen:
                continue
            seen.add((project, priority, request))
            if (project, priority) not in ways:
                ways[project, priority] = self._gives_way(project, priority)
            gives_way = ways[project, priority]
            for option in request.options:
                by = guarantor(book, project=project, needs=option.needs, gives_way=gives_way)
                for flavor, _ in option.needs:
                    known = self._ahead.get((project, flavor), priority)
                    self._ahead[project, flavor] = max(known, priority)
                    if by != FLEET:
                        owed = self._owed.setdefault(flavor, {})
                        owed[project] = max(by, owed.get(project, by))

    def _gives_way(self, project: ProjectId, priority: int) -> Counter[FlavorId]:
        amounts: Counter[FlavorId] = Counter()
        parts = self._admission.draft.book.parts
        for held in self._snapshot.holding:
            if held.project == project:
                gone = held.placements if held.priority < priority else leaving(held)
                amounts.update(parts.sums(holding=keeping(held, gone)))
        return amounts

    def _may_have(self, view: PendingView, flavor: FlavorView, amount: int) -> bool:
        """Whether the quota and the caps allow so much more, and nobody would take it back."""
        admission, project = self._admission, view.project
        book = admission.draft.book
        needs = book.parts.charges(project=project, flavor=flavor.id, amount_milli=amount)
        for each, more in needs:
            available = admission.available(project, each)
            if available is None or available < more:
                return False
            if self._ahead.get((project, each), view.priority - 1) >= view.priority:
                return False
            if self._is_owed(project, each, more):
                return False
        if not view.preemptible and any(
            firm.rooms(draft.book, project=project, needs=needs) is None
            for draft in admission.drafts
        ):
            return False
        grown = self._grown[project, view.user]
        amounts = (*grown.items(), (flavor.id, amount))
        return admission.caps.may_hold(workload=view, amounts=amounts)

    def _is_owed(self, project: ProjectId, flavor: FlavorId, more: int) -> bool:
        """Whether somebody waits who could take so much more back from the project."""
        book = self._admission.draft.book
        ledger = book.ledger(flavor)
        for to, by in self._owed.get(flavor, {}).items():
            above, members = gives(book.cohorts, project=project, to=to)
            if to != project and above < by:
                owed = all(ledger.over(member) + more > 0 for member in members)
                if owed:
                    return True
        return False

    def _short(self, made: Plan) -> Iterator[_Short]:
        """Work that may grow, in a project whose queue is open and a cluster that takes work, and
        that gives nothing up."""
        gone = {p.victim for p in made.preempts} | {s.victim for s in made.shrinks}
        opened = {queue.project for queue in self._snapshot.queues if not queue.held}
        clusters = set(self._admission.draft.clusters)
        for held in self._elastic:
            if (
                held.started_at is not None
                and held.project in opened
                and held.cluster in clusters
                and held.id not in gone
                and not gives_back(held)
            ):
                found = self._lacking(held)
                if found is not None and found.lacks:
                    yield found

    def _lacking(self, held: HoldingView) -> _Short | None:
        """None when a set of it has pods of no flavor, or of one that it does not accept."""
        view = asks(held)
        if held.started_at is not None and held.run_time_limit_s is not None:
            left_s = held.started_at + held.run_time_limit_s - self._snapshot.at
            view = replace(view, run_time_limit_s=max(1, left_s))
        request = self._requests.of(view)
        pods = [running(holding=held, pod_set=pod_set) for pod_set in held.pod_sets]
        flavors = [{pod.flavor for pod in of_set} for of_set in pods]
        for option in request.options:
            if flavors == [{flavor.id} for flavor in option.flavors]:
                lacks = [
                    nth
                    for nth in request.order
                    for _ in range(view.pod_sets[nth].count - len(pods[nth]))
                ]
                return _Short(held, option.asks(view), option, self._layout(held), lacks)
        return None

    def _layout(self, held: HoldingView) -> Layout:
        """The domains in which it stands, of the levels that it asks for."""
        sets = [
            self._domain(held, p.topology, [h for h in held.placements if h.pod_set == p.id])
            for p in held.pod_sets
        ]
        whole = self._domain(held, held.topology, held.placements)
        return Layout(whole, tuple(() if domain is None else (domain,) for domain in sets))

    def _domain(
        self,
        held: HoldingView,
        topology: TopologyView | SetTopologyView | None,
        placements: Sequence[HeldView],
    ) -> Domain | None:
        """The one of the level in which these stand; None for no such one."""
        if topology is None or not placements:
            return None
        draft = self._admission.draft
        first = min(placements, key=lambda placement: (placement.rank, placement.id))
        room = draft.rooms.get(first.node)
        if room is None:
            return None
        return draft.domains.at(cluster=held.cluster, level=topology.level, rank=room.rank)

    def _key(self, of: _Short) -> _Key:
        view = of.view
        share = self._shares.rank(project=view.project)
        return -view.priority, share, of.held.admitted_at, view.id

    def _one_more(self, of: _Short) -> Place | None:
        """A pod of the first of its sets that may grow; None when none may."""
        topology = of.view.topology
        if topology is not None and topology.required and of.within.whole is None:
            return None
        while of.lacks:
            nth = of.lacks[0]
            place = self._add(of, of.view.pod_sets[nth], of.option.flavors[nth], nth)
            if place is not None:
                of.lacks.pop(0)
                return place
            of.lacks = [other for other in of.lacks if other != nth]
        return None

    def _add(self, of: _Short, pod_set: PodSetView, flavor: FlavorView, nth: int) -> Place | None:
        draft, view = self._admission.draft, of.view
        size = pod_set.cpu_milli, pod_set.memory_mib, pod_set.gpu_count, pod_set.gpu_milli
        alike = (
            of.held.cluster,
            flavor.id,
            *size,
            view.topology,
            pod_set.topology,
            of.within.whole,
            of.within.of(nth),
        )
        amount = amount_milli(pod_set=pod_set)
        asked = pod_set.topology
        if asked is not None and asked.required and not of.within.of(nth):
            return None
        if alike in self._full or not self._may_have(view, flavor, amount):
            return None
        if not self._budgets.covers(workload=of.held, amounts=[(flavor.id, amount)]):
            return None
        mark, before = draft.checkpoint(), self._windows.lacking(draft=draft)
        place = place_more(
            draft=draft,
            pending=view,
            option=of.option,
            cluster=of.held.cluster,
            nth=nth,
            within=of.within,
        )
        if place is None:
            self._full.add(alike)
            return None
        windows, places = self._windows, (place,)
        if windows.reason(draft=draft, pending=view, places=places, before=before) is not None:
            draft.rollback(mark)
            return None
        windows.started(workload=view, places=places)
        if windows.promised is not None:
            soon, of_soon = windows.promised
            soon.add(project=view.project, holder=place)
            of_soon.started(workload=view, places=places)
        self._budgets.add(workload=of.held, holds=places)
        self._grown[view.project, view.user][flavor.id] += place.amount_milli
        self._shares.charge(
            project=view.project, flavor=flavor.id, amount_milli=place.amount_milli
        )
        return place
