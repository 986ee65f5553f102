"""What would let a workload start that waits: the smallest changes, each tried by another plan.

In the order of `Change`. No answer is wrong, for a plan was made with it; but a better one may be
missed: plans are bounded (`whatif.MOST_PLANS`), and numbers are searched by halves.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from scheduler.core.bounds.budgets import HOUR_S
from scheduler.core.cycle import Cycle
from scheduler.core.explaining.change import Change, Relaxation, Unit
from scheduler.core.explaining.checks import CheckCode, fails_at
from scheduler.core.explaining.smaller import Smaller, with_pod_set
from scheduler.core.explaining.whatif import Trials, accepting, funded, granted, later
from scheduler.core.guarding.backfill import Backfill
from scheduler.core.held.runs import ends_at
from scheduler.core.memory import Memory
from scheduler.core.plan import Admit, Hold, Keep
from scheduler.core.policy import Policy
from scheduler.core.quota.cohorts import FLEET
from scheduler.core.quota.ledger import Ledger
from scheduler.core.quota.portions import is_as_good
from scheduler.core.reasons import Reason, ReasonCode
from scheduler.core.request import Option, Request, Requests
from scheduler.core.snapshot import (
    PendingView,
    PodSetView,
    SetTopologyView,
    Snapshot,
    TopologyView,
)
from scheduler.core.sound import MOST_MILLI_S
from scheduler.core.units import ONE_MILLI, FlavorId

MOST_FLAVORS = 4
"""Flavors that are tried beside the accepted ones."""
MOST_OPTIONS = 4
"""Accepted flavors for which it is asked how much quota is lacking."""
LEAST_LIMIT_S = 60
"""A shorter run-time limit is of no use to anybody."""
_NEAR = 16
"""A wait is told this exactly: to one part in so many."""

_BEYOND_HELP = frozenset(
    {
        *(CheckCode.SOUND, CheckCode.ADMITTING, CheckCode.QUEUE),
        *(CheckCode.GATES, CheckCode.DEPENDENCIES, CheckCode.PODS, CheckCode.TURN),
    }
)
"""Who fails there waits for people, or for its turn: nothing that it asks for is at fault."""
_HELD_BY_QUOTA = frozenset(
    {
        *(CheckCode.OWN_QUOTA, CheckCode.FIRM, CheckCode.FREE, CheckCode.DOMAIN),
        *(CheckCode.CORES, CheckCode.MEMORY, CheckCode.FIT, CheckCode.KEPT),
    }
)
"""With more quota of its own it may start, or may take back what others borrow."""
_HELD_BY_ROOM = frozenset(
    {
        *(CheckCode.PROMISES, CheckCode.CLUSTERS, CheckCode.HARDWARE, CheckCode.OUTAGES),
        *(CheckCode.FREE, CheckCode.DOMAIN, CheckCode.CORES, CheckCode.MEMORY, CheckCode.FIT),
        CheckCode.KEPT,
    }
)

_HELD_BY_SIZE = frozenset({CheckCode.BUDGET, CheckCode.RESERVATIONS})
"""Nor is room or quota lacking there, and yet less of it may pass."""


def relaxations(
    *,
    snapshot: Snapshot,
    policy: Policy,
    cycle: Cycle,
    pending: PendingView,
    reason: Reason,
    late: Callable[[], bool],
) -> tuple[Relaxation, ...]:
    """What would help, the first of each kind, cheapest first. `cycle` planned the snapshot, and
    held the workload for the reason. No further plan is made once the caller says it is `late`."""
    if fails_at(reason) in _BEYOND_HELP:
        return ()
    return tuple(_Search(snapshot, policy, cycle, pending, reason, late).run())


class _Search:
    """The changes to one workload, tried one after another."""

    def __init__(
        self,
        snapshot: Snapshot,
        policy: Policy,
        cycle: Cycle,
        pending: PendingView,
        reason: Reason,
        late: Callable[[], bool],
    ) -> None:
        self._snapshot = snapshot
        self._policy = policy
        self._cycle = cycle
        self._pending = pending
        self._numbers = dict(reason.numbers)
        self._fails = fails_at(reason)
        self._trials = Trials(snapshot=snapshot, policy=policy, late=late)

    def run(self) -> Iterator[Relaxation]:
        request = self._cycle.request_of(self._pending)
        if self._fails is CheckCode.RETRY or request is None:
            yield from self._wait()
            return
        yield from self._flavor(request)
        yield from self._cluster()
        yield from self._topology()
        yield from self._run_limit()
        devices = self._fails in _HELD_BY_ROOM | _HELD_BY_QUOTA | _HELD_BY_SIZE
        smaller = Smaller(self._trials, self._pending, request)
        yield from smaller.run(self._numbers, devices=devices)
        yield from self._preemptible()
        yield from self._isolation(request)
        yield from self._quota(request)
        yield from self._budget()
        yield from self._moves()
        if self._fails is not CheckCode.PROMISES:  # whose reason says until when
            yield from self._wait()

    def _flavor(self, request: Request) -> Iterator[Relaxation]:
        flavors = {flavor.id: flavor for flavor in self._snapshot.flavors}
        known = Requests(flavors=flavors, book=self._cycle.admission.draft.book)
        accepted = {f for pod_set in self._pending.pod_sets for f in pod_set.flavors}
        wanted = [flavors[f] for f in sorted(accepted) if f in flavors]
        tried = 0
        for flavor in sorted(flavors.values(), key=lambda f: (f.name, f.id)):
            if flavor.id in accepted or not any(is_as_good(flavor, own) for own in wanted):
                continue
            pod_sets = tuple(
                replace(p, flavors=(*p.flavors, flavor.id)) for p in self._pending.pod_sets
            )
            asks = replace(self._pending, pod_sets=pod_sets)
            more = known.of(asks)
            if len(more.options) == len(request.options) or not self._is_allowed(more):
                continue
            tried += 1
            if tried > MOST_FLAVORS:
                return
            if self._trials.starts(asks):
                yield Relaxation(Change.FLAVOR, None, flavor.name)
                return

    def _is_allowed(self, request: Request) -> bool:
        """Whether the project could ever hold the option that is least preferred."""
        book, project = self._cycle.admission.draft.book, self._pending.project
        ceilings = [
            (book.ceiling(project=project, flavor=flavor), asked)
            for flavor, asked in request.options[-1].needs
        ]
        return all(ceiling is not None and asked <= ceiling for ceiling, asked in ceilings)

    def _cluster(self) -> Iterator[Relaxation]:
        if not self._pending.clusters or self._fails not in _HELD_BY_ROOM:
            return
        decision = self._trials.decide(replace(self._pending, clusters=()))
        if isinstance(decision, Admit):
            names = {cluster.id: cluster.name for cluster in self._snapshot.clusters}
            yield Relaxation(Change.CLUSTER, None, names[decision.cluster])

    def _topology(self) -> Iterator[Relaxation]:
        """Of all its pods, else of the first pod set of which that helps."""
        if self._fails not in _HELD_BY_ROOM:
            return
        asked = self._pending.topology
        if asked is not None and asked.required:
            found = self._wider(asked, lambda one: replace(self._pending, topology=one))
            if found is not None:
                yield found
                return
        for pod in self._pending.pod_sets:
            if pod.topology is not None and pod.topology.required:
                found = self._wider(pod.topology, partial(self._with_topology, pod))
                if found is not None:
                    yield replace(found, subject=pod.id)
                    return

    def _with_topology(self, pod: PodSetView, topology: SetTopologyView) -> PendingView:
        return with_pod_set(self._pending, replace(pod, topology=topology))

    def _wider[T: (TopologyView, SetTopologyView)](
        self, asked: T, asks: Callable[[T], PendingView]
    ) -> Relaxation | None:
        """The innermost level around the one asked for in which it starts, or None for no such
        one: only preferred; if that helps."""
        levels = self._snapshot.levels
        around = levels[: levels.index(asked.level)] if asked.level in levels else ()
        for level in reversed(around):
            if self._trials.starts(asks(replace(asked, level=level))):
                return Relaxation(Change.TOPOLOGY, asked.level, level)
        if self._trials.starts(asks(replace(asked, required=False))):
            return Relaxation(Change.TOPOLOGY, asked.level, None)
        return None

    def _run_limit(self) -> Iterator[Relaxation]:
        """As long a limit as lets it end before what it would run into, or as budgets cover."""
        at, limit_s = self._snapshot.at, self._pending.run_time_limit_s
        times = {window.starts_at: "" for window in self._snapshot.reservations}
        if self._cycle.backfill.shadow is not None:
            times[self._cycle.backfill.shadow] = ""
        covered = self._cycle.admission.caps.budgets.longest_s(self._pending)
        if covered is not None and self._fails is CheckCode.BUDGET:
            times[at + covered[1]] = covered[0].name
        for time in sorted(times, reverse=True):
            until = time - at
            if until < LEAST_LIMIT_S or (limit_s is not None and until >= limit_s):
                continue
            if self._trials.starts(replace(self._pending, run_time_limit_s=until)):
                yield Relaxation(Change.RUN_LIMIT, limit_s, until, Unit.SECONDS, times[time])
                return

    def _preemptible(self) -> Iterator[Relaxation]:
        if self._pending.preemptible or self._fails not in (CheckCode.OWN_QUOTA, CheckCode.FIRM):
            return
        if self._trials.starts(replace(self._pending, preemptible=True)):
            yield Relaxation(Change.PREEMPTIBLE, None, None)

    def _isolation(self, request: Request) -> Iterator[Relaxation]:
        """The first of its flavors with which it starts where less is accepted."""
        for flavor, reason in request.refused:
            if reason.code is not ReasonCode.ISOLATION:
                continue
            asks, of = accepting(self._snapshot, self._pending, flavor.isolation)
            if self._trials.starts(asks, of):
                least = str(dict(reason.numbers)["least"])
                new = flavor.isolation.value
                yield Relaxation(Change.ISOLATION, least, new, subject=flavor.name)
                return

    def _quota(self, request: Request) -> Iterator[Relaxation]:
        """The least that helps, of one flavor. Less may do for who then comes before others."""
        if self._fails not in _HELD_BY_QUOTA:
            return
        names = {flavor.id: flavor.name for flavor in self._snapshot.flavors}
        wanted = {each for o in request.options[:MOST_OPTIONS] for each in self._lacks(o)}
        for amount, flavor in sorted(wanted):
            more = partial(granted, self._snapshot, self._pending.project, flavor)
            decision = self._trials.decide(self._pending, more(amount))
            starts = isinstance(decision, Admit)
            if starts:  # a gang may start smaller with less
                amount = self._trials.least(self._pending, amount, more)
            if starts or _evicts(decision):
                yield Relaxation(Change.QUOTA, None, amount, Unit.MILLI, names[flavor], starts)
                return

    def _budget(self) -> Iterator[Relaxation]:
        """In whole hours, as budgets are set."""
        lacking = self._cycle.admission.caps.budgets.lacking(self._pending)
        if lacking is None or self._fails is not CheckCode.BUDGET:
            return
        budget, milli_s = lacking
        more_milli = -(-milli_s // (HOUR_S * ONE_MILLI)) * ONE_MILLI
        more = funded(self._snapshot, budget.id, more_milli * HOUR_S)
        if self._trials.starts(self._pending, more):
            yield Relaxation(Change.BUDGET, None, more_milli, Unit.MILLI, budget.name)

    def _moves(self) -> Iterator[Relaxation]:
        """What one plan has to lose by moving work for it; else for all who come before it too."""
        if self._fails not in _HELD_BY_ROOM or not self._policy.preemption:
            return
        now = self._policy.consolidation_budget_milli_s
        moved = self._trials.lost_by_moves(self._pending, MOST_MILLI_S) or ()
        for lost in dict.fromkeys(max(1, each) for each in moved):  # with 0 nothing is looked for
            milli = -(-lost // HOUR_S)
            if lost > now and self._trials.lost_by_moves(self._pending, milli * HOUR_S):
                yield Relaxation(Change.MOVES, now // HOUR_S, milli, Unit.MILLI, starts_now=False)
                return

    def _lacks(self, option: Option) -> Iterator[tuple[int, FlavorId]]:
        """What the option lacks to be let in, to take back what others borrow, to be what nobody
        else may borrow, and to be guaranteed; where that is of one flavor."""
        admission, project = self._cycle.admission, self._pending.project
        book, told = admission.draft.book, self._numbers.get("flavor")
        path = book.cohorts.paths[book.cohorts.number.get(project, FLEET)]
        lacking, beyond, kept, firm = [], [], [], []
        for flavor, asked in option.needs:
            used = book.used(project=project, flavor=flavor)
            lacks = asked - (admission.available(project, flavor) or 0)
            lacking.append((lacks, flavor))
            more = used + asked - book.nominal(project=project, flavor=flavor)
            beyond.append((more, flavor))
            own = _beyond_lent(book.ledger(flavor), path, asked) if lacks > 0 else 0
            kept.append((own, flavor))
            if self._fails is CheckCode.FIRM and admission.draft.flavors[flavor].name == told:
                firm.append((asked - int(self._numbers["available_milli"]), flavor))
        for amounts in (lacking, beyond, kept, firm):
            found = [each for each in amounts if each[0] > 0]
            if len(found) == 1:
                yield found[0]

    def _wait(self) -> Iterator[Relaxation]:
        """Until so much has ended by its run-time limit, or been given back, that it starts; at
        most a sixteenth longer than need be."""
        at = self._snapshot.at
        ends = (ends_at(held, at) for held in self._snapshot.holding)
        moments = {end for end in ends if end is not None}
        moments |= {window.ends_at for window in self._snapshot.reservations}
        moments.add(self._pending.not_before)
        times = sorted(time for time in moments if time > at)
        room_at = self._room_at()
        if room_at is None:
            return

        def starts_by(time: int) -> bool:
            return self._trials.starts(self._pending, later(self._snapshot, time))

        high, step = bisect_left(times, room_at), 1
        low = high - 1
        while high < len(times) and not starts_by(times[high]):
            if self._trials.is_spent or high == len(times) - 1:
                return
            low, high, step = high, min(high + step, len(times) - 1), 4 * step
        if high >= len(times):
            return
        while high - low > 1 and not self._trials.is_spent:
            if times[high] - times[low + 1] <= (times[high] - at) // _NEAR:
                break
            middle = (low + high) // 2
            low, high = (low, middle) if starts_by(times[middle]) else (middle, high)
        yield Relaxation(Change.WAIT, None, times[high] - at, Unit.SECONDS, starts_now=False)

    def _room_at(self) -> int | None:
        """When there is room, whoever else waits; None when work without a limit has to end."""
        request = self._cycle.request_of(self._pending)
        if request is None or self._fails not in _HELD_BY_ROOM:
            return self._snapshot.at
        backfill = Backfill(snapshot=self._snapshot, policy=self._policy, memory=Memory())
        kept = backfill.keep(
            pending=self._pending,
            request=request,
            options=request.options,
            started=(),
            promised=(),
            leaving=(),
            drafts=(self._cycle.admission.draft,),
        )
        return kept.starts_at if isinstance(kept, Keep) else None


def _evicts(decision: Admit | Hold | None) -> bool:
    waits = ReasonCode.WAITING_FOR_PREEMPTION
    return isinstance(decision, Hold) and decision.reason.code is waits


def _beyond_lent(ledger: Ledger, path: Sequence[int], asked: int) -> int:
    """How much more keeps all use within what the nearest member of the path with a lending limit
    does not lend; 0 without one."""
    for member in reversed(path):
        quota = ledger.quotas[member]
        if quota is not None and quota.lending_limit_milli is not None:
            used, lends = ledger.used[member] + asked, quota.lending_limit_milli
            return used - ledger.capacity[member] + lends
    return 0
