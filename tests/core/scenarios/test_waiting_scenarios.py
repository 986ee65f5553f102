"""Room kept for who has waited long, and for reservations; what goes ahead meanwhile."""

from dataclasses import replace

import pytest

from scheduler.core.policy import Policy
from scheduler.core.reasons import ReasonCode as Code
from scheduler.core.snapshot import PendingView, ReservationView, Snapshot
from scheduler.core.units import FlavorId, ProjectId
from tests.core.build import A30, AT, Quota, job, node, pods, queue, runs, snapshot
from tests.core.scenarios.scenario import Scenario, check, gpus, nodes

GUARD = Policy(guard_s=600, preemption=False)
OLD, NEW = AT - 600, AT - 599
OWN = job("own", "a", pods(2), submitted_at=AT)
QUEUES = [queue("a", h100=8, a30=8), queue("b", h100=8, a30=8)]


def gang(*, since: int = OLD) -> PendingView:
    """All four devices of the fleet."""
    return job("gang", "a", pods(4), submitted_at=since)


def small(name: str, *, limit_s: int | None = None, flavors: str = "h100") -> PendingView:
    return job(name, "b", pods(flavors=flavors), submitted_at=AT, limit_s=limit_s)


def until(limit_s: int | None, *pending: PendingView) -> Snapshot:
    """One of four devices is held, and given back in so many seconds."""
    return snapshot(
        nodes=nodes(4),
        queues=QUEUES,
        holding=[runs("r", "b", "n1/0", limit_s=limit_s)],
        pending=pending,
    )


def large() -> PendingView:
    """All that its project may use."""
    return job("large", "a", pods(4), submitted_at=OLD)


def mine(name: str, *, limit_s: int | None = None) -> PendingView:
    return job(name, "a", pods(), submitted_at=AT, limit_s=limit_s)


def of_one_project(*pending: PendingView) -> Snapshot:
    """It uses one of the four devices that are guaranteed to it, and gives that back in 300 s."""
    return snapshot(
        nodes=nodes(4),
        queues=[queue("a", h100=4), queue("b", h100=Quota(0, None))],
        holding=[runs("r", "a", "n1/0", limit_s=300)],
        pending=pending,
    )


def reserved(*pending: PendingView, opens_in_s: int, held: int = 0) -> Snapshot:
    """Both devices are kept for project a, for an hour; b holds some of them now."""
    given = snapshot(
        nodes=nodes(2),
        queues=QUEUES,
        holding=[runs(f"r{i}", "b", on, limit_s=900) for i, on in enumerate(gpus("n1", 0, held))],
        pending=pending,
    )
    at = AT + opens_in_s
    window = ReservationView(ProjectId("a"), FlavorId("h100"), 2000, at, at + 3600)
    return replace(given, reservations=(window,))


CASES = (
    Scenario(
        "who has waited long has room kept, and what might outlast it does not start on it",
        "Volcano: docs/design/sla-plugin, resources are kept past the waiting time",
        until(300, gang(), small("x", limit_s=301)),
        waits={"gang": Code.ROOM_KEPT, "x": Code.KEPT_FOR_OTHERS},
        numbers={"gang": {"kept_milli": 4000, "starts_in_s": 300}},
        policy=GUARD,
    ),
    Scenario(
        "work that ends before the room is needed goes ahead",
        "Slurm: sched_config.html, backfill",
        until(300, gang(), small("x", limit_s=300)),
        starts="x",
        waits={"gang": Code.ROOM_KEPT},
        policy=GUARD,
    ),
    Scenario(
        "who has not waited long enough is overtaken",
        "Volcano: docs/design/sla-plugin, a waiting time that has not passed",
        until(300, gang(since=NEW), small("x")),
        starts="x",
        waits={"gang": Code.NO_FREE_CAPACITY},
        policy=GUARD,
    ),
    Scenario(
        "where no guard is set nothing is kept",
        "Kueue: docs cluster_queue, BestEffortFIFO",
        until(300, gang(), small("x")),
        starts="x",
        waits={"gang": Code.NO_FREE_CAPACITY},
        policy=Policy(preemption=False),
    ),
    Scenario(
        "behind work without a limit nothing goes ahead, however short",
        "Slurm: sched_config.html, backfill goes by time limits",
        until(None, gang(), small("x", limit_s=1)),
        waits={"gang": Code.ROOM_KEPT, "x": Code.KEPT_FOR_OTHERS},
        policy=GUARD,
    ),
    Scenario(
        "small work of a project does not use up the quota that its older work waits for",
        "Slurm: sched_config.html, assoc_limit_stop",
        of_one_project(large(), mine("x")),
        waits={"large": Code.QUOTA_USED, "x": Code.QUOTA_KEPT},
        policy=GUARD,
    ),
    Scenario(
        "unlike there, what ends before that quota is back goes ahead",
        "Slurm: sched_config.html, assoc_limit_stop",
        of_one_project(large(), mine("x", limit_s=300), mine("y", limit_s=301)),
        starts="x",
        waits={"large": Code.QUOTA_USED, "y": Code.QUOTA_KEPT},
        policy=GUARD,
    ),
    Scenario(
        "unlike there, others may borrow what a project keeps for its older work",
        "Slurm: sched_config.html, assoc_limit_stop",
        of_one_project(large(), small("x")),
        starts="x",
        waits={"large": Code.QUOTA_USED},
        policy=GUARD,
    ),
    Scenario(
        "room is kept on the hardware that is asked for, and on no other",
        "YuniKorn: partition_test, TestTryAllocateReserve",
        snapshot(
            nodes=[*nodes(4), node("n2", gpus=1, model=A30)],
            queues=QUEUES,
            holding=[runs("r", "b", "n1/0", limit_s=300)],
            pending=[gang(), small("x", flavors="a30")],
        ),
        starts="x",
        waits={"gang": Code.ROOM_KEPT},
        policy=GUARD,
    ),
    Scenario(
        "what would run into a reservation waits, and what ends before it starts",
        "Slurm: reservations.html, jobs that would overlap do not start",
        reserved(small("long", limit_s=3601), small("short", limit_s=3600), opens_in_s=3600),
        starts="short",
        waits={"long": Code.RESERVED},
        numbers={"long": {"kept_milli": 2000, "lacking_milli": 1000, "opens_in_s": 3600}},
    ),
    Scenario(
        "in its reservation a project starts, and others wait",
        "Slurm: reservations.html, only those named may use it",
        reserved(small("other", limit_s=60), OWN, opens_in_s=-60),
        starts="own",
        waits={"other": Code.RESERVED},
    ),
    Scenario(
        "after a reservation nothing is kept",
        "Slurm: reservations.html, end time",
        reserved(small("other"), opens_in_s=-3600),
        starts="other",
    ),
    Scenario(
        "what runs when a reservation opens is not stopped for it",
        "Slurm: reservations.html, running jobs are left alone",
        reserved(OWN, opens_in_s=0, held=1),
        waits={"own": Code.NO_FREE_CAPACITY},
    ),
    Scenario(
        "in a reservation of which others hold a part its project starts on the rest",
        "Slurm: reservations.html, flag IGNORE_JOBS",
        reserved(job("own", "a"), opens_in_s=-60, held=1),
        starts="own",
    ),
    Scenario(
        "nobody is evicted for what would run into a reservation, only for what ends before",
        "Slurm: reservations.html, jobs that would overlap do not start",
        reserved(
            job("long", "b", priority=9),
            job("short", "b", priority=8, limit_s=600),
            opens_in_s=3600,
            held=2,
        ),
        preempts={"short": "r0"},
        waits={"long": Code.RESERVED},
        numbers={"long": {"kept_milli": 2000, "lacking_milli": 1000, "opens_in_s": 3600}},
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_who_waits_is_not_forgotten(case: Scenario) -> None:
    check(case)
