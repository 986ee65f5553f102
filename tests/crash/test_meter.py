"""The metering's crash point. Its own file, because it has to happen around a full hour."""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange

from controlplane.kernel import clock
from scheduler.core.lifecycle import State
from scheduler.loop.measuring import meter
from scheduler.models import Placement
from scheduler.services import workloads
from tenants.models import UsageInterval
from tests.crash.conftest import Scene
from tests.crash.rounds import LONG, Rounds, over_and_over
from tests.flows.world import spec

METERING = ("M1",)
HOUR = datetime(2030, 1, 1, 12, tzinfo=UTC)


type SetClock = Callable[[datetime], str]


@pytest.fixture
def set_clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[SetClock]:
    """For this process and the simulated cluster in it; what it gives is for others. At first it
    is a minute before HOUR, in which pods have all the time to begin."""

    def set_to(at: datetime) -> str:
        accelerated = clock.Acceleration(time.time(), at.timestamp(), 1.0).encode()
        monkeypatch.setenv("BERTH_CLOCK", accelerated)
        clock.acceleration.cache_clear()
        return accelerated

    set_to(HOUR - timedelta(minutes=1))
    yield set_to
    monkeypatch.delenv("BERTH_CLOCK")
    clock.acceleration.cache_clear()


def test_dying_at_m1(set_clock: SetClock, scene: Scene) -> None:
    world = scene.world
    [workload] = world.submit(spec("h100", count=2, command=("sleep", "600")))
    world.until_state(workload, State.RUNNING)
    accelerated = set_clock(HOUR + timedelta(seconds=1))
    at = clock.now() + meter.LAG
    scene.children.run("meter", crash="M1", at=at.isoformat(), accelerated=accelerated)
    assert not UsageInterval.objects.exists()
    for _ in range(2):
        assert meter.tick(at=at) in {2, 0}
    workloads.cancel(actor=world.ada, workload=workload, at=clock.now())
    scene.end_well()
    ranges = list(UsageInterval.objects.order_by("placement_id", "during").values_list("during"))
    for (first,), (second,) in zip(ranges[::2], ranges[1::2], strict=True):
        assert (first.upper, second.lower) == (HOUR, HOUR)
    assert len(ranges) == 4
    assert isinstance(ranges[0][0], DateTimeTZRange)


def test_dying_over_and_over_at_full_hours(set_clock: SetClock, scene: Scene) -> None:
    world = scene.world

    def metering(of: Rounds) -> None:
        hour = HOUR + timedelta(hours=of.nth)
        set_clock(hour - timedelta(minutes=1))
        load = [
            spec(count=of.chance.randint(1, 4), command=LONG, name=f"r{of.nth}-{each}")
            for each in range(of.chance.randint(1, 3))
        ]
        for workload in of.submit(*load):
            world.until_state(workload, State.RUNNING)
        started = Placement.objects.filter(started_at__gte=hour - timedelta(minutes=1))
        pods = sum(each.pod_sets[0].count for each in load)
        world.until(lambda: started.count() == pods)
        metered = UsageInterval.objects.filter(placement_id__in=started.values("id"))
        accelerated = set_clock(hour + timedelta(seconds=1))
        at = clock.now() + meter.LAG
        told = at.isoformat()
        of.die("meter", "M1", at=told, accelerated=accelerated)
        assert not metered.exists()
        who = of.chance.choice(("child", "here", "nobody"))
        if who == "child":
            scene.children.run("meter", at=told, accelerated=accelerated)
        elif who == "here":
            assert meter.tick(at=at) == pods
        if who != "nobody":
            assert meter.tick(at=at) == 0
        for workload in of.live():
            of.cancel(workload)
        of.end()
        for pod in started:
            during = list(
                metered.filter(placement_id=pod.id).order_by("during").values_list("during")
            )
            cuts = [pod.started_at, *(each.upper for (each,) in during)]
            assert [each.lower for (each,) in during] == cuts[:-1]
            assert cuts[-1] == pod.ended_at
            assert (hour in cuts) == (who != "nobody")

    over_and_over(scene, metering, points=METERING)
