"""Each named crash point: a child dies exactly there, others go on, and nothing is lost, doubled
or left over."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from clusters.port import PodPhase
from controlplane.kernel.clock import now
from scheduler.core.lifecycle import State
from scheduler.models import Workload
from scheduler.services import workloads
from tests.crash.conftest import Scene
from tests.flows.world import spec
from tests.kube.waiting import eventually

SHORT = ("sleep", "0.3")
LONG = ("sleep", "600")
LOAD = (
    spec("h100", gpus=2, command=SHORT, name="single"),
    spec("h100", gpus=1, count=3, command=SHORT, name="gang"),
    spec("a100.3g", command=SHORT, name="slice"),
)


def nothing(scene: Scene) -> None:
    pass


def waiting(scene: Scene) -> None:
    scene.world.submit(*LOAD)


def admitted(scene: Scene) -> None:
    waiting(scene)
    scene.world.cycle()


def all_done(scene: Scene) -> None:
    """Every pod has run to its end, and nobody has looked yet."""
    admitted(scene)
    scene.world.dispatch()
    ended = {PodPhase.SUCCEEDED, PodPhase.FAILED}
    eventually(
        "all pods have ended",
        lambda: all(pod.phase in ended for pod in scene.world.port.list_pods().items),
    )


def running_victim(scene: Scene) -> None:
    """A gang runs on all that its project may have; something urgent waits."""
    world = scene.world
    world.quota(world.vision, "h100", 32, borrowing=0)
    [victim] = world.submit(spec("h100", gpus=8, count=4, command=LONG, name="victim"))
    world.until_state(victim, State.RUNNING)
    world.submit(spec("h100", gpus=8, command=SHORT, priority_class="urgent", name="urgent"))


def marked_victim(scene: Scene) -> None:
    running_victim(scene)
    scene.world.cycle()


def dying_victim(scene: Scene) -> None:
    marked_victim(scene)
    scene.world.dispatch()
    eventually("the victim's pods are gone", lambda: not scene.world.port.list_pods().items)


@dataclass(frozen=True)
class Point:
    """`crash` as BERTH_CRASH has it, the step that dies of it, and what comes before."""

    crash: str
    step: str
    before: Callable[[Scene], None]


POINTS = (
    Point("B1", "cycle", waiting),
    Point("B2", "cycle", waiting),
    Point("B3", "cycle", waiting),
    Point("B4", "cycle", waiting),
    Point("D1", "dispatch", admitted),
    Point("D2", "dispatch", admitted),
    Point("D3", "dispatch", admitted),
    Point("D4", "dispatch", admitted),
    Point("D5", "dispatch", admitted),
    Point("D6", "dispatch", admitted),
    Point("O1", "observe", all_done),
    Point("O2", "observe", all_done),
    Point("O3", "watch", all_done),
    Point("E1", "cycle", running_victim),
    Point("E2", "dispatch", marked_victim),
    Point("E4", "observe", dying_victim),
)


@pytest.mark.parametrize("point", POINTS, ids=[point.crash for point in POINTS])
def test_dying_at(point: Point, scene: Scene) -> None:
    point.before(scene)
    scene.children.run(point.step, crash=point.crash)
    victim = Workload.objects.filter(name="victim").first()
    if victim is not None:
        scene.world.until_state(Workload.objects.get(name="urgent"), State.SUCCEEDED)
        victim.refresh_from_db()
        workloads.cancel(actor=scene.world.ada, workload=victim, at=now())
    scene.end_well()
