"""How long the work of some days would have waited, had one thing been otherwise: a weight, a
quota, or what may be submitted.

What was submitted then comes again, at the same times, to the fleet as it is now: twice, as it is
and otherwise. At each step the planner itself plans, and its plan is carried out, with evictions,
with gangs that grow and shrink, and with what fair share remembers of use. Each run takes as long
as it took then; what was evicted runs anew. So what differs is of the change alone.

It is not the past: nobody submits otherwise for it, nothing waits for others' ends or words or for
nodes, no reservation and no budget binds, and nothing is moved to make room. A start is told as
the step's time, in both alike. Where nothing came and nothing ended since a plan that changed
nothing, the next is made after AGAIN_S, for what goes by time alone.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from scheduler.core.cycle import plan
from scheduler.core.memory import Memory as PlanMemory
from scheduler.core.policy import Policy
from scheduler.core.simulating.carried import carried_out
from scheduler.core.simulating.held_time import HeldTime, Use
from scheduler.core.snapshot import HoldingView, PastView, PendingView, QueueView, Snapshot
from scheduler.core.units import FlavorId, ProjectId, WorkloadId

MOST_STEPS = 1008
"""Of a week, one each ten minutes."""
LEAST_STEP_S = 10
AGAIN_S = 3600
MOST_PLANS = 3
"""In a step: what evicts, what starts in the place of that, and what that leaves."""
DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class Arrival:
    """Work that came when `pending` was submitted, and how long it runs once it starts."""

    pending: PendingView
    run_s: int


NOTHING: Mapping[WorkloadId, Arrival | None] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Memory:
    """What fair share keeps of past use from one day (UTC) to the next: `kept` of `of`. Of 0 it
    keeps none at all, not of the same day either."""

    kept: int
    of: int = 2**30


@dataclass(frozen=True, slots=True)
class Waits:
    """Seconds until work first started, on average and of nine tenths of it; what did not start
    counts as if it did at the end. `evictions_count` is of stops before the end of a run."""

    mean_s: int
    p90_s: int
    waiting_count: int
    evictions_count: int


@dataclass(frozen=True, slots=True)
class Played:
    """What became of a project's work, `arrivals_count` of it, in the one fleet and the other.

    Of it `refused_count` does not come to the other; waits are of what comes to both, use is of
    all that comes to each. Of that `cut_count` runs shorter there, wherever it starts.
    """

    project: ProjectId
    arrivals_count: int
    before: Waits
    after: Waits
    use_before: Use
    use_after: Use
    refused_count: int = 0
    cut_count: int = 0


@dataclass(frozen=True, slots=True)
class Replay:
    """`projects` by id, of those whose work came until `until`: before the end where it was late.
    What came is looked at each `step_s`."""

    projects: tuple[Played, ...]
    until: int
    step_s: int


def replay(
    *,
    before: Snapshot,
    after: Snapshot,
    arrivals: Iterable[Arrival],
    policy: Policy,
    memory: Memory,
    until: int,
    otherwise: Mapping[WorkloadId, Arrival | None] = NOTHING,
    late: Callable[[], bool] = lambda: False,
) -> Replay:
    """From `before.at` on, in two idle fleets, both of that time. The same arguments, the same
    answer, but for where it ends once the caller says that it is `late`.

    What came earlier comes then, and waits from then on. `otherwise` is what comes to the second
    in another way, at the same time, or for None not at all.
    """
    ordered = sorted(arrivals, key=lambda each: (each.pending.submitted_at, each.pending.id))
    changed = [otherwise.get(each.pending.id, each) for each in ordered]
    policy = replace(policy, consolidation_budget_milli_s=0)
    was = _Play(before, policy, memory, ordered)
    is_ = _Play(after, policy, memory, filter(None, changed))
    at = before.at
    step_s = max(LEAST_STEP_S, -(-(until - at) // MOST_STEPS))
    while True:
        was.step(at)
        is_.step(at)
        if at >= until or late():
            break
        at = min(until, at + step_s)
    of_project: dict[ProjectId, list[_Twice]] = defaultdict(list)
    for each, then in zip(ordered, changed, strict=True):
        if each.pending.submitted_at <= at:
            of_project[each.pending.project].append((each, then))
    played = (_played(project, works, was, is_) for project, works in sorted(of_project.items()))
    return Replay(tuple(played), at, step_s)


type _Twice = tuple[Arrival, Arrival | None]
"""As it comes to the one fleet and to the other."""


def _played(project: ProjectId, works: Sequence[_Twice], was: "_Play", is_: "_Play") -> Played:
    come = [(each, then) for each, then in works if then is not None]
    of_both = [each.pending for each, _ in come]
    return Played(
        project,
        len(works),
        was.waits(of_both),
        is_.waits(of_both),
        was.held_time.of(project),
        is_.held_time.of(project),
        refused_count=len(works) - len(come),
        cut_count=sum(then.run_s < each.run_s for each, then in come),
    )


class _Play:
    """One fleet on its way through time, to which that comes, in its order."""

    def __init__(
        self, fleet: Snapshot, policy: Policy, memory: Memory, coming: Iterable[Arrival]
    ) -> None:
        self._policy, self._memory, self._begin = policy, memory, fleet.at
        self.held_time = HeldTime(fleet)
        self._coming = deque(coming)
        self._run_s = {each.pending.id: each.run_s for each in self._coming}
        self._past = {
            (queue.project, past.flavor): past.milli_s
            for queue in fleet.queues
            for past in queue.past
        }
        open_queues = tuple(replace(queue, held_by=()) for queue in fleet.queues)
        self._of = replace(
            fleet,
            queues=open_queues,
            pending=(),
            holding=(),
            reservations=(),
            landings=(),
            budgets=(),
        )
        self._plans = PlanMemory()
        self._planned_at = self._of.at
        self._rests = False
        self._starts: dict[WorkloadId, int] = {}
        self._evictions = Counter[WorkloadId]()

    def step(self, at: int) -> None:
        """To that time, with what came until then."""
        held_until = [(held, min(at, self._end(held))) for held in self._of.holding]
        self.held_time.add(held_until, since=self._of.at)
        self._remember(held_until, at)
        arrived = []
        while self._coming and self._coming[0].pending.submitted_at <= at:
            arrived.append(self._coming.popleft().pending)
        of = self._of
        runs = tuple(held for held in of.holding if self._end(held) > at)
        news = bool(arrived) or len(runs) < len(of.holding)
        self._of = replace(of, at=at, pending=(*of.pending, *arrived), holding=runs)
        if news or not self._rests or at - self._planned_at >= AGAIN_S:
            self._plan()

    def waits(self, works: Sequence[PendingView]) -> Waits:
        """Of those that have come by now; all 0 of none."""
        if not works:
            return Waits(0, 0, 0, 0)
        ascending = sorted(
            self._starts.get(each.id, self._of.at) - max(self._begin, each.submitted_at)
            for each in works
        )
        return Waits(
            mean_s=sum(ascending) // len(ascending),
            p90_s=ascending[-(-len(ascending) * 9 // 10) - 1],
            waiting_count=sum(each.id not in self._starts for each in works),
            evictions_count=sum(self._evictions[each.id] for each in works),
        )

    def _plan(self) -> None:
        self._planned_at = self._of.at
        for _ in range(MOST_PLANS):
            if not self._of.pending and not any(held.releasing for held in self._of.holding):
                self._rests = True
                return
            fleet = replace(self._of, queues=self._queues())
            made = plan(fleet, self._policy, self._plans)
            self._evictions.update(preempt.victim for preempt in made.preempts)
            for admit in made.admits:
                self._starts.setdefault(admit.workload, self._of.at)
            self._of, changed = carried_out(self._of, made)
            self._rests = not changed
            if not changed:
                return

    def _end(self, held: HoldingView) -> int:
        return held.admitted_at + max(1, self._run_s[held.id])

    def _remember(self, held_until: Iterable[tuple[HoldingView, int]], at: int) -> None:
        """What was used until then counts; a new day keeps a part of it."""
        if not self._memory.kept:
            return
        for held, until in held_until:
            for place in held.placements:
                key = held.project, place.flavor
                milli_s = place.amount_milli * (until - self._of.at)
                self._past[key] = self._past.get(key, 0) + milli_s
        for _ in range(at // DAY_S - self._of.at // DAY_S):
            self._past = {
                key: milli_s * self._memory.kept // self._memory.of
                for key, milli_s in self._past.items()
            }

    def _queues(self) -> tuple[QueueView, ...]:
        past: dict[ProjectId, list[PastView]] = defaultdict(list)
        for (project, flavor), milli_s in sorted(self._past.items()):
            past[project].append(PastView(FlavorId(flavor), milli_s))
        return tuple(replace(queue, past=tuple(past[queue.project])) for queue in self._of.queues)
