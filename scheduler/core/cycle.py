"""plan(snapshot, policy) -> Plan: who starts now and where, who is evicted for whom, who waits and why.

The ideal: take the workload that is next in order; start it where it fits best, within its quota; if
it does not fit, evict whom the rules allow; else hold it with the reason; repeat. The departures:
a workload that is held does not keep later ones from starting (its place in order counts when
capacity comes free); once a class of identical requests of a project was held, its like are held for
the same reason unseen; and after `policy.max_admits` the rest waits for the next plan.
"""

from collections.abc import Iterator
from dataclasses import replace

from scheduler.core import preempt
from scheduler.core.draft import Draft
from scheduler.core.limits import Limits, because, most_useful, room_numbers
from scheduler.core.order import Heads
from scheduler.core.place import clusters_for, place_gang
from scheduler.core.plan import Admit, Hold, Place, Plan, Preempt
from scheduler.core.policy import Policy
from scheduler.core.reasons import Reason, ReasonCode
from scheduler.core.preempt import Candidates
from scheduler.core.request import Option, Request, Requests
from scheduler.core.share import Shares
from scheduler.core.snapshot import PendingView, Snapshot
from scheduler.core.units import ClusterId, FlavorId, ProjectId


def plan(snapshot: Snapshot, policy: Policy) -> Plan:
    """Decide on every pending workload. The same snapshot, in any order, gives the same plan."""
    return _Cycle(snapshot, policy).run()


def would_start(snapshot: Snapshot, policy: Policy, pending: PendingView) -> Admit | Hold:
    """The dry run: what the plan would be for `pending` if it were submitted now."""
    others = tuple(waiting for waiting in snapshot.pending if waiting.id != pending.id)
    made = plan(replace(snapshot, pending=(*others, pending)), policy)
    decisions: tuple[Admit | Hold, ...] = (*made.admits, *made.holds)
    return next(decision for decision in decisions if decision.workload == pending.id)


class _Cycle:
    """One plan in the making."""

    def __init__(self, snapshot: Snapshot, policy: Policy) -> None:
        self._snapshot = snapshot
        self._policy = policy
        self._now = Draft(snapshot=snapshot, holding=snapshot.holding)
        self._limits = Limits(snapshot)
        self._shares = Shares(queues=snapshot.queues, book=self._now.book)
        requests = Requests(flavors=self._now.flavors)
        self._request = {pending.id: requests.of(pending) for pending in snapshot.pending}
        self._full: dict[Option, Reason] = {}
        self._closed: dict[tuple[ProjectId, Request], Reason] = {}
        self._soon: Draft | None = None
        self._releasing = any(held.releasing for held in snapshot.holding)
        self._candidates = Candidates(holding=snapshot.holding, at=snapshot.at)
        self._admits: list[Admit] = []
        self._preempts: list[Preempt] = []
        self._held: dict[ProjectId, list[tuple[PendingView, Reason]]] = {}

    def run(self) -> Plan:
        heads = Heads(pending=self._snapshot.pending, shares=self._shares, borrows=self._borrows)
        while (pending := heads.next()) is not None:
            reason = self._decide(pending)
            if reason is not None:
                self._held.setdefault(pending.project, []).append((pending, reason))
        return Plan(tuple(self._admits), tuple(self._preempts), tuple(self._holds()))

    def _holds(self) -> Iterator[Hold]:
        for _, held in sorted(self._held.items()):
            for position, (pending, reason) in enumerate(held, start=1):
                yield Hold(pending.id, reason, position)

    def _decide(self, pending: PendingView) -> Reason | None:
        """Admit it (None), or say why not."""
        if pending.not_before > self._snapshot.at:
            wait_s = pending.not_before - self._snapshot.at
            return because(ReasonCode.BACKOFF, retry_in_s=wait_s)
        if len(self._admits) >= self._policy.max_admits:
            return because(ReasonCode.BEHIND, admitted_count=len(self._admits))
        request = self._request[pending.id]
        key = pending.project, request
        reason = self._closed.get(key)
        if reason is None:
            reason = self._admit(pending, request)
            if reason is not None and reason.code is not ReasonCode.WAITING_FOR_PREEMPTION:
                self._closed[key] = reason
        return reason

    def _admit(self, pending: PendingView, request: Request) -> Reason | None:
        reasons = []
        for option in request.options:
            spare, reason = self._spare(pending.project, option)
            if reason is None:
                reason = self._full.get(option)
            if reason is None:
                if self._place(pending, request, option, spare):
                    return None
                reason = self._full[option] = self._why_no_room(pending, request, option)
            reasons.append(reason)
        return self._wait(pending, request) or most_useful(reasons)

    def _borrows(self, pending: PendingView) -> bool:
        """Whether the preferred option would take the project over nominal."""
        book, project = self._now.book, pending.project
        options = self._request[pending.id].options
        if not options:
            return True
        for flavor, asked in options[0].needs:
            used = book.used(project=project, flavor=flavor)
            if used + asked > book.nominal(project=project, flavor=flavor):
                return True
        return False

    def _spare(
        self, project: ProjectId, option: Option
    ) -> tuple[dict[FlavorId, int], Reason | None]:
        """The quota left per flavor, and why that is not enough for the least start."""
        spare: dict[FlavorId, int] = {}
        for flavor, asked in option.needs:
            available = self._now.book.available(project=project, flavor=flavor)
            if available is not None and self._soon is not None:
                promised = self._soon.book.available(project=project, flavor=flavor)
                available = min(available, promised or 0)
            if available is None or available < asked:
                return spare, self._why_no_quota(project, flavor, asked)
            spare[flavor] = available
        return spare, None

    def _place(
        self,
        pending: PendingView,
        request: Request,
        option: Option,
        spare: dict[FlavorId, int],
    ) -> bool:
        """Start it in the fullest cluster that takes all of it, else where most of it starts."""
        clusters = clusters_for(draft=self._now, request=request, option=option)
        most: tuple[int, ClusterId] | None = None
        for cluster in clusters:
            mark = self._now.checkpoint()
            places = self._gang(pending, request, option, cluster, spare)
            if places is None:
                continue
            if len(places) == request.count or len(clusters) == 1:
                self._commit(pending, cluster, places)
                return True
            self._now.rollback(mark)
            if most is None or len(places) > most[0]:
                most = len(places), cluster
        if most is None:
            return False
        again = self._gang(pending, request, option, most[1], spare)
        self._commit(pending, most[1], again or ())
        return True

    def _gang(
        self,
        pending: PendingView,
        request: Request,
        option: Option,
        cluster: ClusterId,
        spare: dict[FlavorId, int],
    ) -> tuple[Place, ...] | None:
        return place_gang(
            draft=self._now,
            pending=pending,
            request=request,
            option=option,
            cluster=cluster,
            spare=spare,
        )

    def _commit(
        self, pending: PendingView, cluster: ClusterId, places: tuple[Place, ...]
    ) -> None:
        self._admits.append(Admit(pending.id, cluster, places))
        for place in places:
            self._shares.charge(
                project=pending.project, flavor=place.flavor, amount_milli=place.amount_milli
            )
            if self._soon is not None:
                self._soon.add(project=pending.project, holder=place)

    def _wait(self, pending: PendingView, request: Request) -> Reason | None:
        """Evict for it, or let it wait for what is coming back; None when neither helps.

        What it then waits for is its own for the rest of this plan: nobody after it may start on
        any of it. Later plans decide anew, in their order; who comes before it may be first.
        """
        if not self._policy.preemption or not self._worth_a_look(pending, request):
            return None
        soon = self._build_soon()
        wait = preempt.find(
            soon=soon,
            pending=pending,
            request=request,
            candidates=self._candidates,
            most_victims=self._policy.max_victims,
        )
        if wait is None:
            return None
        for victim in wait.victims:
            self._candidates.forget(victim)
            self._preempts.append(Preempt(victim.holding.id, pending.id, victim.rule))
        for node in sorted({place.node for place in wait.places}):
            self._now.tighten(node=node, other=soon.rooms[node])
        flavor = wait.places[0].flavor
        coming = sum(place.amount_milli for place in wait.places if place.flavor == flavor)
        return because(
            ReasonCode.WAITING_FOR_PREEMPTION,
            coming_milli=coming,
            flavor=soon.flavors[flavor].name,
            victims_count=len(wait.victims),
        )

    def _worth_a_look(self, pending: PendingView, request: Request) -> bool:
        if self._releasing or self._preempts:
            return True
        book = self._now.book
        return any(
            self._candidates.exist_for(pending=pending, option=option, book=book)
            for option in request.options
        )

    def _build_soon(self) -> Draft:
        if self._soon is None:
            staying = (held for held in self._snapshot.holding if not held.releasing)
            self._soon = Draft(snapshot=self._snapshot, holding=staying)
            projects = {pending.id: pending.project for pending in self._snapshot.pending}
            for admit in self._admits:
                for place in admit.places:
                    self._soon.add(project=projects[admit.workload], holder=place)
        return self._soon

    def _why_no_quota(self, project: ProjectId, flavor: FlavorId, asked: int) -> Reason:
        book = self._now.book
        limit = book.borrowing_limit(project=project, flavor=flavor)
        nominal = book.nominal(project=project, flavor=flavor)
        used = book.used(project=project, flavor=flavor)
        ceiling = book.ceiling(project=project, flavor=flavor) or 0
        code = ReasonCode.COHORT_USED
        if asked > ceiling:
            code = ReasonCode.NEVER_ADMISSIBLE
        elif limit is not None and used + asked > nominal + limit:
            code = ReasonCode.QUOTA_USED
        return because(
            code,
            asked_milli=asked,
            available_milli=max(0, book.available(project=project, flavor=flavor) or 0),
            borrowable_milli=max(0, ceiling - nominal),
            flavor=self._now.flavors[flavor].name,
            nominal_milli=nominal,
            used_milli=used,
        )

    def _why_no_room(self, pending: PendingView, request: Request, option: Option) -> Reason:
        if not any(request.accepts(cluster) for cluster in self._now.clusters):
            return self._why_no_cluster(request)
        hopeless = self._limits.of_capacity(pending=pending, request=request, option=option)
        if hopeless is not None:
            return hopeless
        numbers = room_numbers(
            draft=self._now, pending=pending, request=request, option=option
        )
        short = int(numbers["free_milli"]) < int(numbers["asked_milli"])
        return because(ReasonCode.NO_FREE_CAPACITY if short else ReasonCode.NO_FIT, **numbers)

    def _why_no_cluster(self, request: Request) -> Reason:
        accepted = sum(1 for cluster in self._snapshot.clusters if request.accepts(cluster.id))
        if not accepted:
            return because(ReasonCode.NO_MATCHING_FLAVOR, clusters_count=0)
        return because(ReasonCode.CLUSTER_UNAVAILABLE, clusters_count=accepted)
