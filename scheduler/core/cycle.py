"""plan(snapshot, policy) -> Plan: who starts now and where, who is evicted for whom, who waits.

The ideal: take the workload that is next in order; start it where it fits best, within its quota;
if it does not fit, evict whom the rules allow; else hold it with the reason; repeat. Departures:

1. Two rounds: first what stays within the nominal quota of its project, then what borrows. What is
   guaranteed is not kept waiting by what is lent, whatever the priorities, as in Kueue; else a
   borrower of high priority and an owner who reclaims would evict each other for ever. So, of the
   accepted flavors, the first with nominal quota left comes before the first that is borrowed.
2. Who is held does not keep later ones from starting; its place in the order counts again when
   capacity comes free.
3. Once a class of identical requests of a project was held, its like are held unseen.
4. After `policy.max_admits` the rest waits for the next plan.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from scheduler.core.admission import Admission
from scheduler.core.draft import Draft
from scheduler.core.limits import because, never_admissible
from scheduler.core.order import Heads
from scheduler.core.plan import Admit, Hold, Plan, Preempt
from scheduler.core.policy import Policy
from scheduler.core.preempt import Evictions
from scheduler.core.reasons import Reason, ReasonCode
from scheduler.core.request import Option, Request, Requests
from scheduler.core.share import Shares
from scheduler.core.snapshot import PendingView, Snapshot
from scheduler.core.units import FlavorId, ProjectId

__all__ = ["never_admissible", "plan", "would_start"]


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
        self._now = Draft(snapshot=snapshot, holding=snapshot.holding, packs=True)
        self._shares = Shares(book=self._now.book)
        self._evictions = (
            Evictions(snapshot=snapshot, policy=policy) if policy.preemption else None
        )
        self._admission = Admission(
            snapshot=snapshot, draft=self._now, shares=self._shares, leaving=_leaving(snapshot)
        )
        self._admits: list[Admit] = []
        self._preempts: list[Preempt] = []
        self._holds: list[Hold] = []

    def run(self) -> Plan:
        requests = Requests(flavors=self._now.flavors)
        of = {pending.id: requests.of(pending) for pending in self._snapshot.pending}
        early = [p for p in self._snapshot.pending if p.not_before > self._snapshot.at]
        for retried in sorted(early, key=lambda p: p.id):
            wait_s = retried.not_before - self._snapshot.at
            self._hold(retried, because(ReasonCode.BACKOFF, retry_in_s=wait_s))
        heads = Heads(
            pending=[p for p in self._snapshot.pending if p.not_before <= self._snapshot.at],
            requests=of,
            shares=self._shares,
        )
        while not self._is_full() and (pending := heads.next()) is not None:
            request = of[pending.id]
            if not self._start(pending, request, borrowing=False):
                if pending.project in heads.mixed:
                    self._admission.claim(pending=pending, request=request)
                heads.close()
        heads.reopen()
        while (pending := heads.next()) is not None:
            request = of[pending.id]
            if not self._start(pending, request, borrowing=True):
                reason = self._why_not(pending, request)
                for waiting in (pending, *heads.like()):
                    self._hold(waiting, reason)
                heads.close()
        return Plan(tuple(self._admits), tuple(self._preempts), tuple(self._holds))

    def _hold(self, pending: PendingView, reason: Reason) -> None:
        self._holds.append(Hold(pending.id, reason))

    def _start(self, pending: PendingView, request: Request, *, borrowing: bool) -> bool:
        """Admit it, or hold it for what it then waits for; False when neither helps."""
        if self._is_full():
            return False
        admit = self._admission.start(pending=pending, request=request, borrowing=borrowing)
        if admit is not None:
            self._admits.append(admit)
            if self._evictions is not None:
                self._evictions.started(pending=pending, places=admit.places)
            return True
        if self._evictions is None or self._evictions.idle:
            return False
        options = request.options
        if not borrowing:
            options = self._admission.owned(pending=pending, request=request)
        reason = self._wait(pending, request, options, self._evictions)
        if reason is not None:
            self._hold(pending, reason)
        return reason is not None

    def _is_full(self) -> bool:
        return len(self._admits) >= self._policy.max_admits

    def _why_not(self, pending: PendingView, request: Request) -> Reason:
        if self._is_full():
            return because(ReasonCode.BEHIND, admitted_count=len(self._admits))
        return self._admission.why_not(pending=pending, request=request)

    def _wait(
        self,
        pending: PendingView,
        request: Request,
        options: Sequence[Option],
        evictions: Evictions,
    ) -> Reason | None:
        """Evict for it, or let it wait for what is coming back; None when neither helps.

        What it then waits for is its own for the rest of this plan: nobody after it may start on
        any of it. Later plans decide anew, in their order; who comes before it may be first.
        """
        own: Counter[FlavorId] = Counter()
        for held in evictions.candidates.own(pending=pending):
            own.update(held.amounts)
        wait = evictions.find(
            pending=pending,
            request=request,
            options=options,
            reclaiming=[
                option
                for option in options
                if self._admission.is_owned(pending=pending, option=option, gives_way=own)
            ],
            book=self._now.book,
        )
        if wait is None:
            return None
        soon = self._admission.promised = evictions.soon
        for node in sorted({place.node for place in wait.places}):
            self._now.tighten(node=node, other=soon.rooms[node])
        for victim in wait.victims:
            self._preempts.append(Preempt(victim.id, pending.id, victim.rule))
        flavor = wait.places[0].flavor
        coming = sum(place.amount_milli for place in wait.places if place.flavor == flavor)
        return because(
            ReasonCode.WAITING_FOR_PREEMPTION,
            coming_milli=coming,
            flavor=self._now.flavors[flavor].name,
            victims_count=len(wait.victims),
        )


def _leaving(snapshot: Snapshot) -> Counter[tuple[ProjectId, FlavorId]]:
    leaving: Counter[tuple[ProjectId, FlavorId]] = Counter()
    for held in snapshot.holding:
        if held.releasing:
            for placement in held.placements:
                leaving[held.project, placement.flavor] += placement.amount_milli
    return leaving
