"""What would become of who waits and who borrows, if one thing were otherwise: a quota, a weight.

Both fleets are simulated forward by `estimate`, pass by pass with the same random numbers: in each
pass a workload has the same run time in both. So a difference of two passes is one of the change
alone, and its spread is far smaller than that of either wait. What is told of a project in a pass
is the wait within which nine tenths of its work that waits now start; work that does not start by
the horizon counts as if it did then. Over the passes that is summed up by medians, the difference
by the middle nine tenths of passes: an interval of what was simulated, not of what nobody
simulates, such as work that nobody has submitted yet.

As in `estimate`, nothing is evicted after the plan that is made now, in either.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from scheduler.core.plan import Plan
from scheduler.core.policy import Policy
from scheduler.core.simulating.estimate import HORIZON_S, Simulation, Start, numbers, rank
from scheduler.core.snapshot import Snapshot
from scheduler.core.units import FlavorId, ProjectId, WorkloadId


@dataclass(frozen=True, slots=True)
class Effect:
    """On one project. `waiting_count` is of its work that waits now.

    Waits are seconds until nine tenths of that have started, HORIZON_S for no sooner than that, or
    at all. In nine of ten passes the second was between `low_s` and `high_s` longer than the
    first. `starts_count` is how many more start in the next plan, and of what `evicted_count` more
    lose in it, `returned_milli` is held of each flavor. `borrowed_milli` is what the project holds
    beyond its own nominal after that plan, in the one fleet and in the other, of flavors where
    that differs.
    """

    project: ProjectId
    waiting_count: int
    before_s: int
    after_s: int
    low_s: int
    high_s: int
    starts_count: int
    evicted_count: int
    returned_milli: Mapping[FlavorId, int]
    borrowed_milli: Mapping[FlavorId, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Impact:
    """`effects` of all projects that have work which waits, or loses any, or that borrow another
    amount, by id."""

    effects: tuple[Effect, ...]
    passes: int


def impact(
    *,
    before: Snapshot,
    after: Snapshot,
    policy: Policy,
    run_times: Mapping[ProjectId, tuple[int, ...]],
    passes: int,
    seed: int,
    late: Callable[[], bool] = lambda: False,
) -> Impact:
    """What differs between two fleets in which the same work waits and runs. The same arguments,
    the same answer. `run_times`, `passes` and `late` are as `estimate.forecast` has them."""
    was, is_ = (Simulation(each, policy, run_times) for each in (before, after))
    found = [(was.run(seed, nth), is_.run(seed, nth)) for nth in numbers(passes, late)]
    waiting: dict[ProjectId, list[WorkloadId]] = defaultdict(list)
    for pending in before.pending:
        waiting[pending.project].append(pending.id)
    starts = _starts(is_.plan, waiting)
    starts.subtract(_starts(was.plan, waiting))
    at_once = _AtOnce(starts, _losses(before, was.plan, is_.plan), _borrowed(was, is_))
    projects = waiting.keys() | at_once.losses.keys() | at_once.borrowed.keys()
    return Impact(
        effects=tuple(
            _effect(project, waiting.get(project, []), found, at_once)
            for project in sorted(projects)
        ),
        passes=len(found),
    )


type _Passes = Sequence[tuple[Mapping[WorkloadId, Start], Mapping[WorkloadId, Start]]]
type _Losses = Mapping[ProjectId, tuple[int, Mapping[FlavorId, int]]]
type _Borrowed = Mapping[ProjectId, Mapping[FlavorId, tuple[int, int]]]


class _AtOnce(NamedTuple):
    """What is otherwise in the next plan, by project."""

    starts: Counter[ProjectId]
    losses: _Losses
    borrowed: _Borrowed


def _effect(
    project: ProjectId, waiting: Sequence[WorkloadId], passes: _Passes, at_once: _AtOnce
) -> Effect:
    waits = [(_wait(waiting, was), _wait(waiting, is_)) for was, is_ in passes]
    longer = sorted(second - first for first, second in waits)
    evicted, returned = at_once.losses.get(project, (0, {}))
    return Effect(
        project=project,
        waiting_count=len(waiting),
        before_s=_nearest(sorted(first for first, _ in waits), 50),
        after_s=_nearest(sorted(second for _, second in waits), 50),
        low_s=_nearest(longer, 5),
        high_s=_nearest(longer, 95),
        starts_count=at_once.starts[project],
        evicted_count=evicted,
        returned_milli=returned,
        borrowed_milli=at_once.borrowed.get(project, {}),
    )


def _wait(waiting: Sequence[WorkloadId], starts: Mapping[WorkloadId, Start]) -> int:
    """Seconds within which nine tenths of those start in that pass; 0 of none."""
    waits = sorted(starts[id].in_s if id in starts else HORIZON_S for id in waiting)
    return _nearest(waits, 90) if waits else 0


def _nearest(ascending: Sequence[int], hundredths: int) -> int:
    return ascending[rank(len(ascending), hundredths)]


def _starts(made: Plan, waiting: Mapping[ProjectId, Sequence[WorkloadId]]) -> Counter[ProjectId]:
    admitted = {admit.workload for admit in made.admits}
    return Counter(
        {project: sum(id in admitted for id in ids) for project, ids in waiting.items()}
    )


def _losses(before: Snapshot, was: Plan, is_: Plan) -> _Losses:
    """Of each project the workloads that lose anything in the second plan alone, and how much of
    each flavor."""
    first, second = _taken(before, was), _taken(before, is_)
    found: dict[ProjectId, tuple[int, dict[FlavorId, int]]] = {}
    for held in before.holding:
        more = Counter(second.get(held.id, {}))
        more.subtract(first.get(held.id, {}))
        returned = {flavor: milli for flavor, milli in more.items() if milli > 0}
        if returned:
            count, so_far = found.get(held.project, (0, {}))
            found[held.project] = count + 1, dict(Counter(so_far) + Counter(returned))
    return found


def _borrowed(was: Simulation, is_: Simulation) -> _Borrowed:
    first, second = was.borrowed(), is_.borrowed()
    found: dict[ProjectId, dict[FlavorId, tuple[int, int]]] = defaultdict(dict)
    for project, flavor in sorted(first.keys() | second.keys()):
        both = first.get((project, flavor), 0), second.get((project, flavor), 0)
        if both[0] != both[1]:
            found[project][flavor] = both
    return found


def _taken(before: Snapshot, made: Plan) -> Mapping[WorkloadId, Mapping[FlavorId, int]]:
    """What a plan takes back of each workload, by flavor."""
    whole = {preempt.victim for preempt in made.preempts}
    parts = {(shrink.victim, id) for shrink in made.shrinks for id in shrink.placements}
    found: dict[WorkloadId, Counter[FlavorId]] = defaultdict(Counter)
    for held in before.holding:
        for placement in held.placements:
            if held.id in whole or (held.id, placement.id) in parts:
                found[held.id][placement.flavor] += placement.amount_milli
    return found
