"""Consolidation: at the end of a plan, moves for those whom nothing else has helped.

As in KAI's action of that name, only where every one who is stopped has room elsewhere; unlike
there, by the work that is lost, within `Policy.consolidation_budget_milli_s` for one plan, and
with the places kept until all have landed (`landing`).
"""

from collections.abc import Collection, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import partial
from itertools import islice

from scheduler.core.admitting.admission import Admission
from scheduler.core.admitting.order import Left
from scheduler.core.bounds.caps import Caps
from scheduler.core.bounds.limits import because, waits_for
from scheduler.core.bounds.windows import Windows
from scheduler.core.evicting.preempt import Evictions
from scheduler.core.moving.movers import Movers, again
from scheduler.core.moving.moves import Dearer, Moved, free_in_sum, make_room
from scheduler.core.plan import Hold, Landing, Preempt
from scheduler.core.policy import Policy
from scheduler.core.reasons import PreemptRule, Reason
from scheduler.core.request import Option, Request
from scheduler.core.snapshot import HoldingView, PendingView, Snapshot
from scheduler.core.turns import by_lot
from scheduler.core.units import ONE_MILLI, NodeId, WorkloadId

MOST_LOOKS = 4
"""Searches of one plan for those that come first, and for others: each may look at a cluster."""

type _Asked = tuple[Left, Option]


@dataclass(frozen=True, slots=True)
class Consolidated:
    """Who moves for whom, where all of them start, and what to tell those that were looked at."""

    preempts: list[Preempt] = field(default_factory=list)
    landings: list[Landing] = field(default_factory=list)
    reasons: dict[WorkloadId, Reason] = field(default_factory=dict)

    def holds(
        self, ids: tuple[WorkloadId, ...], reason: Reason, *, ahead: AbstractSet[WorkloadId]
    ) -> list[Hold]:
        """What a class is told, less those that went `ahead`: by default the reason."""
        own = ahead | self.reasons.keys()
        if not own or own.isdisjoint(ids):  # mostly none, and then each would be looked up
            return [Hold(ids, reason)]
        told: dict[Reason, list[WorkloadId]] = {}
        for id in ids:
            if id not in ahead:
                told.setdefault(self.reasons.get(id, reason), []).append(id)
        return [Hold(tuple(ids), reason) for reason, ids in told.items()]


def consolidate(
    *,
    snapshot: Snapshot,
    policy: Policy,
    admission: Admission,
    evictions: Evictions | None,
    left: Iterable[Left],
    kept: Collection[NodeId],
) -> Consolidated:
    """`left` are the classes that could not start in this plan, nor had anybody evicted for them,
    in their order. Nobody moves off the nodes `kept`.

    Asked last of all: the moves are made in what `evictions` expects, and told to nobody else.
    """
    made, budget = Consolidated(), policy.consolidation_budget_milli_s
    if budget <= 0 or evictions is None or evictions.candidates.none:
        return made
    looks = _looks(admission, evictions, left, at=snapshot.at)
    if not looks:
        return made
    movers = Movers(
        snapshot=snapshot,
        candidates=evictions.candidates,
        draft=evictions.soon,
        may_return=partial(may_return, admission.caps, admission.windows),
        kept=kept,
    )
    helped = set()
    for (pending, ids, request), option in looks:
        caps = admission.caps  # who was helped before counts too
        if (
            pending.id in helped
            or caps.reached(pending)
            or caps.lacks(pending=pending, option=option)
        ):
            continue
        found = make_room(
            movers=movers,
            pending=pending,
            request=request,
            option=option,
            budget_milli_s=budget,
            emptied=evictions.emptied,
        )
        if isinstance(found, Moved):
            helped.add(pending.id)
            budget -= found.lost_milli_s
            admission.caps.add(workload=pending, holds=found.places)
            _note(made, snapshot, pending, found)
        elif found is not None:
            reason = admission.why_not(pending=pending, request=request, option=option)
            told = _too_dear(reason, found, budget)
            made.reasons.update(dict.fromkeys(ids, told))
    return made


def _looks(
    admission: Admission, evictions: Evictions, left: Iterable[Left], *, at: int
) -> list[_Asked]:
    """Who is looked at: of the classes and options that are worth it the first, and some of the
    others by lot."""
    free = free_in_sum(draft=evictions.soon if evictions.coming else admission.draft)
    if not free:
        return []
    is_worth = partial(_is_worth, admission, free)
    asked = iter([(of, option) for of in left for option in of.request.options])
    first = list(islice(filter(is_worth, asked), MOST_LOOKS))
    others = filter(is_worth, by_lot(list(asked), at=at))
    return [*first, *islice(others, MOST_LOOKS)]


def _is_worth(admission: Admission, free_milli: int, asked: _Asked) -> bool:
    """Whether only room is lacking, and as much is free in sum."""
    (pending, _, request), option = asked
    flavors = {flavor.id for flavor in option.flavors}
    return (
        free_milli >= sum(amount for flavor, amount in option.needs if flavor in flavors)
        and admission.caps.reached(pending) is None
        and not admission.windows.runs_into(pending=pending, request=request)
        and admission.has_quota(pending=pending, option=option)
        and not admission.is_hopeless(pending=pending, request=request, option=option)
    )


def may_return(caps: Caps, windows: Windows, held: HoldingView, request: Request) -> bool:
    """Whether it might start again if it ended now, for all of its run-time limit. Not under a
    budget in safe mode, which covers what is left of that, and no more."""
    if caps.budgets.is_safe(held.project):
        return False
    waiting = again(held)
    if windows.runs_into(pending=waiting, request=request):
        return False
    caps.remove(workload=held, holds=held.placements)
    reached = caps.reached(waiting)
    caps.add(workload=held, holds=held.placements)
    return reached is None


def _note(made: Consolidated, snapshot: Snapshot, pending: PendingView, found: Moved) -> None:
    own = Landing(pending.id, found.cluster, found.places, snapshot.at)
    made.landings.extend((own, *found.landings))
    made.landings.sort(key=lambda landing: landing.workload)
    for landing in found.landings:
        made.preempts.append(Preempt(landing.workload, pending.id, PreemptRule.CONSOLIDATE))
    made.reasons[pending.id] = waits_for(
        places=found.places,
        flavors={flavor.id: flavor for flavor in snapshot.flavors},
        victims=len(found.landings),
    )


def _too_dear(reason: Reason, found: Dearer, budget_milli_s: int) -> Reason:
    """The reason, and what moving slices would cost."""
    numbers = dict(reason.numbers) | {
        "moves_budget_s": budget_milli_s // ONE_MILLI,
        "moves_count": found.slices,
        "moves_lost_s": -(-found.lost_milli_s // ONE_MILLI),
    }
    return because(reason.code, **numbers)
