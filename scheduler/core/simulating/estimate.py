"""When will it start? The plan itself, simulated forward with sampled ends of what runs.

First cut: nothing new arrives, nothing is evicted after the plan made now, and run times are drawn
one by one from what the project's finished work took, given that it has run as long already. Fewer
than LEAST_HISTORY finished runs are no ground for that: the run-time limit is taken, or nothing.
Victims, and work that was evicted and still gives back, wait again behind what they made way for.

Time goes in rounds: ends are seen together at the end of a step, which grows from a second to a
part of the time that has passed (1/32, coarser when many classes wait). A start is told as the end
of its step, so it is at most that part too late.

Cost: in each pass, each start and end of work moves the draft twice (some 20 us each), and each
round asks each class of identical requests once (some 5 us): at most MOST_ROUNDS rounds and about
MOST_QUESTIONS questions. Of a queue longer than MOST_PENDING only the first in order are
simulated; the others get no basis.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from heapq import heappop, heappush
from zlib import crc32

from scheduler.core.admitting.admission import Admission
from scheduler.core.admitting.order import Heads
from scheduler.core.bounds.budgets import Budgets
from scheduler.core.bounds.caps import Caps
from scheduler.core.bounds.windows import Windows
from scheduler.core.cycle import plan
from scheduler.core.faults import faults
from scheduler.core.fleet.draft import Draft
from scheduler.core.held.elastic import asks, keeping, staying
from scheduler.core.held.shrinks import given_up
from scheduler.core.plan import Admit, Place
from scheduler.core.policy import Policy
from scheduler.core.quota.guarantees import BORROWED, tiers
from scheduler.core.quota.share import Shares
from scheduler.core.reasons import ReasonCode
from scheduler.core.request import Requests
from scheduler.core.snapshot import HeldView, HoldingView, PendingView, Snapshot
from scheduler.core.sound import sound
from scheduler.core.submitted import ArrayView
from scheduler.core.units import FlavorId, ProjectId, UserId, WorkloadId

HORIZON_S = 14 * 24 * 3600
MOST_PENDING = 2000
MOST_PASSES = 200
MOST_ROUNDS = 400
MOST_QUESTIONS = 200_000
LEAST_HISTORY = 5


class Basis(StrEnum):
    """The weakest thing that a forecast rests on."""

    PLAN = "plan"  # it starts in the plan made now, or on what is being given back
    HISTORY = "history"  # ends drawn from finished work of the projects
    NODE = "node"  # nodes were asked for, and how long one takes is known
    LIMIT = "limit"  # some ends are declared run-time limits
    NONE = "none"  # no end is known, it starts in too few passes, or the queue is too long


@dataclass(frozen=True, slots=True)
class Forecast:
    """Seconds from the snapshot until it starts in half, and in nine tenths, of the passes.

    None when it starts in fewer passes than that within HORIZON_S; both None without a basis, as
    for all of a queue that is held, for what a reservation keeps waiting, and for what waits for
    the end of others.
    `passes` is how many were made.
    """

    workload: WorkloadId
    p50_s: int | None
    p90_s: int | None
    basis: Basis
    passes: int


def forecast(
    *,
    snapshot: Snapshot,
    policy: Policy,
    run_times: Mapping[ProjectId, tuple[int, ...]],
    passes: int,
    seed: int,
    late: Callable[[], bool] = lambda: False,
) -> tuple[Forecast, ...]:
    """A forecast for each pending workload, ascending by id. The same arguments, the same answer.

    `run_times` are seconds that the project's finished work ran, in any order; fewer than
    LEAST_HISTORY are passed over. `passes` beyond MOST_PASSES are not made, nor any but the first
    once the caller says that it is `late`: fewer passes, not none, answer a slow machine.
    """
    simulation = Simulation(snapshot, policy, run_times)
    starts = [simulation.run(seed, nth) for nth in numbers(passes, late)]
    return tuple(
        _summary(pending.id, [found.get(pending.id) for found in starts])
        for pending in sorted(snapshot.pending, key=lambda p: p.id)
    )


def numbers(passes: int, late: Callable[[], bool]) -> Iterator[int]:
    """Of the passes to make: MOST_PASSES at most; when it is late none begins but the first."""
    yield 0
    for nth in range(1, min(passes, MOST_PASSES)):
        if late():
            return
        yield nth


def rank(of: int, hundredths: int) -> int:
    """Where that part of so many ascending values ends, by nearest rank, counted from 0."""
    return max(0, -(-of * hundredths // 100) - 1)


@dataclass(frozen=True, slots=True)
class Start:
    """In how many seconds, in one pass, and what that rests on."""

    in_s: int
    basis: Basis


_KEPT = {ReasonCode.RESERVED, ReasonCode.BUDGET_USED, ReasonCode.RUN_TIME_UNKNOWN}
"""What waits for these starts at a time that no end of work tells."""
_ORDER = tuple(Basis)
_MASK = (1 << 64) - 1
_ROUNDS_EACH = 12
"""Rounds to the horizon, for each part of the fineness: steps grow as now_s // fineness."""


def _summary(workload: WorkloadId, starts: list[Start | None]) -> Forecast:
    found = sorted(start.in_s for start in starts if start is not None)
    p50, p90 = (_quantile(found, len(starts), hundredths) for hundredths in (50, 90))
    if p50 is None:
        return Forecast(workload, None, None, Basis.NONE, len(starts))
    weakest = max((start.basis for start in starts if start is not None), key=_weakness)
    return Forecast(workload, p50, p90, weakest, len(starts))


def _quantile(ascending: list[int], of: int, hundredths: int) -> int | None:
    """Among `of` values, those missing being later than any."""
    nth = rank(of, hundredths)
    return ascending[nth] if nth < len(ascending) else None


@dataclass(frozen=True, slots=True)
class _Run:
    """What runs in a simulation, since `since_s` (negative: before it began)."""

    id: WorkloadId
    project: ProjectId
    user: UserId
    array: ArrayView | None
    since_s: int
    run_time_limit_s: int | None
    held: Sequence[Place | HeldView]


class Simulation:
    """One draft, rolled back after each pass. `plan` is the one made now, before all of them, over
    what of the snapshot is no contradiction."""

    def __init__(
        self, snapshot: Snapshot, policy: Policy, run_times: Mapping[ProjectId, tuple[int, ...]]
    ) -> None:
        snapshot = sound(snapshot, faults(snapshot))
        covers = Budgets(snapshot)
        self._snapshot = replace(snapshot, budgets=())  # what they keep waiting is left out
        self._history = {
            project: sorted(times)
            for project, times in run_times.items()
            if len(times) >= LEAST_HISTORY
        }
        made = self.plan = plan(snapshot, policy)
        admitted = {admit.workload: admit.places for admit in made.admits}
        evicted = {preempt.victim for preempt in made.preempts}
        freed = set(made.frees)  # they do not queue again
        leaving = [h for h in snapshot.holding if h.releasing or h.id in evicted]
        shrunk = given_up(made.preempts, made.shrinks)
        stays = [
            keeping(h, tuple(p for p in staying(h) if (h.id, p.id) not in shrunk))
            for h in snapshot.holding
            if not h.releasing and h.id not in evicted and h.id not in freed
        ]
        grown = {grow.workload: grow.places for grow in made.grows}
        waiting = [p for p in snapshot.pending if p.id not in admitted]
        leaving = [h for h in leaving if h.pod_sets and covers.reached(asks(h)) is None]
        waiting += [asks(held) for held in leaving]
        closed = {queue.project for queue in snapshot.queues if queue.held}
        kept = {id for id, reason in made.reasons().items() if reason.code in _KEPT}
        waiting = [
            p
            for p in waiting
            if p.project not in closed
            and p.id not in kept
            and p.waits_for is None
            and p.gate is None
            and p.gathering is None
            and p.strays is None
        ]
        self._draft = Draft(snapshot=snapshot, holding=stays)
        self._windows = Windows(snapshot=snapshot, holding=stays)
        self._running = [_running(h, grown.get(h.id, ()), snapshot.at) for h in stays]
        for held in stays:
            for place in grown.get(held.id, ()):
                self._draft.add(project=held.project, holder=place)
        for pending in snapshot.pending:
            places = admitted.get(pending.id, ())
            for place in places:
                self._draft.add(project=pending.project, holder=place)
            if places:
                self._running.append(_started(pending, 0, places))
                self._windows.started(workload=pending, places=places)
        self._now = {workload: Start(0, Basis.PLAN) for workload in admitted}
        requests = Requests(flavors=self._draft.flavors, book=self._draft.book)
        self._requests = requests
        self._waiting = self._first(waiting)
        classes = {(p.project, p.user, p.array, requests.of(p)) for p in self._waiting}
        affordable = min(MOST_ROUNDS, MOST_QUESTIONS // max(1, len(classes)))
        self._fineness = next((n for n in (32, 16, 8, 4) if n * _ROUNDS_EACH <= affordable), 2)

    def borrowed(self) -> dict[tuple[ProjectId, FlavorId], int]:
        """What projects hold beyond their own nominal once that plan is carried out, in
        thousandths, without zeros."""
        book = self._draft.book
        beyond = {
            (project, flavor): used - book.nominal(project=project, flavor=flavor)
            for (project, flavor), used in book.usage().items()
        }
        return {key: milli for key, milli in beyond.items() if milli > 0}

    def run(self, seed: int, nth: int) -> dict[WorkloadId, Start]:
        """One pass: when each workload starts, of those that do within the horizon. That of the
        same number in another simulation draws the same run times."""
        mark = self._draft.checkpoint()
        shares = Shares(book=self._draft.book)
        heads, admission = self._queue(self._waiting, shares)
        ends = _Ends(self._history, _mix(seed, nth))
        for run in self._running:
            admission.caps.add(workload=run, holds=run.held)
            ends.add(run, 0)
        starts, now_s, basis = dict(self._now), 0, Basis.PLAN
        while True:
            for pending, admit in self._round(heads, admission):
                ends.add(_started(pending, now_s, admit.places), now_s)
                too_early_s = pending.not_before - self._snapshot.at
                starts[pending.id] = Start(max(now_s, too_early_s), basis)
            after_s = ends.next_s()
            if after_s is None or len(starts) == len(self._now) + len(self._waiting):
                break
            now_s = max(after_s, now_s + max(1, now_s // self._fineness))
            if now_s > HORIZON_S:
                break
            for run, of in ends.until(now_s):
                basis = max(basis, of, key=_weakness)
                self._end(run, shares, admission.caps)
            admission.reopen()
        self._draft.rollback(mark)
        return starts

    def _round(self, heads: Heads, admission: Admission) -> Iterator[tuple[PendingView, Admit]]:
        """Who starts now: tier after tier, as in `cycle`."""
        for tier in tiers(self._draft.book.cohorts):
            admission.begin(tier=tier)
            while (pending := heads.next()) is not None:
                request = heads.request_of(pending)
                admit = admission.start(pending=pending, request=request)
                if admit is not None:
                    yield pending, admit
                    continue
                if tier != BORROWED and pending.project in heads.mixed:
                    admission.claim(pending=pending, request=request)
                heads.close()
            heads.reopen()

    def _first(self, waiting: list[PendingView]) -> list[PendingView]:
        """As many as can be afforded, in the order of the queue now."""
        if len(waiting) <= MOST_PENDING:
            return waiting
        shares = Shares(book=self._draft.book)
        heads, _ = self._queue(waiting, shares)
        return [p for _ in range(MOST_PENDING) if (p := heads.next()) is not None]

    def _queue(self, waiting: list[PendingView], shares: Shares) -> tuple[Heads, Admission]:
        caps = Caps(self._snapshot)
        admission = Admission(
            snapshot=self._snapshot,
            draft=self._draft,
            shares=shares,
            caps=caps,
            windows=self._windows.copy(),
        )
        return Heads(pending=waiting, request_of=self._requests.of, shares=shares), admission

    def _end(self, run: _Run, shares: Shares, caps: Caps) -> None:
        caps.remove(workload=run, holds=run.held)
        for held in run.held:
            self._draft.remove(project=run.project, holder=held)
            shares.charge(project=run.project, flavor=held.flavor, amount_milli=-held.amount_milli)


class _Ends:
    """When what runs will end, drawn as it starts."""

    def __init__(self, history: Mapping[ProjectId, list[int]], seed: int) -> None:
        self._history = history
        self._seed = seed
        self._heap: list[tuple[int, int, _Run, Basis]] = []
        self._count = 0

    def add(self, run: _Run, now_s: int) -> None:
        """Draw its run time, given that it has run until `now_s`; without any it never ends."""
        drawn = self._run_time(run, now_s - run.since_s)
        if drawn is not None:
            self._count += 1
            end_s = max(now_s, run.since_s + drawn[0])
            heappush(self._heap, (end_s, self._count, run, drawn[1]))

    def next_s(self) -> int | None:
        return self._heap[0][0] if self._heap else None

    def until(self, now_s: int) -> Iterator[tuple[_Run, Basis]]:
        while self._heap and self._heap[0][0] <= now_s:
            _, _, run, basis = heappop(self._heap)
            yield run, basis

    def _run_time(self, run: _Run, elapsed_s: int) -> tuple[int, Basis] | None:
        history = self._history.get(run.project, [])
        longer = bisect_right(history, elapsed_s)
        if longer < len(history):
            drawn = _mix(self._seed, crc32(run.id.encode())) % (len(history) - longer)
            seconds = history[longer + drawn]
            if run.run_time_limit_s is not None and run.run_time_limit_s < seconds:
                return run.run_time_limit_s, Basis.LIMIT
            return seconds, Basis.HISTORY
        return None if run.run_time_limit_s is None else (run.run_time_limit_s, Basis.LIMIT)


def _running(held: HoldingView, grown: Sequence[Place], at: int) -> _Run:
    since_s = 0 if held.started_at is None else min(0, held.started_at - at)
    return _Run(
        held.id,
        held.project,
        held.user,
        held.array,
        since_s,
        held.run_time_limit_s,
        [*held.placements, *grown],
    )


def _started(pending: PendingView, now_s: int, places: Sequence[Place]) -> _Run:
    limit_s = pending.run_time_limit_s
    return _Run(pending.id, pending.project, pending.user, pending.array, now_s, limit_s, places)


def _weakness(basis: Basis) -> int:
    return _ORDER.index(basis)


def _mix(seed: int, n: int) -> int:
    """64 bits from two numbers: splitmix64 (Steele, Lea, Flood, OOPSLA 2014)."""
    z = (seed + (n + 1) * 0x9E3779B97F4A7C15) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)
