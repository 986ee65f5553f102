"""Running gangs that are evicted, grow or shrink, many times over: somebody dies at each step of
it (rounds.py)."""

from scheduler.core.lifecycle import State
from scheduler.models import Placement
from tests.crash.conftest import Scene
from tests.crash.rounds import LONG, SHORT, Rounds, over_and_over
from tests.flows.world import spec
from tests.waiting import eventually

EVICTING = ("E1", "E2", "E4")
RESIZING = ("G1", "G2")


def test_dying_over_and_over_while_a_gang_is_evicted(scene: Scene) -> None:
    """It has all that its project may have, when something urgent comes."""
    world = scene.world

    def evicting(of: Rounds) -> None:
        count = of.chance.randint(2, 4)
        world.quota(world.vision, "h100", 8 * count, borrowing=0)
        [victim] = of.submit(spec(gpus=8, count=count, command=LONG, name=f"victim-{of.nth}"))
        world.until_state(victim, State.RUNNING)
        gpus = of.chance.choice((1, 8))
        urgent = spec(gpus=gpus, command=SHORT, priority_class="urgent", name=f"urgent-{of.nth}")
        [urgent_work] = of.submit(urgent)
        of.die("cycle", "E1")
        of.take_over("cycle")
        of.die("dispatch", "E2", passes=count)
        of.take_over("dispatch")
        there = {str(victim.id)}
        eventually(
            "the victim's pods are gone",
            lambda: there.isdisjoint(pod.workload for pod in world.port.list_pods().items),
            every_s=0.01,
        )
        of.die("observe", "E4")
        of.take_over("observe")
        world.until_state(urgent_work, State.SUCCEEDED)
        assert victim.attempts.get(number=1).outcome == "preempted"
        of.cancel(victim)
        of.end()

    over_and_over(scene, evicting, points=EVICTING)


def test_dying_over_and_over_while_a_gang_grows_and_shrinks(scene: Scene) -> None:
    """Its project may have more, and then something urgent wants some of that."""
    world = scene.world

    def resizing(of: Rounds) -> None:
        count = of.chance.randint(3, 4)
        world.quota(world.vision, "h100", 16, borrowing=0)
        wanted = spec(gpus=8, count=count, least=2, command=LONG, name=f"gang-{of.nth}")
        [gang] = of.submit(wanted)
        world.until_state(gang, State.RUNNING)
        world.quota(world.vision, "h100", 8 * count, borrowing=0)
        held = Placement.objects.filter(workload=gang, released_at=None)
        running = held.exclude(started_at=None)
        of.die("cycle", "G1")
        of.take_over("cycle")
        world.until(lambda: running.count() == count)
        wanted = spec(gpus=8, command=SHORT, priority_class="urgent", name=f"urgent-{of.nth}")
        [urgent] = of.submit(wanted)
        of.die("cycle", "G2")
        of.take_over("cycle")
        world.until_state(urgent, State.SUCCEEDED)
        gang.refresh_from_db()
        assert (gang.state, gang.attempts.count()) == (State.RUNNING, 1)
        of.cancel(gang)
        of.end()

    over_and_over(scene, resizing, points=RESIZING)
