"""Whoever asks for nodes may die at each step: no placeholder stays that nobody wants, and what
is wanted is asked for all the same."""

import pytest

from clusters.autoscaling import Amounts, Autoscaling, NodePoolReport
from clusters.models import NodePool
from clusters.services import autoscaling, clusters, inventory
from controlplane.kernel.clock import now
from scheduler.loop import hardware, node_asks
from scheduler.models import AskState, NodeAsk
from scheduler.services import workloads
from tests.crash.conftest import Scene
from tests.crash.rounds import Rounds, over_and_over
from tests.flows.world import H100, World, spec

POINTS = ("N1", "N2")
POOL = NodePoolReport("h100s", limits=Amounts(devices=32))


def at_zero(world: World) -> None:
    """The cluster has no node, and may be asked for four."""
    of = world.cluster
    world.quota(world.vision, "h100", 64)
    inventory.sync(cluster=of, reports=(), complete=True, arrange=hardware.arrange, at=now())
    autoscaling.sync(cluster=of, found=Autoscaling((POOL,)), at=now())
    node = autoscaling.Described(H100, 8, 96_000, 1_000_000)
    by = {"actor": "user:oz", "actor_name": "oz"}
    autoscaling.describe_node(id=NodePool.objects.get().id, node=node, at=now(), **by)
    clusters.ask_for_nodes(cluster=of, ask=True, at=now(), **by)


def there(world: World) -> int:
    return len(world.port.list_placeholders())


@pytest.mark.parametrize("point", POINTS)
def test_dying_at(point: str, scene: Scene) -> None:
    world = scene.world
    at_zero(world)
    [work] = world.submit(spec("h100", gpus=8, count=2))
    world.cycle()
    assert node_asks.plan(at=now()) == 1
    scene.children.run("ask_for_nodes", crash=point)
    assert there(world) == POINTS.index(point)
    node_asks.carry_on(port=world.port, cluster=world.cluster, at=now)
    assert there(world) == 2
    workloads.cancel(actor=world.ada, workload=work, at=now())
    scene.children.run("ask_for_nodes", crash="N1")  # the row says that they are still there
    assert NodeAsk.objects.get().state == AskState.CLOSING
    for _ in range(2):
        node_asks.carry_on(port=world.port, cluster=world.cluster, at=now)
    assert (there(world), NodeAsk.objects.get().state) == (0, AskState.WITHDRAWN)
    scene.end_well()


def test_dying_over_and_over(scene: Scene) -> None:
    world = scene.world
    at_zero(world)

    def asking(of: Rounds) -> None:
        def go_on() -> None:
            if of.chance.random() < 1 / 2:
                scene.children.run("ask_for_nodes")
            else:
                node_asks.carry_on(port=world.port, cluster=world.cluster, at=now)

        count = of.chance.randint(1, 4)
        [work] = of.submit(spec("h100", gpus=8, count=count, name=f"r{of.nth}"))
        world.cycle()
        assert node_asks.plan(at=now()) == 1
        ask = NodeAsk.objects.get(workload=work)
        of.die("ask_for_nodes", "N1")
        assert there(world) == 0
        of.die("ask_for_nodes", "N2", passes=count)
        assert 1 <= there(world) <= count
        go_on()
        assert there(world) == count
        of.cancel(work)
        of.die("ask_for_nodes", "N1")
        for _ in range(2):
            go_on()
        ask.refresh_from_db()
        assert (there(world), ask.state) == (0, AskState.WITHDRAWN)

    over_and_over(scene, asking, points=POINTS)
