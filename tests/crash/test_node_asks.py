"""Whoever asks for nodes may die at each step: no placeholder and no request stays that nobody
wants, and what is wanted is asked for once."""

import pytest

from clusters.autoscaling import Amounts, Autoscaling, NodePoolReport
from clusters.models import NodePool
from clusters.services import autoscaling, clusters, declared_pools, inventory
from clusters.services.declared_pools import Declared
from controlplane.kernel.clock import now
from scheduler.loop.scaling import node_asks
from scheduler.loop.watching import hardware
from scheduler.models import AskState, NodeAsk
from scheduler.services import workloads
from tests.crash.conftest import Scene
from tests.crash.rounds import Rounds, over_and_over
from tests.flows.world import H100, World, spec

PLACEHOLDERS = ("N1", "N2")
REQUESTS = ("N1", "N4", "N3")
"""Before the template, between that and the request, and after both."""
POINTS = {*PLACEHOLDERS, *REQUESTS, "N5"}
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


@pytest.mark.parametrize("point", PLACEHOLDERS)
def test_dying_at(point: str, scene: Scene) -> None:
    world = scene.world
    at_zero(world)
    [work] = world.submit(spec("h100", gpus=8, count=2))
    world.cycle()
    assert node_asks.plan(at=now()) == 1
    scene.children.run("ask_for_nodes", crash=point)
    assert there(world) == PLACEHOLDERS.index(point)
    node_asks.carry_on(port=world.port, cluster=world.cluster, at=now)
    assert there(world) == 2
    workloads.cancel(actor=world.ada, workload=work, at=now())
    scene.children.run("ask_for_nodes", crash="N1")  # the row says that they are still there
    assert NodeAsk.objects.get().state == AskState.CLOSING
    for _ in range(2):
        node_asks.carry_on(port=world.port, cluster=world.cluster, at=now)
    assert (there(world), NodeAsk.objects.get().state) == (0, AskState.WITHDRAWN)
    scene.end_well()


def declared(world: World) -> None:
    """The cluster has no node, and takes requests for four."""
    of, by = world.cluster, {"actor": "user:oz", "actor_name": "oz"}
    world.quota(world.vision, "h100", 64)
    inventory.sync(cluster=of, reports=(), complete=True, arrange=hardware.arrange, at=now())
    declared_pools.declare(
        cluster=of,
        pool=Declared("a3", {"pool": "a3"}, "queued-provisioning.gke.io", 4, {}),
        node=autoscaling.Described(H100, 8, 96_000, 1_000_000),
        at=now(),
        **by,
    )
    clusters.ask_for_nodes(cluster=of, ask=True, at=now(), **by)
    found = world.port.read_autoscaling()
    assert found is not None
    autoscaling.sync(cluster=of, found=found, at=now())


def parts(world: World) -> list[tuple[bool, bool]]:
    """Of each request there, whether its template and itself are."""
    found = world.port.list_node_requests()
    return [(bool(one.template_uid), bool(one.uid)) for one in found]


@pytest.mark.parametrize("point", REQUESTS)
def test_dying_while_nodes_are_asked_for_at_once(point: str, scene: Scene) -> None:
    world = scene.world
    declared(world)
    [work] = world.submit(spec("h100", gpus=8, count=2))
    world.cycle()
    assert node_asks.plan(at=now()) == 1
    scene.children.run("ask_for_nodes", crash=point)
    assert parts(world) == [[], [(True, False)], [(True, True)]][REQUESTS.index(point)]
    for _ in range(2):
        node_asks.carry_on(port=world.port, cluster=world.cluster, at=now)
        assert parts(world) == [(True, True)]
    workloads.cancel(actor=world.ada, workload=work, at=now())
    scene.children.run("ask_for_nodes", crash="N5")
    assert parts(world) == [(True, False)]
    assert NodeAsk.objects.get().state == AskState.CLOSING
    for _ in range(2):
        node_asks.carry_on(port=world.port, cluster=world.cluster, at=now)
    assert (parts(world), NodeAsk.objects.get().state) == ([], AskState.WITHDRAWN)
    scene.end_well()


class Round:
    """One in which a gang of one to four is asked for, and cancelled."""

    def __init__(self, of: Rounds) -> None:
        self._of, self._world = of, of.scene.world
        self.count = of.chance.randint(1, 4)
        [self._work] = of.submit(spec("h100", gpus=8, count=self.count, name=f"r{of.nth}"))
        self._world.cycle()
        assert node_asks.plan(at=now()) == 1
        self._ask = NodeAsk.objects.get(workload=self._work)

    def die(self, point: str, *, passes: int = 1) -> None:
        self._of.die("ask_for_nodes", point, passes=passes)

    def go_on(self) -> None:
        """Whoever asks next."""
        if self._of.chance.random() < 1 / 2:
            self._of.scene.children.run("ask_for_nodes")
        else:
            node_asks.carry_on(port=self._world.port, cluster=self._world.cluster, at=now)

    def cancel_and_die(self, point: str) -> None:
        self._of.cancel(self._work)
        self.die(point)

    def end(self) -> AskState:
        for _ in range(2):
            self.go_on()
        self._ask.refresh_from_db()
        return AskState(self._ask.state)


def test_dying_over_and_over(scene: Scene) -> None:
    world = scene.world
    at_zero(world)

    def asking(of: Rounds) -> None:
        one = Round(of)
        one.die("N1")
        assert there(world) == 0
        one.die("N2", passes=one.count)
        assert 1 <= there(world) <= one.count
        one.go_on()
        assert there(world) == one.count
        one.cancel_and_die("N1")
        assert (one.end(), there(world)) == (AskState.WITHDRAWN, 0)

    over_and_over(scene, asking, points=PLACEHOLDERS)


def test_dying_over_and_over_while_nodes_are_asked_for_at_once(scene: Scene) -> None:
    world = scene.world
    declared(world)

    def asking(of: Rounds) -> None:
        one = Round(of)
        for point, there in zip(REQUESTS, ([], [(True, False)], [(True, True)]), strict=True):
            one.die(point)
            assert parts(world) == there
        one.go_on()
        assert parts(world) == [(True, True)]
        one.cancel_and_die("N5")
        assert parts(world) == [(True, False)]
        assert (one.end(), parts(world)) == (AskState.WITHDRAWN, [])

    over_and_over(scene, asking, points=[*REQUESTS, "N5"])
