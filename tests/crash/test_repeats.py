"""The ways of work through submit, plan, dispatch, observe and collect, each many times over:
somebody dies at each point of the way, and others go on with the same work (rounds.py)."""

from collections.abc import Callable

import pytest
from django.db.models.functions import Now

from scheduler.models import Attempt, Placement
from tests.crash import points
from tests.crash.conftest import Scene
from tests.crash.rounds import Rounds, over_and_over, specs
from tests.crash.test_cluster_loss import LOSING
from tests.crash.test_meter import METERING
from tests.crash.test_node_asks import POINTS as ASKING
from tests.crash.test_notices import TELLING
from tests.crash.test_probes import PROBING
from tests.crash.test_recuts import FAILING, SUCCEEDING
from tests.crash.test_repeats_gangs import EVICTING, RESIZING
from tests.kube.test_claims_fail import CRASH as NARROWING
from tests.waiting import eventually

WAYS = (
    ("A1", "B1", "D1", "O1"),
    ("A2", "B2", "D2", "O2"),
    ("A3", "B3", "D3", "O3"),
    ("A1", "B4", "D4", "E4", "C1"),
    ("A2", "B4", "D5", "D6"),
)
"""Where one dies on the way, in this order."""
CANCELLING = ("D1", "D2", "D3", "D4", "D5", "D6")


def submitting(of: Rounds, crash: str) -> None:
    """Who got no answer sends it again. Without a key that is another one, if it was stored."""
    load, stored = of.load(), crash != "A1"
    if of.chance.random() < 1 / 2:
        first, *rest = load
        keyed = {"key": f"key {of.nth}", **first}
        of.die("post", crash, **keyed)
        of.accepted.update([first["name"]] * stored)
        of.what_is_stored_was_accepted()
        for _ in range(of.chance.randint(1, 2)):
            of.scene.children.run("post", **keyed)
        of.accepted[first["name"]] = 1
        of.submit(*specs(rest))
    else:
        of.die("submit", crash, specs=load)
        of.accepted.update([each["name"] for each in load] * stored)
        of.what_is_stored_was_accepted()
        of.submit(*specs(load))
    of.what_is_stored_was_accepted()


def planning(of: Rounds, crash: str) -> None:
    of.die("cycle", crash)


def dispatching(of: Rounds, crash: str) -> None:
    """D2 and D5 are passed for each pod that is to be made, or opened."""
    pods = Placement.objects.filter(released_at=None, opened_at=None).count()
    of.die("dispatch", crash, passes=pods if crash in {"D2", "D5"} else 1)


def observing(of: Rounds, crash: str) -> None:
    """Of every pod there is something new to see."""
    world = of.scene.world
    world.dispatch()
    pods = world.port.list_pods
    eventually("all ended", lambda: all(p.phase.ended for p in pods().items), every_s=0.01)
    # The watch of pods and that of nodes both begin there.
    step, passes = ("watch", 2) if crash == "O3" else ("observe", 1)
    of.die(step, crash, passes=passes)


def collecting(of: Rounds, crash: str) -> None:
    """What is left of all that has ended: pods, and the services of gangs."""
    of.end()
    due = Attempt.objects.exclude(collect_at=None)
    due.update(collect_at=Now())
    of.die("dispatch", crash)
    while due.exists():
        due.update(collect_at=Now())
        assert of.scene.world.collect() > 0
    left = of.scene.world.simulator.stats()["objects"]
    assert (left["pods"], left["services"]) == (0, 0)


STAGES: dict[str, tuple[Callable[[Rounds, str], None], str]] = {
    "A": (submitting, ""),
    "B": (planning, "cycle"),
    "D": (dispatching, "dispatch"),
    "O": (observing, "observe"),
    "E": (observing, "observe"),
    "C": (collecting, ""),
}
"""By the letter of a point: how one dies there, and the step that is to be taken over."""


@pytest.mark.parametrize("way", WAYS, ids=" ".join)
def test_dying_over_and_over_on_the_way(way: tuple[str, ...], scene: Scene) -> None:
    def play(of: Rounds) -> None:
        for crash, following in zip(way, (*way[1:], " "), strict=True):
            die, step = STAGES[crash[0]]
            die(of, crash)
            # Who takes over may be the next to die.
            if step and following[0] != crash[0]:
                of.take_over(step)
        of.end()

    over_and_over(scene, play, points=way)


@pytest.mark.parametrize("crash", CANCELLING)
def test_dying_over_and_over_with_what_is_then_cancelled_at(crash: str, scene: Scene) -> None:
    """What the dead one was starting is wanted no more."""

    def play(of: Rounds) -> None:
        of.submit(*specs(of.load()))
        of.scene.world.cycle()
        dispatching(of, crash)
        live = of.live()
        for workload in of.chance.sample(live, of.chance.randint(1, len(live))):
            of.cancel(workload)
        if of.chance.random() < 2 / 3:  # else whoever comes by first
            of.take_over("dispatch")
        of.end()

    over_and_over(scene, play, points=[crash])


def test_every_crash_point_of_the_tree_is_died_at_over_and_over() -> None:
    """`over_and_over` sees to it that each test does die at the points that it names; NARROWING
    is died at beside a real API server."""
    ways = {point for way in WAYS for point in way}
    others = (
        *(EVICTING, RESIZING, LOSING, METERING, ASKING, SUCCEEDING, FAILING, PROBING, TELLING),
        {NARROWING},
    )
    assert points.of_the_code() == ways.union(*others)
