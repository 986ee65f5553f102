"""Moving up: work that had to start on a later of its flavors goes to an earlier one that is free.

Only who has asked for it, since a move is a restart. Decided when all that waits was, and all that
grows: nobody who waits, or waits again soon, accepts anything of the models it would go to. It
goes under the terms of all that is moved (`movers`): it is preemptible, has run for its least
time, and rests for a day. What it loses counts in the budget of consolidation. Its places are free
while it still holds the old ones, within the quota that is left beside those, and are kept until
it has started on them (`landing`). No pod set goes to a later flavor than it has, so none comes
back by this rule.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain

from scheduler.core.admitting.admission import Admission
from scheduler.core.bounds.limits import IN_VAIN
from scheduler.core.evicting.preempt import Evictions
from scheduler.core.held.candidates import Candidates
from scheduler.core.held.holders import Holders
from scheduler.core.held.victims import Held, Victim, loss_milli_s
from scheduler.core.moving.consolidate import may_return
from scheduler.core.moving.movers import Movers, again
from scheduler.core.placing.place import clusters_for, place_gang
from scheduler.core.plan import Landing, Place, Plan, Preempt
from scheduler.core.reasons import PreemptRule
from scheduler.core.request import Option, Request, Requests
from scheduler.core.snapshot import HoldingView, PendingView, PodSetView, Snapshot
from scheduler.core.turns import in_turn
from scheduler.core.units import ClusterId, FlavorId

MOST_LOOKS = 8
"""Workloads of one plan for which a better place is searched, plan after plan in turn."""


class Better:
    """What moves up in a plan that has decided on all that waits and all that grows."""

    def __init__(
        self,
        *,
        snapshot: Snapshot,
        holders: Holders,
        admission: Admission,
        evictions: Evictions | None,
    ) -> None:
        self._snapshot = snapshot
        self._holders = holders
        self._admission = admission
        self._draft = draft = admission.draft
        self._evictions = evictions
        self._requests = Requests(flavors=draft.flavors, book=draft.book)

    def run(self, *, made: Plan, budget_milli_s: int) -> Plan:
        """The plan `made`, and who moves up beside it. The draft is left as it was."""
        asking = self._holders.moving
        if not asking or self._evictions is None or budget_milli_s <= 0 or made.grows:
            return made
        able = self._able(self._evictions.candidates)
        wanted, left_milli_s = self._wanted(made), budget_milli_s
        preempts, landings = list(made.preempts), list(made.landings)
        mark = self._draft.checkpoint()
        for held in in_turn(able, at=self._snapshot.at, most=MOST_LOOKS):
            lost = loss_milli_s([Victim.of(held, PreemptRule.BETTER)])
            landing = self._better(held.holding, wanted) if lost <= left_milli_s else None
            if landing is not None:
                left_milli_s -= lost
                preempts.append(Preempt(landing.workload, landing.workload, PreemptRule.BETTER))
                landings.append(landing)
        self._draft.rollback(mark)
        landings.sort(key=lambda landing: landing.workload)
        return replace(made, preempts=tuple(preempts), landings=tuple(landings))

    def _wanted(self, made: Plan) -> set[str]:
        """The models of what somebody accepts who waits after the plan; "" is that of cores."""
        reasons, holding = made.reasons(), self._snapshot.holding
        gone = {preempt.victim for preempt in made.preempts}
        waiting: Iterable[PendingView | HoldingView] = chain(
            (
                p
                for p in self._snapshot.pending
                if p.id in reasons and reasons[p.id].code not in IN_VAIN
            ),
            (held for held in holding if held.releasing or held.id in gone),
        )
        accepted = {f for each in waiting for pod_set in each.pod_sets for f in pod_set.flavors}
        flavors = self._draft.flavors
        return {flavors[flavor].model for flavor in accepted if flavor in flavors}

    def _able(self, candidates: Candidates) -> list[Held]:
        """Who may move: higher priority first, then who runs the longest."""
        movers = Movers(
            snapshot=self._snapshot,
            candidates=candidates,
            draft=self._draft,
            may_return=partial(may_return, self._admission.caps, self._admission.windows),
        )
        found = [
            held
            for held in candidates.all()
            if held.is_whole
            and held.holding.move_to_better
            and held.holding.started_at is not None
            and len(held.placements) == len(held.holding.placements)
            and any(self._options(held.holding))
            and movers.may_move(held.holding)
        ]
        found.sort(key=lambda h: (-h.holding.priority, h.holding.admitted_at, h.holding.id))
        return found

    def _better(self, holding: HoldingView, wanted: set[str]) -> Landing | None:
        """With its best option that is free, in the draft; None leaves that as it was."""
        for request, option in self._options(holding):
            if wanted.isdisjoint({"", *(flavor.model for flavor in option.flavors)}):
                found = self._place(again(holding), request, option)
                if found is not None:
                    return Landing(holding.id, *found, self._snapshot.at)
        return None

    def _options(self, holding: HoldingView) -> Iterator[tuple[Request, Option]]:
        """Those better than what it has, the best first."""
        waiting = again(holding)
        request = self._requests.of(waiting)
        has = {placement.pod_set: placement.flavor for placement in holding.placements}
        now = [_rank(pod_set, has[pod_set.id]) for pod_set in waiting.pod_sets]
        for option in request.options:
            ranks = [
                _rank(pod_set, flavor.id)
                for pod_set, flavor in zip(waiting.pod_sets, option.flavors, strict=True)
            ]
            if ranks != now and all(new <= old for new, old in zip(ranks, now, strict=True)):
                yield request, option

    def _place(
        self, waiting: PendingView, request: Request, option: Option
    ) -> tuple[ClusterId, tuple[Place, ...]] | None:
        draft, kept = self._draft, self._admission.kept
        for flavor, asked in option.needs:
            available = self._admission.available(waiting.project, flavor)
            if available is None or available < asked:
                return None
            if flavor in kept.of(waiting.project):
                return None
        for cluster in clusters_for(draft=draft, request=request, option=option):
            places = place_gang(
                draft=draft,
                pending=waiting,
                request=request,
                option=option,
                cluster=cluster,
                spare={},
            )
            if places is not None:
                return cluster, places
        return None


def _rank(pod_set: PodSetView, flavor: FlavorId) -> int:
    """Its place in the order of what the pod set accepts; behind all for what it does not."""
    accepted = pod_set.flavors
    if flavor not in accepted:
        return len(accepted)
    return 0 if pod_set.any_order else accepted.index(flavor)
