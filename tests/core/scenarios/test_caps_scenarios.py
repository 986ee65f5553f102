"""Caps of projects and of users, and queues that are held."""

from dataclasses import replace

import pytest

from scheduler.core.reasons import ReasonCode as Code
from scheduler.core.snapshot import CapsView, PendingView, QueueView
from scheduler.core.units import UserId
from tests.core.build import (
    job,
    pods,
    queue,
    runs,
    snapshot,
)
from tests.core.scenarios.scenario import FREE, Scenario, check, gpus, nodes, singles


def capped(
    running: int | None = None, user: int | None = None, gpus: int | None = None
) -> QueueView:
    milli = None if gpus is None else gpus * 1000
    return replace(queue("a", h100=8, cpu=64), caps=CapsView(running, user, milli))


def of(user: str, *names: str) -> list[PendingView]:
    return [job(name, "a", submitted_at=i, user=user) for i, name in enumerate(names)]


CASES = (
    Scenario(
        "of a queue that is held nothing starts, and its running work stays",
        "Kueue: KEP-1284, StopPolicy Hold",
        snapshot(
            nodes=nodes(4),
            queues=[replace(queue("a", h100=4), held_by=("tenant a",)), queue("b", h100=2)],
            holding=[runs("r", "a", "n1/0")],
            pending=[job("w", "a", priority=9), job("x", "b")],
        ),
        starts="x",
        waits={"w": Code.QUEUE_HELD},
    ),
    Scenario(
        "a queue that is held takes nothing back, and what it lends stays lent",
        "Armada: scheduling_algo_test, multi-queue scheduling with paused and non-paused queue",
        snapshot(
            nodes=nodes(2),
            queues=[replace(queue("a", h100=2), held_by=("tenant a",)), queue("b", h100=FREE)],
            holding=[runs("b1", "b", "n1/0")],
            pending=[job("w", "a", pods(gpus=2)), job("x", "b")],
        ),
        starts="x",
        waits={"w": Code.QUEUE_HELD},
    ),
    Scenario(
        "work of a queue that is held may be evicted for others",
        "Volcano: reclaim_test, can not reclaim resources when queue is not open",
        snapshot(
            nodes=nodes(1),
            queues=[queue("a", h100=1), replace(queue("b", h100=FREE), held_by=("tenant a",))],
            holding=[runs("b1", "b", "n1/0")],
            pending=[job("w", "a")],
        ),
        reclaims={"w": "b1"},
    ),
    Scenario(
        "no more workloads of a project run than its cap",
        "YuniKorn: partition_test, TestTryAllocateMaxRunning",
        snapshot(
            nodes=nodes(4),
            queues=[capped(running=2)],
            holding=[runs("r", "a", "n1/0")],
            pending=[job("w1", "a"), job("w2", "a", submitted_at=1)],
        ),
        starts="w1",
        waits={"w2": Code.CAP_REACHED},
        numbers={"w2": {"cap": "max_running", "limit_count": 2, "used_count": 2}},
    ),
    Scenario(
        "a cap that was lowered stops nothing that runs",
        "YuniKorn: queue_test, TestQueueSetMaxRunningApps",
        snapshot(
            nodes=nodes(4),
            queues=[capped(running=1)],
            holding=singles("r1 r2", "a", gpus("n1", 0, 2)),
            pending=[job("w", "a", priority=9)],
        ),
        waits={"w": Code.CAP_REACHED},
        numbers={"w": {"used_count": 2}},
    ),
    Scenario(
        "nobody is evicted for work that a cap would hold back",
        "YuniKorn: queue_test, TestQueue_canRunApp",
        snapshot(
            nodes=nodes(1),
            queues=[capped(running=1)],
            holding=[runs("low", "a", "n1/0", priority=-1)],
            pending=[job("w", "a", priority=9)],
        ),
        waits={"w": Code.CAP_REACHED},
    ),
    Scenario(
        "a user at the cap waits, and another starts",
        "YuniKorn: partition_test, TestLimitMaxApplications",
        snapshot(
            nodes=nodes(4),
            queues=[capped(user=1)],
            pending=[*of("ada", "a1", "a2"), *of("ben", "b1")],
        ),
        starts="a1 b1",
        waits={"a2": Code.CAP_REACHED},
        numbers={"a2": {"cap": "user_max_running", "limit_count": 1}},
    ),
    Scenario(
        "a user holds no more devices than the cap",
        "YuniKorn: partition_test, TestUserHeadroom",
        snapshot(
            nodes=nodes(8),
            queues=[capped(gpus=3)],
            holding=[replace(runs("r", "a", "n1/0", "n1/1"), user=UserId("ada"))],
            pending=[
                job("large", "a", pods(2), user="ada"),
                job("small", "a", user="ada", submitted_at=1),
                job("other", "a", pods(3), user="ben", submitted_at=2),
            ],
        ),
        starts="small other",
        waits={"large": Code.CAP_REACHED},
        numbers={"large": {"asked_milli": 2000, "limit_milli": 3000}},
    ),
    Scenario(
        "an elastic gang grows up to its user's cap",
        "Armada: gang_scheduler_test, MaximumResourceFractionPerQueue",
        snapshot(
            nodes=nodes(8),
            queues=[capped(gpus=3)],
            pending=[job("w", "a", pods(8, least=1), user="ada")],
        ),
        starts="w",
        pods={"w": 3},
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_more_does_not_run_than_may(case: Scenario) -> None:
    check(case)
