"""plan(snapshot, policy) -> Plan: who starts now and where, who is evicted for whom, who waits.

The ideal: take the workload that is next in order; start it where it fits best, within its quota;
if it does not fit, evict whom the rules allow; else hold it with the reason; repeat. Departures:

1. Round after round: first what stays within the nominal quota of its project, then what those
   above guarantee it, the deepest first, then what borrows (`guarantees`). What is guaranteed is
   not kept waiting by what is lent, whatever the priorities, as in Kueue; else a borrower of high
   priority and an owner who reclaims would evict each other for ever. So, of the accepted flavors,
   the first with nominal quota left comes before the first that is borrowed.
2. Who is held does not keep later ones from starting; its place in the order counts again when
   capacity comes free.
3. Once a class of identical requests of a project was held, its like are held unseen. (Where
   users or arrays have caps, a class is one of a user, or of an array.)
4. After `policy.max_admits` the rest waits for the next plan.
5. What is kept for who has waited long (`backfill`, `quota_guard`) only what ends in time uses.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from scheduler.core.admitting.admission import Admission
from scheduler.core.admitting.begun import Begun
from scheduler.core.admitting.blocked import blocked
from scheduler.core.admitting.grow import Growth
from scheduler.core.admitting.order import Heads
from scheduler.core.bounds.caps import Caps
from scheduler.core.bounds.limits import OF_ROOM, because, never_admissible, told_of, waits_for
from scheduler.core.bounds.windows import Windows
from scheduler.core.collection import no_collection
from scheduler.core.compiled import compiled
from scheduler.core.evicting.eligible import Eligible
from scheduler.core.evicting.preempt import Evictions
from scheduler.core.evicting.search import Wait
from scheduler.core.faults import of_rooms
from scheduler.core.fleet.draft import Draft
from scheduler.core.guarding.ahead import go_ahead
from scheduler.core.guarding.backfill import Backfill, room_kept
from scheduler.core.guarding.overtaken import Overtaken
from scheduler.core.guarding.quota_guard import QuotaGuard
from scheduler.core.guarding.room_guard import RoomGuard
from scheduler.core.held.elastic import keeping, leaving
from scheduler.core.held.shrinks import given_up, gives_way, less_evicted
from scheduler.core.held.victims import UnitId
from scheduler.core.memory import Memory
from scheduler.core.moving.better import Better
from scheduler.core.moving.consolidate import consolidate
from scheduler.core.moving.landing import land
from scheduler.core.plan import Fault, Hold, Keep, Place, Plan, Preempt, Shrink
from scheduler.core.policy import Policy
from scheduler.core.quota.guarantees import BORROWED, OWN, tiers
from scheduler.core.quota.share import Shares
from scheduler.core.reasons import Reason, ReasonCode
from scheduler.core.request import Option, Request, Requests
from scheduler.core.snapshot import PendingView, Snapshot
from scheduler.core.sound import refused, sound
from scheduler.core.stopping.enforce import enforce
from scheduler.core.stopping.idle import freeing
from scheduler.core.stopping.used_up import stop
from scheduler.core.units import NodeId

if TYPE_CHECKING:
    from scheduler.core.sweep.backlog import Backlog
    from scheduler.core.sweep.sweep import Sweep

__all__ = ["Cycle", "never_admissible", "plan", "planned"]

LEAST_SWEPT = 256
"""Pending workloads below which filling the arrays of a sweep takes longer than it saves."""


def plan(snapshot: Snapshot, policy: Policy, memory: Memory | None = None) -> Plan:
    """Decide on every pending workload. The same snapshot, in any order, gives the same plan.

    What contradicts itself is named in `faults`, and the rest is planned: nothing is raised.
    With the `memory` of earlier plans, what has not changed since is not worked out again.
    """
    with no_collection():  # until the cycle has gone too: less is left to look through
        return planned(snapshot, policy, memory)[0]


def planned(
    snapshot: Snapshot, policy: Policy, memory: Memory | None = None
) -> tuple[Plan, "Cycle"]:
    """As `plan`, with the cycle as it ended, to be asked more of the same."""
    if not policy.admission:
        made, cycle = planned(snapshot, replace(policy, admission=True, preemption=False), memory)
        return made.stopped(snapshot.landings), cycle
    with no_collection():
        memory = memory or Memory()
        found = memory.look(snapshot)
        rest, freed = freeing(sound(snapshot, found) if found else snapshot, policy)
        rest, stopped = stop(rest)
        rest, cuts = enforce(rest)
        cycle = Cycle(rest, policy, Memory() if found else memory)
        found += cycle.overdrawn()
        made = replace(stopped.before(cuts.before(cycle.run())), frees=freed)
    if not found:
        return made, cycle
    invalid = (
        Hold((id,), because(ReasonCode.INVALID, fault=fault.text))
        for id, fault in refused(snapshot, found).items()
    )
    return replace(made, holds=(*invalid, *made.holds), faults=tuple(sorted(found))), cycle


class Cycle:
    """One plan in the making."""

    def __init__(self, snapshot: Snapshot, policy: Policy, memory: Memory) -> None:
        self.snapshot = snapshot
        self._memory = memory
        self.policy = policy
        self._now = memory.draft("now", snapshot=snapshot, holding=snapshot.holding, packs=True)
        windows = Windows(snapshot=snapshot, holding=snapshot.holding)
        self._holders = memory.holders(snapshot)
        for held in self._holders.giving:
            self._now.book.leave(holding=keeping(held, leaving(held)))
        self._shares = Shares(book=self._now.book)
        self.evictions: Evictions | None = None
        if policy.preemption:
            self.evictions = Evictions(snapshot=snapshot, policy=policy, memory=memory)
        self.backfill = Backfill(snapshot=snapshot, policy=policy, memory=memory, windows=windows)
        self._caps = Caps.running(snapshot, arrays=self._holders.arrays)
        self.admission = Admission(
            snapshot=snapshot,
            draft=self._now,
            shares=self._shares,
            caps=self._caps,
            windows=windows,
            memory=memory,
        )
        if windows and self.evictions is not None and self.evictions.coming:
            self.admission.expect(self.evictions)
        self._begun = Begun(most=policy.max_admits, evictions=self.evictions)
        self._guard = QuotaGuard(
            snapshot=snapshot, policy=policy, admission=self.admission, memory=memory,
            begun=self._begun,
        )  # fmt: skip
        self._room_guard = RoomGuard(
            backfill=self.backfill,
            guard=self._guard,
            admission=self.admission,
            evictions=self.evictions,
            begun=self._begun,
        )
        self._promised: set[NodeId] = set()
        self._preempts: list[Preempt] = []
        self._shrinks: list[Shrink] = []
        self._holds: list[Hold] = []

    def overdrawn(self) -> tuple[Fault, ...]:
        """Asked before `run`: what is held beyond what there is."""
        return of_rooms(self._now.world.overdrawn(), self.snapshot.holding)

    def run(self) -> Plan:
        backlog = self._backlog()
        held = blocked(self.snapshot, backlog.doubtful if backlog else None)
        self._overtaken = Overtaken(
            snapshot=self.snapshot, flavors=self._now.flavors, book=self._now.book,
            blocked=held.keys(),
        )  # fmt: skip
        self._holds += (Hold((id,), held[id]) for id in sorted(held))
        landed = land(
            snapshot=self.snapshot,
            blocked=held,
            admission=self.admission,
            evictions=self.evictions,
            started=self._begun.add,
            promised=self._promise,
            hold=self._hold,
        )
        self._decided = held.keys() | landed.decided
        heads = self._heads = self._queue(backlog)
        for tier in tiers(self._now.book.cohorts):
            self.admission.begin(tier=tier)
            if tier != OWN:
                heads.reopen()
            self._round(heads)
        ahead = go_ahead(
            snapshot=self.snapshot, backfill=self.backfill, left=heads.left,
            whole=lambda: self._whole, beside=lambda: self._beside(self._now),
            kept=self.admission.kept, request_of=heads.request_of, shares=self._shares,
            begun=self._begun,
        )  # fmt: skip
        moved = consolidate(
            snapshot=self.snapshot,
            policy=self.policy,
            admission=self.admission,
            evictions=self.evictions,
            left=(of for of in heads.left() if of.first.id not in ahead),
            kept=self.backfill.nodes,
        )
        for reason, ids in heads.told(self._why_not):
            self._holds += moved.holds(ids, reason, ahead=ahead)
        if behind := heads.behind():
            reason = because(ReasonCode.BEHIND, admitted_count=len(self._begun))
            self._holds += moved.holds(behind, reason, ahead=ahead)
        made = Plan(
            tuple(admit for _, admit in self._begun.admits),
            (*self._preempts, *moved.preempts),
            tuple(self._holds),
            keeps=tuple(self.backfill.keeps),
            landings=(*landed.landings, *moved.landings),
            shrinks=less_evicted(self._shrinks, self._preempts),
        )
        if ahead or moved.landings:  # some on what is kept: what is free is not known
            return made
        of, admission, policy = self.snapshot, self.admission, self.policy
        holders, shares = self._holders, self._shares
        growth = Growth(snapshot=of, holders=holders, admission=admission, shares=shares)
        if grows := growth.run(made=made, max_admits=policy.max_admits):
            made = replace(made, grows=grows)
        up = Better(snapshot=of, holders=holders, admission=admission, evictions=self.evictions)
        return up.run(made=made, budget_milli_s=policy.consolidation_budget_milli_s)

    def _beside(self, draft: Draft) -> Admission:
        """Into the draft, of those from whom no quota is kept."""
        beside = Admission(
            snapshot=self.snapshot, draft=draft, shares=self._shares, caps=self._caps,
            windows=self.admission.windows,
        )  # fmt: skip
        beside.promised = self.admission.promised
        return beside

    def _why_not(self, pending: PendingView, request: Request) -> Reason:
        if request.options or not request.refused:  # else it never starts, whatever is capped
            reason = self.admission.why_none(pending=pending, request=request)
            if reason is not None:
                return reason
        reasons = [self.why_not(pending, request, option) for option in request.options]
        reasons += [refusal.reason for refusal in request.refused]
        return told_of(reasons)

    def why_not(self, pending: PendingView, request: Request, option: Option) -> Reason:
        """Of one that the plan left waiting: why it does not start with the option."""
        reason = self.admission.why_not(pending=pending, request=request, option=option)
        if (
            self.backfill.keeps
            and reason.code in OF_ROOM
            and self._whole.has_room(pending=pending, request=request, option=option)
        ):
            flavor, asked = option.needs[0]
            name = self._now.flavors[flavor].name
            reason = because(ReasonCode.KEPT_FOR_OTHERS, asked_milli=asked, flavor=name)
        return reason

    @cached_property
    def _whole(self) -> Admission:
        """Into the fleet with what is kept; asked when no more is kept."""
        draft = self._memory.draft("whole", snapshot=self.snapshot, holding=self.snapshot.holding)
        draft.admit((pending.project, admit.places) for pending, admit in self._begun.admits)
        soon = self.admission.promised
        for node in sorted(self._promised):
            if soon is not None:
                draft.tighten(node=node, other=soon.rooms[node])
        return self._beside(draft)

    def _backlog(self) -> "Backlog | None":
        """Who waits, in tables, where that saves time."""
        many = len(self.snapshot.pending) >= LEAST_SWEPT
        if many and not self.admission.windows and (sweep := compiled("sweep.sweep")):
            with suppress(sweep.Unfit):
                book = self._now.book
                new: type[Backlog] = sweep.Backlog
                timed = self._caps.budgets.timed
                return self._memory.backlog(self.snapshot, book=book, timed=timed, new=new)
        return None

    def _queue(self, backlog: "Backlog | None") -> "Heads | Sweep":
        """Of what is not decided; one that decides what is plain by itself where there is a
        backlog."""
        if backlog is not None and (sweep := compiled("sweep.sweep")):
            with suppress(sweep.Unfit):
                swept: Sweep = sweep.Sweep(
                    snapshot=self.snapshot, backlog=backlog, decided=self._decided,
                    holders=self._holders, admission=self.admission, shares=self._shares,
                    evictions=self.evictions, begun=self._begun, backfill=self.backfill,
                    guard=self._guard,
                )  # fmt: skip
                return swept
        timed = self._caps.budgets.timed
        now, by_limit = self._now, bool(self.admission.windows)
        requests = Requests(flavors=now.flavors, book=now.book, by_limit=by_limit, timed=timed)
        pending = [p for p in self.snapshot.pending if p.id not in self._decided]
        return Heads(pending=pending, request_of=requests.of, shares=self._shares)

    def request_of(self, pending: PendingView) -> Request | None:
        """The class of a workload; None when it was held, started or left out unseen."""
        if pending.id in self._decided:
            return None
        with suppress(KeyError):
            return self._heads.request_of(pending)
        return None

    def _round(self, heads: "Heads | Sweep") -> None:
        is_last = self.admission.tier == BORROWED
        while not self._begun.is_full and (pending := heads.next()) is not None:
            request = heads.request_of(pending)
            if not self._start(pending, request):
                self._guard.keep(
                    first_since=heads.first_since, request=request, leaving=self._leaving
                )
                if not is_last and pending.project in heads.mixed:
                    self.admission.claim(pending=pending, request=request)
                heads.close()

    def _hold(self, pending: PendingView, reason: Reason) -> None:
        self._holds.append(Hold((pending.id,), reason))

    def _start(self, pending: PendingView, request: Request) -> bool:
        """Admit it, or hold it for what it then waits for, or for what is kept for it; False when
        none of it helps, or a reservation would lack what it takes."""
        admit = self.admission.start(pending=pending, request=request)
        if admit is not None:
            self._begun.add(pending, admit)
            return True
        if self._caps.reached(pending) is not None:
            return False
        options = self.admission.of_tier(pending=pending, request=request)
        reason = None
        if self.evictions is not None and not self.evictions.idle:
            reason = self._wait(pending, request, options, self.evictions)
        if reason is None or reason.code is ReasonCode.RESERVED:
            reason = self._keep(pending, request, options) or reason
        if reason is None:
            return False
        if reason.code is ReasonCode.RESERVED:
            self.admission.reserve(pending=pending, request=request, reason=reason)
            return False
        self._hold(pending, reason)
        return True

    def _leaving(self) -> set[UnitId]:
        return given_up(self._preempts, self._shrinks)

    def _keep(
        self, pending: PendingView, request: Request, options: Sequence[Option]
    ) -> Reason | None:
        """Keep for it what it gets first; None when that does not help it."""
        kept = self._room_guard.keep(
            pending=pending, request=request, options=options, leaving=self._leaving
        )
        if isinstance(kept, Keep):
            return room_kept(kept, flavors=self._now.flavors, at=self.snapshot.at)
        return kept

    def _wait(
        self,
        pending: PendingView,
        request: Request,
        options: Sequence[Option],
        evictions: Evictions,
    ) -> Reason | None:
        """Evict for it, or let it wait for what is coming back; None when neither helps. RESERVED
        when that would but for a reservation.

        What it then waits for is its own for the rest of this plan: nobody after it may start on
        any of it. Later plans decide anew, in their order; who comes before it may be first.
        """
        own = evictions.candidates.own_amounts(pending=pending)
        options = [o for o in options if self.admission.kept.may_evict(pending, o)]
        guarantor = partial(self.admission.guarantor, pending=pending, gives_way=own)
        wait = evictions.find(
            pending=pending, request=request, options=options, book=self._now.book,
            guarantors={option: guarantor(option=option) for option in options},
            eligible_for=partial(self.eligible, evictions, pending),
        )  # fmt: skip
        if not isinstance(wait, Wait):
            return wait
        self.admission.kept.drop(pending)
        self._promise(wait.places, evictions)
        self._caps.add(workload=pending, holds=wait.places)
        preempts, shrinks = gives_way(preemptor=pending.id, victims=wait.victims)
        self._preempts, self._shrinks = self._preempts + preempts, self._shrinks + shrinks
        gone = len(preempts) + len(shrinks)
        return waits_for(places=wait.places, flavors=self._now.flavors, victims=gone)

    def eligible(
        self, evictions: Evictions, pending: PendingView, option: Option, guarantor: int
    ) -> Eligible:
        """Whom it may have evicted for the option, with that guarantor, as things stand."""
        return Eligible(
            candidates=evictions.candidates, pending=pending, option=option, soon=evictions.soon,
            book=self._now.book, guarantor=guarantor,
            late=self.admission.late(pending=pending, option=option),
            goes_ahead=partial(self._overtaken.comes_before, pending),
        )  # fmt: skip

    def _promise(self, places: Sequence[Place], evictions: Evictions) -> None:
        """Nobody may start on these any more, which somebody has in what the evictions expect."""
        self.admission.expect(evictions)
        for node in sorted({place.node for place in places}):
            self._now.tighten(node=node, other=evictions.soon.rooms[node])
            self._promised.add(node)
