"""Work that holds devices and leaves them unused."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from scheduler.core.policy import Policy
from scheduler.core.reasons import ReasonCode as Code
from scheduler.core.snapshot import HoldingView, QueueView
from tests.core.build import AT, job, pods, queue, runs, snapshot
from tests.core.scenarios.scenario import Scenario, check, nodes, singles

HOUR_S, TOLD_S = 3600, 600
SOURCE = "Run:ai: docs scheduling rules, idle GPU time-out"


def timed(of: QueueView) -> QueueView:
    """Freed after an hour, ten minutes after it was told."""
    return replace(of, idle_timeout_s=HOUR_S, idle_warning_s=TOLD_S)


def idle(of: HoldingView, for_s: int, told_s: int | None = TOLD_S) -> HoldingView:
    told_at = None if told_s is None else AT - told_s
    return replace(of, idle_since=AT - for_s, idle_warned_at=told_at)


def held(name: str = "idle", where: str = "n1/0", since_s: int = 9000) -> HoldingView:
    return runs(name, "a", where, since_s=since_s)


OWN = (timed(queue("a", h100=4, cpu=64)),)


def of(holding: Iterable[HoldingView], queues: Iterable[QueueView] = OWN) -> Scenario:
    """Without anybody who waits."""
    given = snapshot(nodes=nodes(4), queues=queues, holding=holding)
    return Scenario("", "", given)


CASES = (
    replace(
        of([idle(held(), HOUR_S)]),
        name="work that left its devices unused for the time-out is freed, though nobody waits",
        source=SOURCE,
        frees="idle",
    ),
    replace(
        of([idle(held(), HOUR_S - 1)]),
        name="work that is idle for less than the time-out goes on",
        source=SOURCE,
    ),
    replace(
        of([idle(held(), 9 * HOUR_S)], [queue("a", h100=4, cpu=64)]),
        name="where there is no time-out work may be idle for ever",
        source=SOURCE,
    ),
    replace(
        of([held()]),
        name="work whose use nobody measures is not freed",
        source="Run:ai: docs scheduling rules, idleness is told by GPU utilisation",
    ),
    replace(
        of([idle(held("untold"), HOUR_S, None), idle(held("told", "n1/1"), HOUR_S, TOLD_S - 1)]),
        name="unlike there, nobody is freed who was not told as long before as its project says",
        source=SOURCE,
    ),
    replace(
        of([idle(replace(held(), preemptible=False), 9 * HOUR_S)]),
        name="unlike there, work that may not be preempted is told and not freed",
        source=SOURCE,
    ),
    replace(
        of(
            [idle(held(since_s=HOUR_S), HOUR_S)],
            [replace(OWN[0], min_run_time_s=HOUR_S + 1)],
        ),
        name="idle work runs for its least run time all the same",
        source="KAI: docs, min-runtime",
    ),
    replace(
        of([idle(replace(held(), releasing=True), HOUR_S)]),
        name="what gives back already is not freed once more",
        source=SOURCE,
    ),
    replace(
        of([idle(held(), HOUR_S)]),
        name="where nothing is ever taken back idle work stays too",
        source=SOURCE,
        policy=Policy(preemption=False),
    ),
    Scenario(
        "idle work goes rather than busy work of lower priority",
        SOURCE,
        snapshot(
            nodes=nodes(2),
            queues=OWN,
            holding=[runs("low", "a", "n1/0", priority=-5), idle(held("idle", "n1/1"), HOUR_S)],
            pending=[job("w", "a", priority=9)],
        ),
        frees="idle",
        waits={"w": Code.WAITING_FOR_PREEMPTION},
    ),
    Scenario(
        "busy work goes where what is freed is not enough, and only as much as is still lacking",
        SOURCE,
        snapshot(
            nodes=nodes(3),
            queues=OWN,
            holding=[
                *singles("p q", "a", ["n1/0", "n1/2"], priority=-5),
                idle(held("idle", "n1/1"), HOUR_S),
            ],
            pending=[job("w", "a", pods(gpus=2), priority=9)],
        ),
        frees="idle",
        preempts={"w": "p"},
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_decides_as_the_scenario_says(case: Scenario) -> None:
    check(case)
