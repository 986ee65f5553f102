"""Who is told that its devices lie idle, and who is freed, on random fleets and by hand."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core import cycle
from scheduler.core.cycle import plan
from scheduler.core.laws.invariants import violations
from scheduler.core.memory import Memory
from scheduler.core.plan import Plan
from scheduler.core.policy import Policy
from scheduler.core.simulating.estimate import forecast
from scheduler.core.snapshot import HoldingView, QueueView, Snapshot
from scheduler.core.stopping import idle
from scheduler.core.stopping.idle import due_at, frees_at, warns_at
from scheduler.core.units import WorkloadId
from tests.core.build import AT, job, snapshot
from tests.core.corrupt import corrupted
from tests.core.drawn.fleets import shuffled, snapshots
from tests.core.scenarios.scenario import nodes
from tests.core.scenarios.test_idle_scenarios import HOUR_S, OWN, TOLD_S, held
from tests.core.scenarios.test_idle_scenarios import idle as idles

POLICY = Policy()


def with_idle(of: Snapshot, pick: Random) -> Snapshot:
    """Some of its projects have time-outs, and some of its work is idle, told or not."""

    def timed(queue: QueueView) -> QueueView:
        timeout_s, warning_s = pick.choice((None, 0, 60, 600)), pick.choice((0, 30))
        return replace(queue, idle_timeout_s=timeout_s, idle_warning_s=warning_s)

    def lies(held: HoldingView) -> HoldingView:
        since = pick.choice((None, of.at, of.at - 60, of.at - 5000))
        told_at = pick.choice((None, of.at, of.at - 30))
        return replace(held, idle_since=since, idle_warned_at=told_at)

    return replace(of, queues=tuple(map(timed, of.queues)), holding=tuple(map(lies, of.holding)))


@settings(max_examples=300, deadline=None)
@given(snapshots(), st.integers(0, 2**32), st.booleans())
def test_a_plan_that_frees_is_lawful_whatever_the_order_of_the_input(
    of: Snapshot, seed: int, preemption: bool
) -> None:
    of, policy = with_idle(of, Random(seed)), Policy(preemption=preemption)
    made = plan(of, policy)
    assert violations(of, made) == ()
    assert plan(shuffled(of, seed), policy) == made


@settings(max_examples=100, deadline=None)
@given(snapshots(12), st.integers(0, 2**32))
def test_it_frees_the_same_with_the_sweep_and_with_a_memory(of: Snapshot, seed: int) -> None:
    pick, memory = Random(seed), Memory()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cycle, "LEAST_SWEPT", 1)
        for _ in range(3):
            of = with_idle(of, pick)
            of = corrupted(of, pick, 1) if pick.random() < 0.2 else of
            swept = plan(of, POLICY, memory)
            patch.setattr(cycle, "LEAST_SWEPT", 10**9)
            assert swept == plan(of, POLICY)
            patch.setattr(cycle, "LEAST_SWEPT", 1)


@settings(max_examples=50, deadline=None)
@given(snapshots(12), st.integers(0, 2**32))
def test_once_what_was_freed_is_gone_nothing_more_is(of: Snapshot, seed: int) -> None:
    """No ring: what is freed does not queue again, so nobody is freed a second time."""
    of = with_idle(of, Random(seed))
    made = plan(of, POLICY)
    gone = set(made.frees) | {preempt.victim for preempt in made.preempts}
    then = replace(of, holding=tuple(h for h in of.holding if h.id not in gone), pending=())
    assert plan(then, POLICY).frees == ()


def test_the_longest_idle_go_first_where_they_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idle, "MOST", 2)
    holding = [idles(held(f"w{i}", f"n1/{i}"), HOUR_S + (i % 3)) for i in range(4)]
    given = snapshot(nodes=nodes(4), queues=OWN, holding=holding)
    assert plan(given, POLICY).frees == ("w1", "w2")


def test_what_is_freed_makes_room_in_the_estimate_and_does_not_queue_again() -> None:
    given = snapshot(
        nodes=nodes(1),
        queues=OWN,
        holding=[idles(held("idle", "n1/0"), HOUR_S)],
        pending=[job("w", "a")],
    )
    (found,) = forecast(snapshot=given, policy=POLICY, run_times={}, passes=1, seed=1)
    assert (found.workload, found.p50_s) == ("w", 0)


def test_it_is_told_before_and_never_freed_sooner_after_than_said() -> None:
    def when(warned_at: int | None) -> int:
        due = 1000 + HOUR_S
        return frees_at(since=1000, warned_at=warned_at, due_at=due, warning_s=TOLD_S)

    assert warns_at(since=1000, due_at=1000 + HOUR_S, warning_s=TOLD_S) == 1000 + HOUR_S - TOLD_S
    assert warns_at(since=1000, due_at=1060, warning_s=TOLD_S) == 1000
    assert when(None) == when(1000) == 1000 + HOUR_S
    assert when(9000) == 9000 + TOLD_S


def test_it_is_due_after_the_time_out_and_not_before_it_has_run_as_long_as_granted() -> None:
    def due(min_run_time_s: int) -> int:
        return due_at(since=1000, timeout_s=HOUR_S, runs_since=500, min_run_time_s=min_run_time_s)

    assert due(0) == due(HOUR_S) == 1000 + HOUR_S
    assert due(86_400) == 500 + 86_400


LAWFUL = idles(held(), HOUR_S)


@pytest.mark.parametrize(
    ("of", "queue", "told"),
    [
        (replace(LAWFUL, preemptible=False), OWN[0], "may not be freed"),
        (replace(LAWFUL, releasing=True), OWN[0], "may not be freed"),
        (replace(LAWFUL, idle_since=None), OWN[0], "is not idle for too long"),
        (replace(LAWFUL, idle_since=AT - 5), OWN[0], "is not idle for too long"),
        (LAWFUL, replace(OWN[0], idle_timeout_s=None), "is not idle for too long"),
        (replace(LAWFUL, idle_warned_at=None), OWN[0], "without having been told 600 s"),
        (LAWFUL, replace(OWN[0], min_run_time_s=9001), "before it has run for 9001 s"),
    ],
)
def test_the_law_tells_of_who_is_freed_and_may_not_be(
    of: HoldingView, queue: QueueView, told: str
) -> None:
    given = snapshot(nodes=nodes(4), queues=[queue], holding=[of])
    made = Plan(frees=(WorkloadId("idle"),))
    assert any(told in broken for broken in violations(given, made))
    assert violations(snapshot(nodes=nodes(4), queues=OWN, holding=[LAWFUL]), made) == ()


def test_the_law_tells_of_strangers_and_of_who_is_freed_twice() -> None:
    given = snapshot(nodes=nodes(4), queues=OWN, holding=[LAWFUL])
    made = Plan(frees=(WorkloadId("idle"), WorkloadId("idle"), WorkloadId("stranger")))
    broken = violations(given, made)
    assert "idle is freed 2 times" in broken
    assert "stranger may not be freed" in broken
