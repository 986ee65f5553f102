"""plan(snapshot, policy) -> Plan: who starts now and where, who is evicted for whom, who waits.

The ideal: take the workload that is next in order; start it where it fits best, within its quota;
if it does not fit, evict whom the rules allow; else hold it with the reason; repeat. Departures:

1. Two rounds: first what stays within the nominal quota of its project, then what borrows. What is
   guaranteed is not kept waiting by what is lent, whatever the priorities, as in Kueue; else a
   borrower of high priority and an owner who reclaims would evict each other for ever. So, of the
   accepted flavors, the first with nominal quota left comes before the first that is borrowed.
2. Who is held does not keep later ones from starting; its place in the order counts again when
   capacity comes free.
3. Once a class of identical requests of a project was held, its like are held unseen. (Where
   users have caps, a class is one of a user.)
4. After `policy.max_admits` the rest waits for the next plan.
5. For who has waited long room is kept, and only what ends in time goes ahead (`backfill`).
"""

import gc
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from scheduler.core.admission import Admission
from scheduler.core.backfill import Backfill
from scheduler.core.caps import Caps
from scheduler.core.compiled import compiled
from scheduler.core.draft import Draft
from scheduler.core.faults import faults, of_rooms
from scheduler.core.limits import because, never_admissible
from scheduler.core.order import Heads, place_in_queue
from scheduler.core.plan import Admit, Fault, Hold, Plan, Preempt
from scheduler.core.policy import Policy
from scheduler.core.preempt import Evictions
from scheduler.core.reasons import Reason, ReasonCode
from scheduler.core.request import Option, Request, Requests
from scheduler.core.share import Shares
from scheduler.core.snapshot import PendingView, Snapshot
from scheduler.core.sound import refused, sound
from scheduler.core.units import FlavorId, NodeId, ProjectId, WorkloadId

if TYPE_CHECKING:
    from scheduler.core.sweep.sweep import Sweep

__all__ = ["never_admissible", "plan", "would_start"]

_OF_ROOM = {ReasonCode.NO_FREE_CAPACITY, ReasonCode.NO_FIT, ReasonCode.CLUSTER_UNAVAILABLE}

LEAST_SWEPT = 256
"""Pending workloads below which filling the arrays of a sweep takes longer than it saves."""


def plan(snapshot: Snapshot, policy: Policy) -> Plan:
    """Decide on every pending workload. The same snapshot, in any order, gives the same plan.

    What contradicts itself is named in `faults`, and the rest is planned: nothing is raised.
    """
    with _no_collection():
        found = faults(snapshot)
        cycle = _Cycle(sound(snapshot, found) if found else snapshot, policy)
        found += cycle.overdrawn()
        made = cycle.run()
    if not found:
        return made
    invalid = (
        Hold(id, because(ReasonCode.INVALID, fault=fault.text))
        for id, fault in refused(snapshot, found).items()
    )
    return replace(made, holds=(*invalid, *made.holds), faults=tuple(sorted(found)))


def would_start(snapshot: Snapshot, policy: Policy, pending: PendingView) -> Admit | Hold:
    """The dry run: what the plan would be for `pending` if it were submitted now."""
    others = tuple(waiting for waiting in snapshot.pending if waiting.id != pending.id)
    made = plan(replace(snapshot, pending=(*others, pending)), policy)
    decisions: tuple[Admit | Hold, ...] = (*made.admits, *made.holds)
    return next(decision for decision in decisions if decision.workload == pending.id)


@contextmanager
def _no_collection() -> Iterator[None]:
    """A plan makes many values and no rings of them: to look for rings takes a third of it."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


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
        self._backfill = Backfill(snapshot=snapshot, policy=policy)
        self._caps = Caps(queues=snapshot.queues)
        for held in snapshot.holding:
            self._caps.add(project=held.project, user=held.user, holds=held.placements)
        self._admission = Admission(
            snapshot=snapshot,
            draft=self._now,
            shares=self._shares,
            caps=self._caps,
            leaving=_leaving(snapshot),
        )
        self._begun: list[tuple[PendingView, Admit]] = []
        self._promised: set[NodeId] = set()
        self._preempts: list[Preempt] = []
        self._holds: list[Hold] = []

    def overdrawn(self) -> tuple[Fault, ...]:
        """Asked before `run`: what is held beyond what there is."""
        return of_rooms(self._now.held().values(), self._snapshot.holding)

    def run(self) -> Plan:
        windows = self._admission.windows
        requests = Requests(flavors=self._now.flavors, by_limit=bool(windows))
        pending = self._may_start()
        of = {waiting.id: requests.of(waiting) for waiting in pending}
        heads = self._heads(pending, of)
        self._round(heads, of, borrowing=False)
        heads.reopen()
        self._round(heads, of, borrowing=True)
        left = list(heads.left())
        ahead = self._go_ahead([p for _, like in left for p in like], of)
        for was_tried, like in left:
            reason = because(ReasonCode.BEHIND, admitted_count=len(self._begun))
            if was_tried:
                reason = self._why_not(like[0], of[like[0].id])
            self._holds += [Hold(p.id, reason) for p in like if p.id not in ahead]
        return Plan(
            tuple(admit for _, admit in self._begun),
            tuple(self._preempts),
            tuple(self._holds),
            keeps=tuple(self._backfill.keeps),
        )

    def _go_ahead(
        self, left: Sequence[PendingView], of: Mapping[WorkloadId, Request]
    ) -> set[WorkloadId]:
        """Start what ends before anybody for whom room is kept; each class once, in order."""
        shadow, at = self._backfill.shadow, self._snapshot.at
        if shadow is None:
            return set()
        short = [p for p in left if p.run_time_limit_s and at + p.run_time_limit_s <= shadow]
        started, stuck = set(), set()
        for pending in sorted(short, key=place_in_queue):
            request = of[pending.id]
            if self._is_full():
                break
            if (pending.project, pending.user, request) in stuck:
                continue
            admit = self._whole.start(pending=pending, request=request, borrowing=True)
            if admit is None:
                stuck.add((pending.project, pending.user, request))
                continue
            started.add(pending.id)
            self._started(pending, admit)
            for place in admit.places:
                self._now.book.charge(
                    project=pending.project, flavor=place.flavor, amount_milli=place.amount_milli
                )
        return started

    def _why_not(self, pending: PendingView, request: Request) -> Reason:
        reason = self._admission.why_not(pending=pending, request=request)
        if self._backfill.keeps and reason.code in _OF_ROOM:
            for option in request.options:
                if self._whole.has_room(pending=pending, request=request, option=option):
                    flavor, asked = option.needs[0]
                    name = self._now.flavors[flavor].name
                    return because(ReasonCode.KEPT_FOR_OTHERS, asked_milli=asked, flavor=name)
        return reason

    @cached_property
    def _whole(self) -> Admission:
        """Into the fleet with what is kept; asked when no more is kept."""
        draft = Draft(snapshot=self._snapshot, holding=self._snapshot.holding)
        for pending, admit in self._begun:
            for place in admit.places:
                draft.add(project=pending.project, holder=place)
        soon = self._admission.promised
        for node in sorted(self._promised):
            if soon is not None:
                draft.tighten(node=node, other=soon.rooms[node])
        whole = Admission(
            snapshot=self._snapshot, draft=draft, shares=self._shares, caps=self._caps
        )
        whole.promised = soon
        return whole

    def _heads(
        self, pending: Sequence[PendingView], of: Mapping[WorkloadId, Request]
    ) -> "Heads | Sweep":
        """The queue; one that decides what is plain by itself where that saves time."""
        if (
            len(pending) >= LEAST_SWEPT
            and not self._admission.windows
            and (sweep := compiled("sweep.sweep"))
        ):
            with suppress(sweep.Unfit):
                swept: Sweep = sweep.Sweep(
                    snapshot=self._snapshot,
                    pending=pending,
                    requests=[of[waiting.id] for waiting in pending],
                    admission=self._admission,
                    shares=self._shares,
                    evictions=self._evictions,
                    may_start=lambda: self._policy.max_admits - len(self._begun),
                    started=self._started,
                    waited_since=lambda: self._backfill.waited_since,
                )
                return swept
        return Heads(pending=pending, requests=of, shares=self._shares)

    def _round(
        self, heads: "Heads | Sweep", of: Mapping[WorkloadId, Request], *, borrowing: bool
    ) -> None:
        while not self._is_full() and (pending := heads.next()) is not None:
            request = of[pending.id]
            if not self._start(pending, request, borrowing=borrowing):
                if not borrowing and pending.project in heads.mixed:
                    self._admission.claim(pending=pending, request=request)
                heads.close()

    def _may_start(self) -> list[PendingView]:
        """What is not held whatever there is room for; the rest is held, by id."""
        closed = {queue.project for queue in self._snapshot.queues if queue.held}
        at, ready, others = self._snapshot.at, [], []
        for pending in self._snapshot.pending:
            if pending.project in closed or pending.not_before > at:
                others.append(pending)
            else:
                ready.append(pending)
        for pending in sorted(others, key=lambda p: p.id):
            reason = because(ReasonCode.QUEUE_HELD)
            if pending.project not in closed:
                reason = because(ReasonCode.BACKOFF, retry_in_s=pending.not_before - at)
            self._hold(pending, reason)
        return ready

    def _hold(self, pending: PendingView, reason: Reason) -> None:
        self._holds.append(Hold(pending.id, reason))

    def _start(self, pending: PendingView, request: Request, *, borrowing: bool) -> bool:
        """Admit it, or hold it for what it then waits for, or for what is kept for it; False when
        none of it helps."""
        admit = self._admission.start(pending=pending, request=request, borrowing=borrowing)
        if admit is not None:
            self._started(pending, admit)
            return True
        if self._caps.reached(pending) is not None:
            return False
        if self._admission.windows.runs_into(pending=pending, request=request):
            return False
        options = request.options
        if not borrowing:
            options = self._admission.owned(pending=pending, request=request)
        reason = None
        if self._evictions is not None and not self._evictions.idle:
            reason = self._wait(pending, request, options, self._evictions)
        if reason is None and self._backfill.may_keep(pending=pending, request=request):
            reason = self._keep(pending, request, options)
        if reason is not None:
            self._hold(pending, reason)
        return reason is not None

    def _keep(
        self, pending: PendingView, request: Request, options: Sequence[Option]
    ) -> Reason | None:
        """Keep for it what it gets first; None when room is not what it lacks, or is never had."""
        lawful = [o for o in options if self._admission.has_quota(pending=pending, option=o)]
        if not lawful:
            return None
        kept = self._backfill.keep(
            pending=pending,
            request=request,
            options=lawful,
            started=self._begun,
            promised=self._evictions.promised if self._evictions else (),
            leaving={preempt.victim for preempt in self._preempts},
            drafts=(self._now, *self._what_ifs()),
        )
        if kept is None:
            return None
        flavor = kept.places[0].flavor
        numbers: dict[str, int | str] = {
            "kept_milli": sum(p.amount_milli for p in kept.places if p.flavor == flavor),
            "flavor": self._now.flavors[flavor].name,
        }
        if kept.starts_at is not None:
            numbers["starts_in_s"] = kept.starts_at - self._snapshot.at
        return because(ReasonCode.ROOM_KEPT, **numbers)

    def _what_ifs(self) -> tuple[Draft, ...]:
        """The drafts that evictions go by."""
        if self._evictions is None or self._evictions.idle:
            return ()
        return self._evictions.drafts()

    def _is_full(self) -> bool:
        return len(self._begun) >= self._policy.max_admits

    def _started(self, pending: PendingView, admit: Admit) -> None:
        self._begun.append((pending, admit))
        if self._evictions is not None:
            self._evictions.started(pending=pending, places=admit.places)

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
            self._promised.add(node)
        self._caps.add(project=pending.project, user=pending.user, holds=wait.places)
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
