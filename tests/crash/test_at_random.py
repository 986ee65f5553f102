"""kill -9 at random, in the middle of a load of gangs, preemption and cancels.

BERTH_CRASH_ROUNDS says how many die (nightly: hundreds), BERTH_CRASH_SEED which and when.
"""

import os
import random
import time
from collections import Counter
from pathlib import Path

import pytest

from controlplane.kernel.clock import now
from controlplane.kernel.errors import Conflict
from scheduler.core.lifecycle import TERMINAL, State
from scheduler.models import Workload
from scheduler.services import workloads
from scheduler.services.specs import WorkloadSpec
from tests.crash.conftest import Scene
from tests.flows.world import World, spec

ROUNDS = int(os.environ.get("BERTH_CRASH_ROUNDS", "30"))
SEED = int(os.environ.get("BERTH_CRASH_SEED", "7"))
LOAD = 60
POINTS = {
    "worker": ("B1", "B2", "B3", "B4", "D1", "D2", "D3", "D4", "D5", "D6", "E1", "E2", "O1"),
    "watcher": ("O1", "O2", "O3", "E4"),
}


@pytest.mark.parametrize("seed", [SEED, SEED + 1])
def test_any_number_of_deaths_changes_no_sum(seed: int, scene: Scene, tmp_path: Path) -> None:
    chance = random.Random(seed)
    crew = Crew(scene, chance, tmp_path / "errors")
    scene.world.quota(scene.world.vision, "h100", 24, borrowing=0)
    load = [_spec(chance, number) for number in range(LOAD)]
    while crew.deaths.total() < ROUNDS // 2 or load:
        crew.look()
        for _ in range(chance.randint(0, 5)):
            if load:
                project = chance.choice([scene.world.vision, scene.world.speech])
                scene.world.submit(load.pop(), project=project)
        if chance.random() < 0.2:
            _cancel_one(scene.world, chance)
        time.sleep(chance.uniform(0.02, 0.2))
        if chance.random() < 0.3:
            crew.kill_one()
    crew.dismiss()
    scene.end_well()
    assert Workload.objects.count() == LOAD
    states = Counter(Workload.objects.values_list("state", flat=True))
    assert states.keys() <= {State.SUCCEEDED, State.CANCELLED}, states
    # A step that raised is tried again, but none has a reason to.
    assert crew.told() == ""


class Crew:
    """Two workers and a watcher, replaced as they die; some are born with an armed point."""

    def __init__(self, scene: Scene, chance: random.Random, errors: Path) -> None:
        self._scene = scene
        self._chance = chance
        self._errors = errors
        self._alive: dict[int, str] = {}
        self.deaths: Counter[str] = Counter()
        for step in ("worker", "worker", "watcher"):
            self._hire(step)

    def look(self) -> None:
        """Replace those that died of an armed point."""
        for pid in list(self._alive):
            if self._scene.children.ended(pid):
                self._replace(pid, "at a point")

    def kill_one(self) -> None:
        pid = self._chance.choice(sorted(self._alive))
        self._scene.children.kill(pid)
        self._replace(pid, "at random")

    def dismiss(self) -> None:
        for pid in self._alive:
            self._scene.children.kill(pid)

    def told(self) -> str:
        return self._errors.read_text() if self._errors.exists() else ""

    def _replace(self, pid: int, how: str) -> None:
        step = self._alive.pop(pid)
        self.deaths[f"{step} {how}"] += 1
        self._hire(step)

    def _hire(self, step: str) -> None:
        armed = self._chance.random() < 0.7
        point = self._chance.choice(POINTS[step])
        crash = f"{point}:{self._chance.randint(1, 3)}" if armed else ""
        arguments = {"seed": self._chance.randrange(10**6)} if step == "worker" else {}
        pid = self._scene.children.spawn(step, crash=crash, errors=str(self._errors), **arguments)
        self._alive[pid] = step


def _spec(chance: random.Random, number: int) -> WorkloadSpec:
    command = ("sleep", f"{chance.uniform(0.05, 1):.2f}")
    name = f"load-{number}"
    kind = chance.random()
    if kind < 0.25:
        gpus, count = chance.choice([(8, 2), (4, 3), (1, 4)])
        return spec("h100", gpus=gpus, count=count, command=command, name=name)
    if kind < 0.4:
        return spec("h100", gpus=4, command=command, priority_class="urgent", name=name)
    if kind < 0.6:
        return spec(chance.choice(["a100.1g", "a100.3g"]), command=command, name=name)
    return spec("h100", gpus=chance.choice([1, 2, 8]), command=command, name=name)


def _cancel_one(world: World, chance: random.Random) -> None:
    live = list(Workload.objects.exclude(state__in=sorted(TERMINAL)).order_by("id"))
    if live:
        try:
            workloads.cancel(actor=world.ada, workload=chance.choice(live), at=now())
        except Conflict:
            return  # it ended meanwhile, which its user is told
