"""Deaths many times over, no two alike: how much there is to do, at which of several passes one
dies and who takes over differ, from a seed that is told on a failure.

BERTH_CRASH_REPEATS says how often (nightly: 100), BERTH_CRASH_SEED which. The verdict is over the
whole story of all rounds of a test. What a dead one held runs out at once, by its row.
"""

import os
import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

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
LONG = ("sleep", "600")


@dataclass
class Rounds:
    """The rounds of one test. `nth` is the one that is on; `deaths` counts by point; `accepted`
    are the names of all work that Berth took, each as often as it did."""

    scene: Scene
    chance: random.Random
    nth: int = 0
    deaths: Counter[str] = field(default_factory=Counter)
    accepted: Counter[str] = field(default_factory=Counter)
    _cancelled: set[UUID] = field(default_factory=set)

    def load(self) -> list[dict[str, Any]]:  # Any: of `spec`
        """One to four workloads, of which some are gangs or want a slice."""
        return [self._wanted(f"r{self.nth}-{each}") for each in range(self.chance.randint(1, 4))]

    def submit(self, *specs: WorkloadSpec) -> list[Workload]:
        self.accepted.update(each.name for each in specs)
        return self.scene.world.submit(*specs)

    def die(self, step: str, crash: str, *, passes: int = 1, **arguments: object) -> None:
        """A child dies there, at one of so many passes, and what it held is free."""
        nth = self.chance.randint(1, passes)
        self.scene.children.run(step, crash=f"{crash}:{nth}", **arguments)
        self.deaths[crash] += 1
        SchedulerLease.objects.update(expires_at=Now())
        Attempt.objects.filter(claimed_until__gt=Now()).update(claimed_until=Now())
        hints.end(f"dispatch:{self.scene.world.cluster.id}")

    def take_over(self, step: str) -> None:
        """Another process, or this one; at once, or after another step."""
        world = self.scene.world
        here = {"cycle": world.cycle, "dispatch": world.dispatch, "observe": world.observe}
        if self.chance.random() < 1 / 3:
            here["observe" if step == "cycle" else "cycle"]()
        if self.chance.random() < 1 / 2:
            self.scene.children.run(step)
        else:
            here[step]()

    def cancel(self, workload: Workload) -> None:
        workload.refresh_from_db()
        workloads.cancel(actor=self.scene.world.ada, workload=workload, at=now())
        self._cancelled.add(workload.id)

    def live(self) -> list[Workload]:
        return list(Workload.objects.exclude(state__in=sorted(TERMINAL)).order_by("name"))

    def end(self) -> None:
        """All is over, by healthy steps."""
        live = Workload.objects.exclude(state__in=sorted(TERMINAL))
        self.scene.world.until(lambda: not live.exists())

    def what_is_stored_was_accepted(self) -> None:
        """That, and all of it."""
        assert Counter(Workload.objects.values_list("name", flat=True)) == self.accepted

    def what_was_accepted_succeeded(self) -> None:
        """Unless somebody cancelled it."""
        self.what_is_stored_was_accepted()
        asked = Workload.objects.exclude(id__in=self._cancelled)
        assert not asked.exclude(state=State.SUCCEEDED).exists()
        over = {State.SUCCEEDED, State.CANCELLED}
        assert not Workload.objects.exclude(state__in=over).exists()

    def _wanted(self, name: str) -> dict[str, Any]:  # Any: of `spec`
        wanted = {"name": name, "command": SHORT, "flavor": "h100"}
        match self.chance.choice(("single", "gang", "slice")):
            case "single":
                return wanted | {"gpus": self.chance.randint(1, 4)}
            case "gang":
                return wanted | {"count": self.chance.randint(2, 4)}
        return wanted | {"flavor": "a100.3g"}


def specs(load: Iterable[dict[str, Any]]) -> list[WorkloadSpec]:  # Any: of `spec`
    return [spec(**each) for each in load]


def over_and_over(
    scene: Scene,
    play: Callable[[Rounds], None],
    *,
    points: Iterable[str],
    verdict: Callable[[], None] | None = None,
) -> None:
    """REPEATS rounds, in each of which somebody dies at each of these points, and then the verdict
    over all of them, the scene's own unless told another."""
    points = tuple(points)
    name = " ".join(points)
    rounds = Rounds(scene, random.Random(f"{SEED} {name} {play.__name__}"))
    for rounds.nth in range(REPEATS):
        # pytest shows it on a failure
        print(f"BERTH_CRASH_SEED={SEED}, round {rounds.nth} of {name}")
        play(rounds)
    (verdict or scene.end_well)()
    rounds.what_was_accepted_succeeded()
    assert rounds.deaths.keys() == set(points)
    assert min(rounds.deaths.values()) >= REPEATS
