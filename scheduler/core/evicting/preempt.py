"""Eviction at least harm, and what a workload then waits for.

Everything here happens in the draft called *soon*: the fleet once all that is on its way back
(`releasing`, and the victims of this plan) is back, with the places of those that wait for it
already taken. A workload that fits there waits; a later plan admits it, when the release is seen.

A workload reclaims only within a guarantee, and no victim of it may bring anyone who gives below
what is guaranteed to that one (`guarantees`). So whoever was evicted comes after the one who
evicted it when it asks again: it is of a later tier then, or of lower priority in the same project
(`cycle` and `admission` order them so), and there is no ring of evictions.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter

from scheduler.core.bounds.firm import await_own
from scheduler.core.bounds.windows import Windows
from scheduler.core.evicting import twice
from scheduler.core.evicting.eligible import Eligible
from scheduler.core.evicting.enough import are_enough
from scheduler.core.evicting.search import Search, Wait
from scheduler.core.fleet.domains import Domain
from scheduler.core.fleet.draft import Draft
from scheduler.core.fleet.space import free_milli
from scheduler.core.held.elastic import remaining, staying
from scheduler.core.held.victims import ALL, UnitId, cost_of
from scheduler.core.memory import Memory
from scheduler.core.placing.layouts import Layout, roomiest
from scheduler.core.placing.place import clusters_for, layouts, would_place
from scheduler.core.plan import Place
from scheduler.core.policy import Policy
from scheduler.core.quota.cohorts import FLEET
from scheduler.core.quota.floors import Floor
from scheduler.core.quota.quota import Book
from scheduler.core.rates import dearness
from scheduler.core.reasons import Reason
from scheduler.core.request import Option, Request
from scheduler.core.snapshot import FlavorView, HeldView, HoldingView, PendingView, Snapshot
from scheduler.core.units import ClusterId, NodeId, ProjectId

MOST_DOMAINS = 8
"""Domains of a cluster in which one workload that has to be in one looks for victims, and
layouts of one whose pod sets do."""


MOST_SEARCHES = 256
"""Searches for victims in one plan; the rest waits for the next one."""
MOST_SEARCHES_EACH = 32
"""The same for one project."""
MOST_IN_VAIN = 16
"""Searches that fail before it pays to make a draft without all who may be evicted: with it those
are known who never fit."""

type _Rank = tuple[tuple[int, ...], tuple[bool, int], ClusterId]
"""Of what was tried: its harm, how dear it is, where; the first of equal ones is taken."""


class Evictions:
    """Finds room by eviction, plan-wide: nobody is evicted twice, nothing is promised twice."""

    def __init__(
        self, *, snapshot: Snapshot, policy: Policy, memory: Memory | None = None
    ) -> None:
        self._memory = memory or Memory()
        self.candidates = self._memory.candidates(snapshot)
        self._snapshot = snapshot
        self._policy = policy
        self._holders = self._memory.holders(snapshot)
        self._leaving = bool(self._holders.giving)
        holding = self._staying() if snapshot.reservations else ()
        self.windows = Windows(snapshot=snapshot, holding=holding)
        self._soon: Draft | None = None
        self._bare: Draft | None = None
        self._taken: list[tuple[ProjectId, Sequence[Place]]] = []
        self.preemptors = 0
        self._victims = 0
        self._floors: dict[UnitId, tuple[Floor, ...]] = {}
        self._hopeless: set[Option] = set()
        self._stuck: dict[Option, int] = {}
        self._version = 0
        self._in_vain: dict[tuple[ProjectId, int, Option, int], int] = {}
        self._possible: dict[Option, frozenset[NodeId]] = {}
        self._searches: Counter[ProjectId] = Counter()
        self._searched = self._failed = 0
        self.promised: list[tuple[PendingView | HoldingView, Sequence[Place]]] = []

    @property
    def soon(self) -> Draft:
        """Built when first asked for; in plans where nobody lacks room it never is."""
        if self._soon is None:
            self._soon = self._draft("soon", self._staying())
        return self._soon

    def free_soon_milli(self, *, cluster: ClusterId, flavor: FlavorView) -> int | None:
        """What is free in `soon` in sum; None while nobody has asked for that."""
        soon = self._soon
        return None if soon is None else free_milli(draft=soon, cluster=cluster, flavor=flavor)

    def _staying(self) -> Sequence[HoldingView]:
        """What runs, without what is on its way back."""
        return self._holders.staying(self._snapshot.holding)

    @property
    def idle(self) -> bool:
        """Whether there is nobody to evict and nothing on its way back."""
        return not self._leaving and self.candidates.none

    @property
    def coming(self) -> bool:
        """Whether anything is on its way back that somebody may still be found to fit into."""
        return self._leaving and not self._spent

    def is_stuck(self, *, option: Option) -> bool:
        """Whether neither evictions nor what is on its way back can help it, as things stand."""
        return option in self._hopeless or not self._may_come_free(option)

    def drafts(self) -> tuple[Draft, ...]:
        """What is kept has to be kept in them too, or somebody would be evicted for it."""
        self._bare = self._bare or self._without_evictable()
        self._version += 1
        self._possible.clear()
        return self.soon, self._bare

    def started(self, *, pending: PendingView, places: Sequence[Place]) -> None:
        """These places are taken from now on."""
        self._version += 1
        self._taken.append((pending.project, places))
        for draft in (self._soon, self._bare):
            if draft is not None:
                for place in places:
                    draft.add(project=pending.project, holder=place)
        self.windows.started(workload=pending, places=places)
        self._take(places)

    def find(
        self,
        *,
        pending: PendingView,
        request: Request,
        options: Sequence[Option],
        guarantors: Mapping[Option, int],
        eligible_for: Callable[[Option, int], Eligible],
        book: Book,
    ) -> Wait | Reason | None:
        """What the workload waits for from now on; None when eviction does not help it; why, when
        it would but for a reservation that would lack what it takes.

        The first of `options` that works is taken, in the cluster where it does least harm, of
        those the cheapest.
        Borrowers are evicted for options with `guarantors` alone. `eligible_for` tells whom it may
        evict for an option that has that guarantor; asked only where there may be somebody. `book`
        is the usage now.
        """
        reserved: Reason | None = None
        for option in () if self._spent else options:
            guarantor = guarantors.get(option, FLEET)
            evicting = self.may_evict and self.candidates.exist(
                pending=pending, option=option, book=book, guarantor=guarantor
            )
            if option in self._hopeless or not (evicting or self._may_come_free(option)):
                continue
            asked = pending.project, pending.priority, option, guarantor
            if self._in_vain.get(asked) == self._version:
                continue  # its like was searched for, and nothing has changed since
            self._in_vain[asked] = self._version
            eligible = eligible_for(option, guarantor) if evicting else None
            if not self._quota_could_do(pending, option, eligible):
                continue
            clusters = self._could_do(request, option, eligible)
            if not clusters:  # and so no room in what leaves, whoever asks
                self._stuck[option] = self.preemptors
                continue
            if self._searched_enough(pending.project):
                break
            self._searches[pending.project] += 1
            self._searched += 1
            found = self._search(pending, request, option, clusters, eligible)
            if isinstance(found, Wait):
                self._promise(pending, found)
                await_own(self.soon.book, pending=pending, option=option)
                return found
            reserved = reserved or found
            if eligible is None and found is None:
                self._stuck[option] = self.preemptors
            self._failed += 1
            if self._failed > MOST_IN_VAIN and not self._room_could_do(pending, request, option):
                self._hopeless.add(option)
        return reserved

    @property
    def may_evict(self) -> bool:
        """Whether this plan may still evict for somebody."""
        policy = self._policy
        few = self.preemptors < policy.max_preemptors and self._victims < policy.max_victims
        return few and not self._spent

    @property
    def _spent(self) -> bool:
        return self._searched >= MOST_SEARCHES

    def _searched_enough(self, project: ProjectId) -> bool:
        """A search may look at all of a fleet, and a project may ask for thousands of sizes. What
        a quick no spares is not counted: else those who are first in every plan and never fit
        would keep all others from it for ever."""
        return self._spent or self._searches[project] >= MOST_SEARCHES_EACH

    def _may_come_free(self, option: Option) -> bool:
        """Whether something leaves, or was evicted since the option was last found not to fit."""
        return self._leaving and self._stuck.get(option) != self.preemptors

    def _search(
        self,
        pending: PendingView,
        request: Request,
        option: Option,
        clusters: Sequence[ClusterId],
        eligible: Eligible | None,
    ) -> Wait | Reason | None:
        """Try each of the clusters, then take the best; with one, take it at once.

        For what has to be in domains, room is made in the best of those tried. The reason when
        in all that would do a reservation would lack what it takes.
        """
        where: list[tuple[ClusterId, Layout | None]] = [(cluster, None) for cluster in clusters]
        if eligible is not None:
            for cluster in clusters:
                within = self._layouts(pending, request, option, cluster)
                where += [(cluster, layout) for layout in within]
        soon, floors, windows = self.soon, self._floors, self.windows
        hourly = soon.rates.hourly(option.amounts)
        tried: list[tuple[_Rank, Search, Wait]] = []
        reserved: Reason | None = None
        for cluster, layout in where:
            mark = soon.checkpoint()
            search = Search(
                soon, pending, request, option, cluster, eligible, floors, windows, layout
            )
            wait = twice.run(search, soon=soon, eligible=eligible, cluster=cluster)
            if wait is None:
                reserved = reserved or search.reserved
                continue
            if len(where) == 1:
                return wait
            soon.rollback(mark)
            search.forget()
            harm = cost_of(wait.victims) if wait.victims else ()
            tried.append(((harm, dearness(hourly, cluster), cluster), search, wait))
        if not tried:
            return reserved
        _, search, wait = min(tried, key=itemgetter(0))
        search.repeat(wait)
        return wait

    def _layouts(
        self, pending: PendingView, request: Request, option: Option, cluster: ClusterId
    ) -> list[Layout]:
        """At most MOST_DOMAINS ways for it to stand as it has to; () for what may be anywhere."""
        topology = pending.topology
        wholes: list[Domain | None] = [None]
        if topology is not None and topology.required:
            wholes = [
                *roomiest(
                    draft=self.soon,
                    emptied=self.emptied(),
                    option=option,
                    cluster=cluster,
                    level=topology.level,
                    most=MOST_DOMAINS,
                )
            ]
            if not request.bound:
                return [Layout(whole) for whole in wholes]
        found: list[Layout] = []
        for whole in wholes if request.bound else ():
            found += layouts(
                draft=self.soon,
                emptied=self.emptied(),
                pending=pending,
                request=request,
                option=option,
                cluster=cluster,
                whole=whole,
                most=MOST_DOMAINS - len(found),
            )
            if len(found) >= MOST_DOMAINS:
                break
        return found

    def _promise(self, pending: PendingView, wait: Wait) -> None:
        self._version += 1
        for victim in wait.victims:
            self.candidates.forget(victim.held)
        for victim in wait.gone if self.windows else ():
            held = victim.held
            self.windows.left(holding=held.holding, placements=held.placements)
        self._floors |= wait.floors
        if wait.victims:
            self._leaving = True
            self.preemptors += 1
            self._victims += len(wait.victims)
        self._note(pending, wait.places)

    def promise(self, *, workload: PendingView | HoldingView, places: Sequence[Place]) -> None:
        """It waits for these places of `soon`, which are free there."""
        self._version += 1
        for place in places:
            self.soon.add(project=workload.project, holder=place)
        self._note(workload, places)

    def _note(self, workload: PendingView | HoldingView, places: Sequence[Place]) -> None:
        self.promised.append((workload, places))
        self._taken.append((workload.project, places))
        if self._bare is not None:
            for place in places:
                self._bare.add(project=workload.project, holder=place)
        self.windows.started(workload=workload, places=places)
        self._take(places)

    def _take(self, places: Sequence[Place]) -> None:
        """What was found possible there may be so no more."""
        if not self._possible:
            return
        nodes = {place.node for place in places}
        for option in [o for o, of in self._possible.items() if not nodes.isdisjoint(of)]:
            del self._possible[option]

    def _quota_could_do(
        self, pending: PendingView, option: Option, eligible: Eligible | None
    ) -> bool:
        """Whether the quota would do if all victims went: a quick no."""
        for flavor, asked in option.needs:
            available = self.soon.book.available(project=pending.project, flavor=flavor)
            if available is None:
                return False
            victims = eligible.any_with_flavor(flavor) if eligible is not None else iter(())
            while available < asked:
                victim = next(victims, None)
                if victim is None:
                    return False
                available += victim.amounts[flavor]
        return True

    def _could_do(
        self, request: Request, option: Option, eligible: Eligible | None
    ) -> list[ClusterId]:
        """The clusters that would have devices enough if all victims went: a quick no."""
        evictable = eligible.everyone if eligible is not None else tuple
        return [
            cluster
            for cluster in clusters_for(draft=self.soon, request=request, option=option)
            if are_enough(soon=self.soon, option=option, cluster=cluster, evictable=evictable)
        ]

    def _room_could_do(self, pending: PendingView, request: Request, option: Option) -> bool:
        """Whether it fits if everything that may be evicted goes.

        Asked for all who come later with the same. Where it fits once, it does until any of those
        nodes is taken.
        """
        if option in self._possible:
            return True
        bare = self.emptied()
        found = would_place(draft=bare, pending=pending, request=request, option=option)
        places = next(found, None)
        if places is not None:
            self._possible[option] = frozenset(place.node for place in places)
        return places is not None

    def emptied(self) -> Draft:
        """The fleet without what leaves and all who may be evicted."""
        self._bare = self._bare or self._without_evictable()
        return self._bare

    def _without_evictable(self) -> Draft:
        def protected(held: HoldingView) -> tuple[HeldView, ...]:
            if (held.id, ALL) in self.candidates:
                return ()
            return tuple(p for p in staying(held) if (held.id, p.id) not in self.candidates)

        return self._draft("bare", remaining(self.candidates.others, protected))

    def _draft(self, purpose: str, holding: Sequence[HoldingView]) -> Draft:
        draft = self._memory.draft(purpose, snapshot=self._snapshot, holding=holding)
        draft.admit(self._taken)
        return draft
