"""What is told of a grant, against what came of it: fleets that the planner itself works off, plan
after plan, with the grant and without, by run times that the simulation did not know."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from random import Random

from scheduler.core.cycle import plan
from scheduler.core.explaining.whatif import granted
from scheduler.core.policy import Policy
from scheduler.core.simulating.estimate import HORIZON_S
from scheduler.core.simulating.impact import Impact, impact
from scheduler.core.snapshot import HoldingView, PendingView, Snapshot
from scheduler.core.units import FlavorId, ProjectId
from tests.core.build import Quota, decide, holds, job, node, pods, queue, snapshot
from tests.core.rounds import carried_out

PROJECTS = "abcd"
GPUS = 32
GRANTS = 20
PASSES = 40
RIGHT = 17
"""Of GRANTS, at least."""
NEW_WORK_S = 5 * 86_400

type RunTimes = Mapping[ProjectId, tuple[int, ...]]
type Later = Sequence[tuple[int, PendingView]]
"""What is submitted when, ascending."""


@dataclass(frozen=True)
class Grant:
    before: Snapshot
    after: Snapshot
    run_times: RunTimes


@dataclass
class Score:
    """`effects` were told, `inside` of them came true within their interval; of those whose
    interval leaves no doubt whether waits grow, `certain`, `right` did as told."""

    effects: int = 0
    inside: int = 0
    certain: int = 0
    right: int = 0


def _work(pick: Random, name: str, at: int) -> PendingView:
    gpus = pick.choice([1, 1, 2, 4, 8])
    return job(name, pick.choice(PROJECTS), pods(gpus), submitted_at=at)


def _grant(seed: int) -> Grant:
    """Of 4 or 8 to one of four projects that share a full fleet, run times about log-normal."""
    pick = Random(seed)
    run_times = {}
    for project in PROJECTS:
        middle_s = pick.choice([1800, 3600, 7200])
        run_times[ProjectId(project)] = tuple(
            60 + int(pick.lognormvariate(0, 1) * middle_s) for _ in range(200)
        )
    queues = [queue(p, h100=Quota(pick.choice([4, 8]), borrow=None)) for p in PROJECTS]
    nodes = [node(f"n{i}", gpus=8) for i in range(GPUS // 8)]
    old = [_work(pick, f"r{i}", pick.randrange(1000)) for i in range(30)]
    asked = {pending.id: pending for pending in old}
    holding = [
        holds(admit, asked[admit.workload], since_s=pick.randrange(1, 3600))
        for admit in decide(snapshot(nodes=nodes, queues=queues, pending=old)).plan.admits
    ]
    pending = [_work(pick, f"w{i}", pick.randrange(1000)) for i in range(pick.randrange(12, 40))]
    before = snapshot(nodes=nodes, queues=queues, pending=pending, holding=holding)
    project, more = ProjectId(pick.choice(PROJECTS)), pick.choice([4000, 8000])
    return Grant(before, granted(before, project, FlavorId("h100"), more), run_times)


def _later(seed: int, of: Grant, load: float) -> Iterator[tuple[int, PendingView]]:
    """New work that alone would keep such a part of the fleet busy, for some days."""
    pick, at = Random(seed), of.before.at
    run_s = sum(sum(times) / len(times) for times in of.run_times.values()) / len(of.run_times)
    gpus = 16 / 5  # on average, by `_work`
    for nth in range(10**6):
        at += 1 + int(pick.expovariate(GPUS * load / (run_s * gpus)))
        if at > of.before.at + NEW_WORK_S:
            return
        yield at, _work(pick, f"x{nth}", at)


def _came(of: Snapshot, run_times: RunTimes, seed: int, later: Later) -> dict[str, int]:
    """In how many seconds what waits now first started."""
    begin, waiting, starts = of.at, {pending.id for pending in of.pending}, dict[str, int]()

    def end(held: HoldingView) -> int:
        """Given that it has run as long already; the same in every play of the seed."""
        started_at = held.started_at or held.admitted_at
        longer = [s for s in run_times[held.project] if started_at + s > begin]
        return started_at + Random(f"{seed} {held.id}").choice(sorted(longer))

    while starts.keys() != waiting and of.at - begin < HORIZON_S:
        new = [pending for at, pending in later if at <= of.at]
        later = later[len(new) :]
        stays = tuple(held for held in of.holding if held.releasing or end(held) > of.at)
        of = replace(of, pending=(*of.pending, *new), holding=stays)
        made = plan(of, Policy())
        for admit in made.admits:
            if admit.workload in waiting:
                starts.setdefault(admit.workload, of.at - begin)
        of, changed = carried_out(of, made)
        if not changed:
            next_at = min([*map(end, of.holding), *(at for at, _ in later[:1])])
            of = replace(of, at=max(of.at, next_at))
    return starts


def _wait(of: Snapshot, project: ProjectId, starts: Mapping[str, int]) -> int:
    """Until nine tenths of its work that waits have started."""
    waits = sorted(starts.get(p.id, HORIZON_S) for p in of.pending if p.project == project)
    return waits[-(-len(waits) * 9 // 10) - 1]


@cache
def _told(seed: int) -> Impact:
    of = _grant(seed)
    return impact(
        before=of.before,
        after=of.after,
        policy=Policy(),
        run_times=of.run_times,
        passes=PASSES,
        seed=seed,
    )


def _score(load: float) -> Score:
    score = Score()
    for seed in range(GRANTS):
        of = _grant(seed)
        later = tuple(_later(seed, of, load)) if load else ()
        was, is_ = (_came(each, of.run_times, seed, later) for each in (of.before, of.after))
        for effect in (each for each in _told(seed).effects if each.waiting_count):
            longer_s = _wait(of.after, effect.project, is_) - _wait(of.before, effect.project, was)
            score.effects += 1
            score.inside += effect.low_s <= longer_s <= effect.high_s
            if effect.low_s > 0 or effect.high_s < 0:
                score.certain += 1
                score.right += (effect.low_s > 0) == (longer_s > 0) and longer_s != 0
    return score


def test_what_was_told_comes_true_where_nothing_new_is_submitted() -> None:
    score = _score(load=0)
    assert score.effects > 2 * GRANTS, "not enough was told to judge by"
    assert score.inside * GRANTS >= RIGHT * score.effects, score
    assert score.right * GRANTS >= RIGHT * score.certain > RIGHT * GRANTS, score


def test_waits_grow_for_those_of_whom_it_was_told_even_as_new_work_comes() -> None:
    """By how much is another matter: of these effects only half are within what was told."""
    score = _score(load=0.8)
    assert score.right * GRANTS >= RIGHT * score.certain > RIGHT * GRANTS, score
