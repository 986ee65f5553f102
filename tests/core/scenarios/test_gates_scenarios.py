"""Gates: what people or other systems have to let in first, as told by others."""

import pytest

from scheduler.core.reasons import ReasonCode as Code
from scheduler.core.waits import GateView
from tests.core.build import AT, job, pods, queue, runs, snapshot
from tests.core.drawn.gated import behind
from tests.core.scenarios.scenario import Scenario, check, nodes

CASES = (
    Scenario(
        "work whose gate is not open is held with room to spare, and what comes after it starts",
        "Kueue: docs admission_check, a workload is admitted once all its checks are ready",
        snapshot(
            nodes=nodes(1),
            queues=[queue("a", h100=1)],
            pending=[behind(job("w", "a", priority=9)), job("x", "a")],
        ),
        starts="x",
        waits={"w": Code.GATE},
        numbers={"w": {"gate": "data", "owner": "ada", "gates_count": 1}},
    ),
    Scenario(
        "it is told which of several gates is waited for, and how many are not open",
        "Kueue: docs admission_check, the states of a workload's checks",
        snapshot(
            nodes=nodes(1),
            queues=[queue("a", h100=1)],
            pending=[behind(job("w", "a"), GateView("budget", "oz", AT - 60, AT + 60, 2))],
        ),
        waits={"w": Code.GATE},
        numbers={"w": {"gate": "budget", "deadline_at": AT + 60, "gates_count": 2}},
    ),
    Scenario(
        "unlike there, work behind a gate holds no quota while it waits",
        "Kueue: KEP-993, quota is reserved before the checks are made",
        snapshot(
            nodes=nodes(2),
            queues=[queue("a", h100=2)],
            pending=[
                behind(job("w", "a", pods(2), priority=9)),
                job("x", "a"),
                job("y", "a", submitted_at=9),
            ],
        ),
        starts="x y",
        waits={"w": Code.GATE},
    ),
    Scenario(
        "nobody is evicted for work whose gate is not open",
        "Kueue: KEP-993, preemption for work whose checks are pending",
        snapshot(
            nodes=nodes(1),
            queues=[queue("a", h100=1)],
            holding=[runs("r", "a", "n1/0", priority=-9)],
            pending=[behind(job("w", "a", priority=9))],
        ),
        waits={"w": Code.GATE},
    ),
    Scenario(
        "once its gates are open it goes by its priority, however long it waited for them",
        "Kueue: docs admission_check, a workload is admitted once all its checks are ready",
        snapshot(
            nodes=nodes(1),
            queues=[queue("a", h100=1)],
            pending=[job("w", "a", submitted_at=0), job("x", "a", priority=9)],
        ),
        starts="x",
        waits={"w": Code.QUOTA_USED},
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_who_waits_for_a_gate_takes_nothing_and_keeps_nobody_waiting(case: Scenario) -> None:
    check(case)
