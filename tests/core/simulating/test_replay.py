"""Days that are played again: what a change does, and that nothing impossible is played."""

from collections.abc import Mapping
from dataclasses import replace
from random import Random

import pytest

from scheduler.core.cycle import plan
from scheduler.core.explaining.whatif import granted, weighted
from scheduler.core.faults import faults
from scheduler.core.memory import Memory as PlanMemory
from scheduler.core.plan import Plan
from scheduler.core.policy import Policy
from scheduler.core.simulating import replay as replays
from scheduler.core.simulating.held_time import Use
from scheduler.core.simulating.replay import (
    DAY_S,
    NOTHING,
    Arrival,
    Memory,
    Played,
    Replay,
    Waits,
    replay,
)
from scheduler.core.snapshot import PastView, Snapshot
from scheduler.core.units import CohortId, FlavorId, ProjectId, WorkloadId
from tests.core.build import AT, Quota, cohort, job, node, pods, queue, snapshot

HOUR = 3600
A, B = ProjectId("a"), ProjectId("b")
NO_MEMORY = Memory(kept=0)


def fleet(*, gpus: int = 4, quota: int = 0, at: int = AT) -> Snapshot:
    """Two projects that borrow all or most of one node."""
    queues = [queue(p, h100=Quota(quota, borrow=None)) for p in "ab"]
    spare = queue("c", h100=Quota(gpus - 2 * quota, lend=None))
    return replace(snapshot(nodes=[node("n1", gpus=gpus)], queues=[*queues, spare]), at=at)


def comes(
    name: str, project: str, *, after_s: int = 0, run_s: int = HOUR, gpus: int = 1
) -> Arrival:
    return Arrival(job(name, project, pods(gpus), submitted_at=AT + after_s), run_s)


def crowd(seed: int, count: int = 120) -> list[Arrival]:
    """More than the fleet takes."""
    pick = Random(seed)
    return [
        comes(
            f"w{nth}",
            pick.choice("ab"),
            after_s=pick.randrange(12 * HOUR),
            run_s=pick.randrange(60, 2 * HOUR),
            gpus=pick.choice([1, 1, 2]),
        )
        for nth in range(count)
    ]


def play(
    before: Snapshot,
    after: Snapshot,
    arrivals: list[Arrival],
    *,
    hours: int = 24,
    memory: Memory = NO_MEMORY,
    otherwise: Mapping[WorkloadId, Arrival | None] = NOTHING,
) -> Replay:
    return replay(
        before=before,
        after=after,
        arrivals=arrivals,
        policy=Policy(),
        memory=memory,
        until=before.at + hours * HOUR,
        otherwise=otherwise,
    )


def of(found: Replay, project: ProjectId) -> Played:
    return next(each for each in found.projects if each.project == project)


def test_work_waits_for_what_runs_and_no_longer() -> None:
    arrivals = [comes(f"w{n}", "a", gpus=4, run_s=HOUR) for n in range(3)]
    found = play(fleet(), fleet(), arrivals, hours=12)
    assert found.step_s == 43  # 12 hours in at most 1008
    waits = of(found, A).after
    assert waits.waiting_count == 0
    assert HOUR <= waits.mean_s <= HOUR + 2 * found.step_s
    assert 2 * HOUR <= waits.p90_s <= 2 * HOUR + 2 * found.step_s


def test_without_a_change_nothing_differs_and_it_is_told_the_same_again() -> None:
    found = play(fleet(), fleet(), crowd(1))
    assert [each.before for each in found.projects] == [each.after for each in found.projects]
    assert found == play(fleet(), fleet(), list(reversed(crowd(1))))


@pytest.mark.parametrize("seed", range(5))
def test_a_weight_moves_waits_from_one_to_the_other(seed: int) -> None:
    before = fleet()
    found = play(before, weighted(before, A, 8), crowd(seed))
    gains, loses = of(found, A), of(found, B)
    assert gains.after.mean_s < gains.before.mean_s
    assert loses.after.mean_s > loses.before.mean_s
    assert gains.arrivals_count + loses.arrivals_count == 120


def test_a_tenants_weight_is_one_among_its_siblings() -> None:
    queues = [queue(p, tenant=f"of-{p}", h100=Quota(0, borrow=None)) for p in "ab"]
    spare = queue("c", h100=Quota(4, lend=None))
    before = snapshot(
        nodes=[node("n1", gpus=4)],
        queues=[*queues, spare],
        cohorts=[cohort("of-a"), cohort("of-b")],
    )
    found = play(before, weighted(before, CohortId("of-a"), 8), crowd(2))
    assert of(found, A).after.mean_s < of(found, A).before.mean_s


def test_a_quota_lets_its_own_stop_what_is_borrowed() -> None:
    """Two hours of a's work hold all of it when b's comes; with a quota, b's evicts."""
    before = fleet()
    after = granted(before, B, FlavorId("h100"), 2000)
    after = granted(after, ProjectId("c"), FlavorId("h100"), -2000)
    arrivals = [comes(f"a{n}", "a", run_s=4 * HOUR) for n in range(4)]
    arrivals += [comes(f"b{n}", "b", after_s=HOUR) for n in range(2)]
    found = play(before, after, arrivals)
    assert of(found, B).before.mean_s >= 3 * HOUR
    assert of(found, B).after.mean_s <= 2 * found.step_s
    assert of(found, A).before.evictions_count == 0
    assert of(found, A).after.evictions_count == 2
    assert of(found, A).after.waiting_count == 0  # they started, and start anew


def test_what_was_used_counts_until_it_is_forgotten() -> None:
    """Two days a runs alone; then both want all of it."""
    arrivals = [comes("long", "a", gpus=4, run_s=2 * DAY_S)]
    arrivals += [
        comes(f"{p}{n}", p, after_s=2 * DAY_S - HOUR, gpus=4) for n in range(3) for p in "ab"
    ]
    forgets = play(fleet(), fleet(), arrivals, hours=72)
    remembers = play(fleet(), fleet(), arrivals, hours=72, memory=Memory(kept=2**29))
    assert of(remembers, B).after.mean_s < of(forgets, B).after.mean_s
    assert of(remembers, B).after.p90_s < of(forgets, B).after.p90_s


def test_what_was_used_before_counts_too() -> None:
    used = PastView(FlavorId("h100"), 4000 * DAY_S)
    before = fleet()
    queues = (replace(before.queues[0], past=(used,)), *before.queues[1:])
    arrivals = [comes(f"{p}{n}", p, gpus=4) for n in range(3) for p in "ab"]
    memory = Memory(kept=2**29)
    found = play(before, replace(before, queues=queues), arrivals, memory=memory)
    assert of(found, B).after.mean_s < of(found, B).before.mean_s


@pytest.mark.parametrize("seed", range(5))
def test_what_comes_no_otherwise_changes_no_play(seed: int) -> None:
    """Nor does it that more is said not to come than comes."""
    arrivals = crowd(seed)
    same = {each.pending.id: each for each in arrivals} | {WorkloadId("never"): None}
    assert play(fleet(), fleet(), arrivals, otherwise=same) == play(fleet(), fleet(), arrivals)


@pytest.mark.parametrize("seed", range(5))
def test_what_does_not_come_is_as_if_nobody_had_submitted_it(seed: int) -> None:
    arrivals = crowd(seed)
    refused = [each for each in arrivals if each.pending.project == A][::2]
    otherwise = dict.fromkeys(each.pending.id for each in refused)
    found = play(fleet(), fleet(), arrivals, otherwise=otherwise)
    without = play(fleet(), fleet(), [each for each in arrivals if each not in refused])
    assert [each.after for each in found.projects] == [each.before for each in without.projects]
    assert [each.refused_count for each in found.projects] == [len(refused), 0]
    assert of(found, B).before == of(play(fleet(), fleet(), arrivals), B).before
    assert of(found, B).after != of(found, B).before
    assert of(found, A).arrivals_count == of(without, A).arrivals_count + len(refused)


def test_of_whom_all_is_refused_no_wait_is_told() -> None:
    arrivals = [comes("w0", "a", gpus=4), comes("w1", "a", gpus=4), comes("w2", "b")]
    otherwise = dict.fromkeys(each.pending.id for each in arrivals[:2])
    found = play(fleet(), fleet(), arrivals, otherwise=otherwise)
    of_a = of(found, A)
    assert (of_a.arrivals_count, of_a.refused_count, of_a.cut_count) == (2, 2, 0)
    assert of_a.before == of_a.after == Waits(0, 0, 0, 0)
    assert of_a.use_before.used_milli_s
    assert of_a.use_after == Use({}, {})
    assert of(found, B).refused_count == 0
    assert of(found, B).after.mean_s < of(found, B).before.mean_s


def test_what_runs_shorter_makes_room_sooner() -> None:
    arrivals = [comes(f"w{n}", "a", gpus=4, run_s=4 * HOUR) for n in range(3)]
    otherwise = {each.pending.id: replace(each, run_s=HOUR) for each in arrivals}
    found = of(play(fleet(), fleet(), arrivals, otherwise=otherwise), A)
    assert (found.cut_count, found.refused_count) == (3, 0)
    assert 4 * HOUR <= found.before.mean_s <= 4 * HOUR + 200
    assert HOUR <= found.after.mean_s <= HOUR + 200
    assert found.after.evictions_count == 0


def test_another_priority_goes_first_in_the_other_alone() -> None:
    """The last of three, a short one, waits for the long one, or stops what runs."""
    runs_s = {"w0": HOUR, "w1": 4 * HOUR, "w2": HOUR}
    arrivals = [
        comes(name, "a", after_s=nth, run_s=run_s, gpus=4)
        for nth, (name, run_s) in enumerate(runs_s.items())
    ]
    last = arrivals[-1]
    first = replace(last, pending=replace(last.pending, priority=100))
    found = of(play(fleet(), fleet(), arrivals, otherwise={last.pending.id: first}), A)
    assert 2 * HOUR <= found.before.mean_s <= 2 * HOUR + 300
    assert found.after.mean_s < HOUR
    assert (found.before.evictions_count, found.after.evictions_count) == (0, 1)
    assert found.cut_count == found.refused_count == 0


def test_what_never_starts_waits_until_the_end() -> None:
    found = play(fleet(), fleet(), [comes("huge", "a", gpus=8, after_s=HOUR)], hours=5)
    assert of(found, A).after == Waits(4 * HOUR, 4 * HOUR, 1, 0)


def test_what_came_before_the_first_day_waits_from_then_on() -> None:
    found = play(fleet(), fleet(), [comes("old", "a", after_s=-DAY_S)])
    assert of(found, A).after == Waits(0, 0, 0, 0)


def test_held_queues_are_open() -> None:
    before = fleet()
    held = replace(
        before, queues=tuple(replace(each, held_by=(each.project,)) for each in before.queues)
    )
    found = play(held, before, [comes("w", "a")])
    assert of(found, A).before == of(found, A).after == Waits(0, 0, 0, 0)


def test_who_is_late_tells_how_far_it_came() -> None:
    asked = iter([False, False, True])
    arrivals = [comes("now", "a"), comes("then", "b", after_s=20 * HOUR)]
    found = replay(
        before=fleet(),
        after=fleet(),
        arrivals=arrivals,
        policy=Policy(),
        memory=NO_MEMORY,
        until=AT + 24 * HOUR,
        late=lambda: next(asked),
    )
    assert found.until == AT + 2 * found.step_s
    assert [each.project for each in found.projects] == [A]


def test_no_plan_is_of_a_fleet_that_cannot_be(monkeypatch: pytest.MonkeyPatch) -> None:
    plans = 0

    def seen(fleet: Snapshot, policy: Policy, memory: PlanMemory) -> Plan:
        nonlocal plans
        plans += 1
        assert faults(fleet) == ()
        return plan(fleet, policy, memory)

    monkeypatch.setattr(replays, "plan", seen)
    before = fleet(quota=1)
    play(before, weighted(before, A, 3), crowd(7))
    assert plans > 200


def test_plans_that_go_on_from_those_before_play_as_plans_made_from_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = fleet(quota=1)
    found = play(before, weighted(before, A, 3), crowd(8), memory=Memory(kept=2**29))
    monkeypatch.setattr(replays, "plan", lambda fleet, policy, _: plan(fleet, policy))
    assert found == play(before, weighted(before, A, 3), crowd(8), memory=Memory(kept=2**29))
