"""Each crash point of plan and dispatch many times over, no two alike: how much there is to do, at
which of several passes it dies and who takes over differ, from a seed that is told on a failure.

BERTH_CRASH_REPEATS says how often (nightly: 100), BERTH_CRASH_SEED which. The verdict at the end
is over the whole story of all of them. What a dead one held runs out at once, by its row.
"""

import os
import random
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from django.db.models.functions import Now

from controlplane.kernel import hints
from controlplane.kernel.clock import now
from scheduler.core.lifecycle import TERMINAL, State
from scheduler.models import Attempt, SchedulerLease, Workload
from scheduler.services import workloads
from scheduler.services.specs import WorkloadSpec
from tests.crash.conftest import Scene
from tests.flows.world import spec

REPEATS = int(os.environ.get("BERTH_CRASH_REPEATS", "20"))
SEED = int(os.environ.get("BERTH_CRASH_SEED", "7"))
SHORT = ("sleep", "0.05")


@dataclass
class Round:
    """One death, and what comes of it."""

    scene: Scene
    chance: random.Random
    nth: int

    def load(self) -> list[WorkloadSpec]:
        """One to four workloads, of which some are gangs or want a slice."""
        return [self._wanted(f"r{self.nth}-{each}") for each in range(self.chance.randint(1, 4))]

    def waiting(self) -> int:
        """Submitted; how many pods they have."""
        load = self.load()
        self.scene.world.submit(*load)
        return sum(each.pod_sets[0].count for each in load)

    def die(self, step: str, crash: str, *, passes: int = 1) -> None:
        """A child dies there, at one of so many passes, and what it held is free."""
        self.scene.children.run(step, crash=f"{crash}:{self.chance.randint(1, passes)}")
        SchedulerLease.objects.update(expires_at=Now())
        Attempt.objects.filter(claimed_until__gt=Now()).update(claimed_until=Now())
        hints.end(f"dispatch:{self.scene.world.cluster.id}")

    def take_over(self, step: str) -> None:
        """Another process, or this one, or nobody before all goes on as ever."""
        who = self.chance.choice(("child", "here", "nobody"))
        if who == "child":
            self.scene.children.run(step)
        elif who == "here":
            {"cycle": self.scene.world.cycle, "dispatch": self.scene.world.dispatch}[step]()

    def end(self) -> None:
        """All is over, by healthy steps."""
        live = Workload.objects.exclude(state__in=sorted(TERMINAL))
        self.scene.world.until(lambda: not live.exists(), within_s=60)

    def _wanted(self, name: str) -> WorkloadSpec:
        match self.chance.choice(("single", "gang", "slice")):
            case "single":
                return spec("h100", gpus=self.chance.randint(1, 4), command=SHORT, name=name)
            case "gang":
                count = self.chance.randint(2, 4)
                return spec("h100", count=count, command=SHORT, name=name)
        return spec("a100.3g", command=SHORT, name=name)


def planning(crash: str) -> Callable[[Round], None]:
    def act(of: Round) -> None:
        of.waiting()
        of.die("cycle", crash)
        of.take_over("cycle")

    return act


def dispatching(crash: str, *, each_pod: bool = False) -> Callable[[Round], None]:
    def act(of: Round) -> None:
        pods = of.waiting()
        of.scene.world.cycle()
        of.die("dispatch", crash, passes=pods if each_pod else 1)
        of.take_over("dispatch")

    return act


def cancelling(crash: str, *, each_pod: bool = False) -> Callable[[Round], None]:
    """What the dead one was starting is wanted no more."""

    def act(of: Round) -> None:
        world = of.scene.world
        pods = of.waiting()
        world.cycle()
        of.die("dispatch", crash, passes=pods if each_pod else 1)
        live = list(Workload.objects.exclude(state__in=sorted(TERMINAL)).order_by("name"))
        for workload in of.chance.sample(live, of.chance.randint(1, len(live))):
            workloads.cancel(actor=world.ada, workload=workload, at=now())
        of.take_over("dispatch")

    return act


POINTS = {
    **{crash: planning(crash) for crash in ("B1", "B2", "B3", "B4")},
    **{crash: dispatching(crash) for crash in ("D1", "D3", "D4", "D6")},
    **{crash: dispatching(crash, each_pod=True) for crash in ("D2", "D5")},
    **{f"cancel {crash}": cancelling(crash) for crash in ("D1", "D3", "D4", "D6")},
    **{f"cancel {crash}": cancelling(crash, each_pod=True) for crash in ("D2", "D5")},
}


@pytest.mark.parametrize("point", POINTS)
def test_dying_over_and_over_at(point: str, scene: Scene) -> None:
    chance = random.Random(f"{SEED} {point}")
    for nth in range(REPEATS):
        print(f"BERTH_CRASH_SEED={SEED}, round {nth} of {point}")  # pytest shows it on a failure
        of = Round(scene, chance, nth)
        POINTS[point](of)
        of.end()
    scene.end_well()
    over = {State.SUCCEEDED, State.CANCELLED} if "cancel" in point else {State.SUCCEEDED}
    assert not Workload.objects.exclude(state__in=over).exists()
