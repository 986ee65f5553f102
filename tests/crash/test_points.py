"""Each named crash point: a child dies exactly there, others go on, and nothing is lost, doubled
or left over.

A new point is a line in POINTS: where it dies, doing what, and after what.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from django.db import connection
from django.db.models.functions import Now

from controlplane.kernel.clock import now
from scheduler.core.lifecycle import State
from scheduler.models import Attempt, Placement, Workload
from scheduler.services import workloads
from tests.crash import children, diary, points
from tests.crash.conftest import Scene
from tests.crash.test_cluster_loss import LOSING
from tests.crash.test_meter import METERING
from tests.crash.test_node_asks import POINTS as ASKING
from tests.crash.test_notices import TELLING
from tests.crash.test_probes import PROBING
from tests.crash.test_recuts import POINTS as RECUTTING
from tests.flows.world import spec
from tests.kube.test_claims_fail import CRASH as NARROWING
from tests.waiting import eventually

SHORT = ("sleep", "0.3")
LONG = ("sleep", "600")


def waiting(scene: Scene, command: tuple[str, ...] = SHORT) -> None:
    """Three workloads, of one pod, of three pods and of a MIG slice."""
    scene.world.submit(
        spec("h100", gpus=2, command=command, name="single"),
        spec("h100", gpus=1, count=3, command=command, name="gang"),
        spec("a100.3g", command=command, name="slice"),
    )


def admitted(scene: Scene) -> None:
    waiting(scene)
    scene.world.cycle()


def all_done(scene: Scene) -> None:
    """Every pod has run to its end, and nobody has looked yet."""
    admitted(scene)
    scene.world.dispatch()
    list_pods = scene.world.port.list_pods
    eventually("all pods ended", lambda: all(pod.phase.ended for pod in list_pods().items))


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


def dead_victim(scene: Scene) -> None:
    """The victim's pods are gone, and nobody has looked yet."""
    marked_victim(scene)
    scene.world.dispatch()
    eventually("the victim's pods are gone", lambda: not scene.world.port.list_pods().items)


def short_gang(scene: Scene) -> None:
    """A gang runs with two of its four pods, and nothing is in its way any more."""
    world = scene.world
    world.quota(world.vision, "h100", 16, borrowing=0)
    [victim] = world.submit(spec("h100", gpus=8, count=4, least=2, command=LONG, name="victim"))
    world.until_state(victim, State.RUNNING)
    world.quota(world.vision, "h100", 32, borrowing=0)


def growing(scene: Scene) -> None:
    short_gang(scene)
    scene.world.cycle()


def large_gang(scene: Scene) -> None:
    """It runs with all it asks for; something urgent waits."""
    short_gang(scene)
    world = scene.world
    world.until(lambda: Placement.objects.exclude(started_at=None).count() == 4)
    world.submit(spec("h100", gpus=8, command=SHORT, priority_class="urgent", name="urgent"))


def shrinking(scene: Scene) -> None:
    large_gang(scene)
    scene.world.cycle()


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
    Point("D2:3", "dispatch", admitted),  # in the middle of a gang
    Point("D3", "dispatch", admitted),
    Point("D4", "dispatch", admitted),
    Point("D5", "dispatch", admitted),
    Point("D5:3", "dispatch", admitted),
    Point("D6", "dispatch", admitted),
    Point("O1", "observe", all_done),
    Point("O2", "observe", all_done),
    Point("O3", "watch", all_done),
    Point("E1", "cycle", running_victim),
    Point("E2", "dispatch", marked_victim),
    Point("E2:2", "dispatch", marked_victim),
    Point("E4", "observe", dead_victim),
)


@pytest.mark.parametrize("point", POINTS, ids=[point.crash for point in POINTS])
def test_dying_at(point: Point, scene: Scene) -> None:
    point.before(scene)
    scene.children.run(point.step, crash=point.crash)
    victim = Workload.objects.filter(name="victim").first()
    if victim is not None:
        scene.world.until_state(Workload.objects.get(name="urgent"), State.SUCCEEDED)
        scene.world.until(lambda: victim.attempts.filter(number=1, outcome="preempted").exists())
        victim.refresh_from_db()
        workloads.cancel(actor=scene.world.ada, workload=victim, at=now())
    scene.end_well()
    unlike = Workload.objects.exclude(name="victim").exclude(state=State.SUCCEEDED)
    assert not unlike.exists()


RESIZING = (
    Point("G1", "cycle", short_gang),
    Point("B4", "cycle", short_gang),
    Point("D2", "dispatch", growing),
    Point("D3", "dispatch", growing),
    Point("D4", "dispatch", growing),
    Point("D5", "dispatch", growing),
    Point("D6", "dispatch", growing),
    Point("G2", "cycle", large_gang),
    Point("E2", "dispatch", shrinking),
)


@pytest.mark.parametrize(
    "point", RESIZING, ids=[f"{p.crash} {p.before.__name__}" for p in RESIZING]
)
def test_a_gang_grows_or_shrinks_all_the_same_after_dying_at(point: Point, scene: Scene) -> None:
    point.before(scene)
    scene.children.run(point.step, crash=point.crash)
    gang = Workload.objects.get(name="victim")
    for urgent in Workload.objects.filter(name="urgent"):
        scene.world.until_state(urgent, State.SUCCEEDED)
    held = Placement.objects.filter(workload=gang, released_at=None)
    scene.world.until(lambda: held.exclude(started_at=None).count() == 4)
    gang.refresh_from_db()
    assert (gang.state, gang.attempts.count()) == (State.RUNNING, 1)
    workloads.cancel(actor=scene.world.ada, workload=gang, at=now())
    scene.end_well()


SUBMITTING = {"A1": 0, "A2": 1, "A3": 1}
"""How many workloads are stored when whoever submits them dies there."""


@pytest.mark.parametrize(("crash", "stored"), SUBMITTING.items())
def test_dying_while_submitting_at(crash: str, stored: int, scene: Scene) -> None:
    specs = [{"flavor": "h100", "count": 3, "command": SHORT}]
    scene.children.run("submit", crash=crash, specs=specs)
    assert Workload.objects.count() == stored
    scene.children.run("submit", specs=specs)  # as whoever got no answer does
    scene.end_well()
    assert Workload.objects.filter(state=State.SUCCEEDED).count() == stored + 1


@pytest.mark.parametrize("crash", SUBMITTING)
def test_a_keyed_request_that_died_is_stored_once_however_often_it_is_sent(
    crash: str, scene: Scene
) -> None:
    scene.children.run("post", crash=crash, key="once", command=SHORT)
    for _ in range(2):
        scene.children.run("post", key="once", command=SHORT)
    assert Workload.objects.count() == 1
    scene.end_well()


@pytest.mark.parametrize("crash", ["D1", "D2", "D3", "D4", "D5", "D6"])
def test_cancelling_what_a_dead_dispatcher_left_at(crash: str, scene: Scene) -> None:
    waiting(scene, LONG)
    scene.world.cycle()
    scene.children.run("dispatch", crash=crash)
    for workload in Workload.objects.all():
        workloads.cancel(actor=scene.world.ada, workload=workload, at=now())
    scene.end_well()
    assert set(Workload.objects.values_list("state", flat=True)) == {State.CANCELLED}
    told = diary.read(scene.world.port, since=scene.begun)
    assert bool(told.opened) == (crash in {"D5", "D6"})


def test_dying_again_and_again_at_one_point_only_delays(scene: Scene) -> None:
    admitted(scene)
    for crash in ("D4", "D2", "D4", "D5"):
        scene.wait_for_claims()
        scene.children.run("dispatch", crash=crash)
    scene.end_well()


def test_dying_while_what_ended_is_collected(scene: Scene) -> None:
    def due() -> dict[str, int]:
        Attempt.objects.exclude(collect_at=None).update(collect_at=Now())
        objects = scene.world.simulator.stats()["objects"]
        return {kind: objects[kind] for kind in ("pods", "services")}

    all_done(scene)
    scene.world.observe()
    assert due() == {"pods": 5, "services": 1}
    scene.children.run("dispatch", crash="C1")
    assert due() == {"pods": 3, "services": 0}  # the gang's are kept, as its service was due only
    assert not Attempt.objects.filter(leftover="").exists()
    assert scene.world.collect() == 3
    assert due() == {"pods": 3, "services": 0}
    scene.wait_for_dispatch()
    scene.children.run("dispatch", crash="C1")
    assert scene.world.collect() == 1
    assert due() == {"pods": 0, "services": 0}
    assert set(Attempt.objects.values_list("leftover", flat=True)) == {""}
    scene.end_well()


def test_every_crash_point_of_the_tree_has_a_scenario() -> None:
    """C1's is above."""
    here = {point.crash.partition(":")[0] for point in (*POINTS, *RESIZING)}
    others = (
        *(SUBMITTING, RECUTTING, ASKING, LOSING, METERING, PROBING, TELLING),
        {NARROWING, "C1"},
    )
    assert points.of_the_code() == here.union(*others)


def test_the_environment_arms_a_point_too(scene: Scene) -> None:
    waiting(scene)
    environment = children.environment(database=str(connection.settings_dict["NAME"]))
    died = subprocess.run(
        [sys.executable, "-m", "tests.crash.child"],
        input='{"do": "be", "step": "cycle"}\n',
        env=environment | {"BERTH_CRASH": "B4"},
        text=True,
        check=False,
    )
    assert died.returncode == -9
    assert Workload.objects.filter(state=State.ADMITTED).count() == 3
    assert "BERTH_CRASH" not in os.environ
    scene.end_well()
