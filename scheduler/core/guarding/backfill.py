"""Room that is kept for who has waited too long, and what may use it meanwhile.

EASY backfill (Lifka, "The ANL/IBM SP Scheduling System", 1995; Mu'alem and Feitelson, IEEE TPDS
2001) behind a guard against starvation. Who has waited for `Policy.guard_s` and fits nowhere has
the places kept that it gets first, when what runs has ended by its run-time limits, one after
another: the shadow time. Nobody else starts on what it takes then of what is free now, unless it
ends by its own limit before that. So what goes ahead never delays it beyond its shadow time.

Work without a limit is taken to end last, the one that has run longest first; when that has to end
too there is no shadow time, and the places are kept from everybody. Only room is kept here,
not quota (`quota_guard`), and only from those who come after it in the order: who comes before it
may still be first.
With `Policy.most_kept` above one the same is done for the next in order (conservative backfill),
each beside those before it. Room is kept for the least of each, and who starts takes its surplus
too if that is free: so elastic work may put off those for whom room is kept beside it.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from heapq import merge
from itertools import chain, islice, takewhile

from scheduler.core.bounds.limits import because
from scheduler.core.bounds.windows import Windows
from scheduler.core.fleet.draft import Draft
from scheduler.core.fleet.space import free_milli
from scheduler.core.held.elastic import staying
from scheduler.core.held.runs import ORDER, Run, Runs
from scheduler.core.held.victims import ALL, UnitId
from scheduler.core.memory import Memory
from scheduler.core.node import mig
from scheduler.core.node.fit import Room
from scheduler.core.placing.place import would_place
from scheduler.core.plan import Admit, Keep, Place
from scheduler.core.policy import Policy
from scheduler.core.reasons import Reason, ReasonCode
from scheduler.core.request import Option, Request
from scheduler.core.snapshot import FlavorView, HeldView, HoldingView, PendingView, Snapshot
from scheduler.core.units import FlavorId, NodeId, ProjectId, WorkloadId

MOST_IN_VAIN = 16
"""Classes of one plan for which no end of others helps, before no further one is looked at."""
MOST_IN_VAIN_EACH = 2
"""The same of one project, so that none stands in the way of others."""
_NEVER = -(1 << 60)

type _Awaits = tuple[PendingView | HoldingView, Sequence[Place]]
"""Who waits for which places that are coming back."""


class Backfill:
    """What a plan keeps. Asked about who could not start, after evictions were of no help.

    `counted_on` are those whose ends are waited for on the nodes where room is kept: what they
    leave there is spoken for, so that nobody who comes after gets anything by their eviction.
    """

    def __init__(
        self,
        *,
        snapshot: Snapshot,
        policy: Policy,
        memory: Memory,
        windows: Windows | None = None,
    ) -> None:
        """Without `windows` room is kept whatever is reserved."""
        self._windows = windows
        self._snapshot = snapshot
        self._memory = memory
        self._holders = memory.holders(snapshot)
        self._policy = policy
        self.keeps: list[Keep] = []
        self.counted_on: set[WorkloadId] = set()
        self._kept: list[_Awaits] = []
        self._in_vain: set[tuple[ProjectId, Request]] = set()
        self._most_milli: dict[FlavorId, int] = {}

    @property
    def waited_since(self) -> int:
        """Room is kept for who was submitted by then; before all times when for nobody further."""
        guard_s, full = self._policy.guard_s, len(self.keeps) >= self._policy.most_kept
        if guard_s is None or full or len(self._in_vain) >= MOST_IN_VAIN:
            return _NEVER
        return self._snapshot.at - guard_s

    def may_keep(self, *, pending: PendingView, request: Request) -> bool:
        """Whether it has waited long enough, and its like was not looked at in vain, nor less of
        the same flavors: what is not there stands in nobody's way."""
        project = pending.project
        of_project = sum(1 for other, _ in self._in_vain if other == project)
        return (
            pending.submitted_at <= self.waited_since
            and of_project < MOST_IN_VAIN_EACH
            and (project, request) not in self._in_vain
            and any(map(self._may_be_there, request.options))
        )

    def _may_be_there(self, option: Option) -> bool:
        """Whether there may be as much at once as it asks for, were all that runs to end."""
        return all(asked <= self._most_milli.get(flavor, asked) for flavor, asked in option.needs)

    def _note_most(self, ended: Draft, option: Option) -> None:
        """All that runs has ended there, and the option did not fit."""
        for flavor in option.flavors:
            free = (
                free_milli(draft=ended, cluster=cluster, flavor=flavor)
                for cluster in ended.clusters
            )
            self._most_milli[flavor.id] = max(free, default=0)

    @property
    def nodes(self) -> set[NodeId]:
        """Where room is kept."""
        return {place.node for keep in self.keeps for place in keep.places}

    @property
    def shadow(self) -> int | None:
        """What ends by then may use all that is kept; None when nothing is kept, or from all."""
        times = [keep.starts_at for keep in self.keeps]
        known = [time for time in times if time is not None]
        return min(known) if known and len(known) == len(times) else None

    def keep(
        self,
        *,
        pending: PendingView,
        request: Request,
        options: Iterable[Option],
        started: Sequence[tuple[PendingView, Admit]],
        promised: Iterable[_Awaits],
        leaving: Collection[UnitId],
        drafts: Sequence[Draft],
    ) -> Keep | Reason | None:
        """Keep in `drafts` the places that the first of `options` gets first; None when none does,
        or why, when it would but for a reservation that would lack them then.

        `started` is what the plan starts beside what runs. Who is `leaving` is gone before all
        others, and what they leave is `promised` to those that wait for it. `drafts` begin with
        the fleet as it is.
        """
        runs = self._runs(started, leaving)
        ahead = self._ahead(leaving)
        awaited = [*promised, *self._kept]
        begun = ((workload, admit.places) for workload, admit in started)
        ahead.admit((workload.project, places) for workload, places in chain(begun, awaited))
        reserved: Reason | None = None
        for option in options:
            mark = ahead.checkpoint()
            found = _first(ahead, runs, pending, request, option, self._note_most)
            if found is None:
                continue
            ended, places = found
            starts_at: int | None = self._snapshot.at + 1
            if ended:
                last = runs[ended - 1]
                starts_at = None if last.ends_late else last.ends_at
            idle = [part for p in places if (part := _idle(drafts[0].rooms[p.node], p))]
            why = self._why_reserved_then(
                ahead, islice(runs, ended, None), awaited, pending, places, starts_at
            ) or self._why_reserved_till_then(drafts[0], pending, idle, starts_at)
            if why is not None:
                ahead.rollback(mark)
                reserved = reserved or why
                continue
            for place in places:
                ahead.add(project=pending.project, holder=place)
            nodes = {place.node for place in places}
            self.counted_on |= {
                run.id for run in runs[:ended] if any(p.node in nodes for p in run.holders)
            }
            for node in sorted(nodes):
                for draft in drafts:
                    draft.tighten(node=node, other=ahead.rooms[node])
            idle_milli = sum(place.amount_milli for place in idle)
            self.keeps.append(Keep(pending.id, starts_at, places, idle_milli))
            self._kept.append((pending, places))
            return self.keeps[-1]
        self._in_vain.add((pending.project, request))
        return reserved

    def _why_reserved_then(
        self,
        ahead: Draft,
        runs: Iterable[Run],
        awaited: Iterable[_Awaits],
        pending: PendingView,
        places: Sequence[Place],
        starts_at: int | None,
    ) -> Reason | None:
        """Why it may not start at its shadow time, when these still run and those have started for
        whom room is made, or kept. A time that nobody knows is taken to be now."""
        if not self._windows:
            return None
        at = self._snapshot.at
        still = [
            (run.project, run.holders, None if run.ends_late else run.ends_at) for run in runs
        ]
        for workload, promised in awaited:
            limit_s = workload.run_time_limit_s
            still.append((workload.project, promised, None if limit_s is None else at + limit_s))
        then = self._windows.then(at=at if starts_at is None else starts_at, runs=still)
        return then.why_not(draft=ahead, pending=pending, places=places)

    def _why_reserved_till_then(
        self, now: Draft, pending: PendingView, idle: Sequence[Place], starts_at: int | None
    ) -> Reason | None:
        """Why what is `idle` may not be kept from others so long: as if it started on that, and
        ended at its shadow time."""
        if not self._windows or not idle:
            return None
        for_s = None if starts_at is None else starts_at - self._snapshot.at
        waits = replace(pending, run_time_limit_s=for_s)
        return self._windows.why_not(draft=now, pending=waits, places=idle)

    def _ahead(self, leaving: Collection[UnitId]) -> Draft:
        """The fleet with what runs, once who is leaving has left."""
        holding = self._holders.staying(self._snapshot.holding)
        ahead = self._memory.draft("ahead", snapshot=self._snapshot, holding=holding)
        for held in holding if leaving else ():
            for placement in held.placements:
                if leaves(held, placement, leaving):
                    ahead.remove(project=held.project, holder=placement)
        return ahead

    def _runs(
        self, started: Iterable[tuple[PendingView, Admit]], leaving: Collection[UnitId]
    ) -> Runs:
        """What runs, once who is leaving has left, and what the plan starts."""
        snapshot, at = self._snapshot, self._snapshot.at
        ends, own = self._memory.ends(snapshot), list[Run]()
        changed = {held.id for held in self._holders.giving} | {id for id, _ in leaving}
        count = len(ends)
        for held in snapshot.holding if changed else ():
            if held.id in changed and held.placements:
                count -= 1
                stays = [p for p in staying(held) if not leaves(held, p, leaving)]
                if stays:
                    own.append(Run.of(held, stays, at=at))
        own += (Run.begun(pending, admit.places, at=at) for pending, admit in started)
        others = (run for run in ends.runs(at=at) if run.id not in changed)
        return Runs(merge(others, sorted(own, key=ORDER), key=ORDER), count=count + len(own))


def leaves(held: HoldingView, placement: HeldView, leaving: Collection[UnitId]) -> bool:
    """Whether it goes with its workload, or by itself."""
    return (held.id, ALL) in leaving or (held.id, placement.id) in leaving


def room_kept(kept: Keep, *, flavors: Mapping[FlavorId, FlavorView], at: int) -> Reason:
    """What to tell who waits for the places."""
    flavor = kept.places[0].flavor
    numbers: dict[str, int | str] = {
        "kept_milli": sum(p.amount_milli for p in kept.places if p.flavor == flavor),
        "flavor": flavors[flavor].name,
    }
    if kept.starts_at is not None:
        numbers["starts_in_s"] = kept.starts_at - at
    return because(ReasonCode.ROOM_KEPT, **numbers)


def _idle(room: Room, place: Place) -> Place | None:
    """The place with those of its devices and slices that are free in the room, each as a whole;
    None without any."""
    free = tuple(each for each in place.spans if not room.taken[each[0]] & mig.mask(each[1]))
    if not free:
        return None
    amount_milli = place.amount_milli * len(free) // len(place.spans)
    return replace(place, spans=free, amount_milli=amount_milli)


def _first(
    ahead: Draft,
    runs: Sequence[Run],
    pending: PendingView,
    request: Request,
    option: Option,
    in_vain: Callable[[Draft, Option], None],
) -> tuple[int, tuple[Place, ...]] | None:
    """How many of the runs have to end, and the places then; `ahead` is left as it is then.

    None leaves it as it was, and `in_vain` is told of it once all have ended. The first of the
    ends is searched for in steps that double, and then by halves.
    """

    def fits() -> tuple[Place, ...] | None:
        return next(
            would_place(draft=ahead, pending=pending, request=request, option=option), None
        )

    def end(some: Sequence[Run]) -> int:
        mark = ahead.checkpoint()
        for run in some:
            for holder in run.holders:
                ahead.remove(project=run.project, holder=holder)
        return mark

    start, low, step = ahead.checkpoint(), 0, 1
    if places := fits():
        return 0, places
    while True:
        high = min(low + step, len(runs))
        if low == high:
            in_vain(ahead, option)
            ahead.rollback(start)
            return None
        mark = end(runs[low:high])
        if fits():
            break
        low, step = high, 2 * step
    while high - low > 1:
        ahead.rollback(mark)
        middle = (low + high) // 2
        mark = end(runs[low:middle])
        if fits():
            high = middle
        else:
            low, mark = middle, end(runs[middle:high])
    # All that ends at that moment is back by then. Of a part of it the next plan might choose
    # other places, and leave none to those for whom room is kept beside it.
    then = runs[high - 1]
    alike = takewhile(lambda run: run.ends_at == then.ends_at, islice(runs, high, None))
    last = high if then.ends_late else high + sum(1 for _ in alike)
    end(runs[high:last])
    places = fits()
    return None if places is None else (last, places)
