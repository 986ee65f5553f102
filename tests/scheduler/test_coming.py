"""Nodes that can come, from the rows of their pools to the word to who waits."""

from collections.abc import Iterator

import pytest

from clusters.autoscaling import Amounts, Autoscaling, NodePoolReport
from clusters.models import DeviceMode as ModelMode
from clusters.models import NodePool
from clusters.port import NodeReport
from clusters.services import autoscaling, inventory
from controlplane.kernel.clock import now
from controlplane.kernel.errors import Invalid
from scheduler.core.snapshot import DeviceMode, Isolation
from scheduler.loop.watching import hardware
from scheduler.models import Workload
from scheduler.selectors import fleet
from scheduler.selectors.recuts import waiting_for_room
from tests import factories
from tests.flows.world import H100, World, build, spec
from tests.simulation import simulation

pytestmark = [pytest.mark.part_simulator, pytest.mark.django_db(transaction=True)]

POOL = NodePoolReport("h100s", limits=Amounts(devices=16))


@pytest.fixture
def world() -> Iterator[World]:
    """One cluster without any node, and a pool of which two of eight GPUs can come."""
    with simulation() as simulator:
        world = build(simulator)
        world.quota(world.vision, "h100", 64)
        nodes(world)
        autoscaling.sync(cluster=world.cluster, found=Autoscaling((POOL,)), at=now())
        yield world


def nodes(world: World, *there: NodeReport) -> None:
    """These are all there are."""
    inventory.sync(
        cluster=world.cluster, reports=there, complete=True, arrange=hardware.arrange, at=now()
    )


def described() -> None:
    pool = NodePool.objects.get()
    node = autoscaling.Described(H100, 8, 96_000, 1_000_000)
    autoscaling.describe_node(id=pool.id, node=node, actor="user:oz", actor_name="oz", at=now())


def told(work: Workload) -> dict[str, object]:
    work.refresh_from_db()
    assert work.reason is not None
    return dict(work.reason)


def test_work_for_a_pool_at_zero_waits_for_its_nodes_and_starts_when_they_come(
    world: World,
) -> None:
    with pytest.raises(Invalid):
        world.submit(spec("h100", gpus=8, count=2))
    described()
    [work] = world.submit(spec("h100", gpus=8, count=2))
    world.cycle()
    assert told(work)["code"] == "waiting-for-node"
    NodePool.objects.update(start_p50_s=300)
    pool = NodePool.objects.get()
    assert pool.room_count == 2
    world.sync()
    world.cycle()
    work.refresh_from_db()
    assert work.state == "ADMITTED"


def test_beyond_the_limits_of_the_pool_nothing_is_let_in(world: World) -> None:
    described()
    with pytest.raises(Invalid, match="Larger than the hardware"):
        world.submit(spec("h100", gpus=8, count=3))


def test_a_node_that_can_come_is_as_the_newest_was_with_its_shares(world: World) -> None:
    of_pool = {"karpenter.sh/nodepool": "h100s"}
    like = factories.node(
        world.cluster,
        "old",
        gpus=2,
        labels=of_pool,
        share_replicas=4,
        share_isolation="memory",
        gone_at=now(),
    )
    autoscaling.sync(cluster=world.cluster, found=Autoscaling((POOL,)), at=now())
    [cluster] = fleet.clusters()
    [pool] = cluster.coming
    assert (pool.name, pool.count, pool.making_count) == ("h100s", 8, 0)
    assert [one.model for one in pool.node.devices] == [d.model for d in like.devices.all()]
    assert {(one.shares, one.replicas) for one in pool.node.devices} == {(Isolation.MEMORY, 4)}
    assert cluster.nodes == ()


def test_a_node_that_can_come_is_not_cut_though_the_newest_is(world: World) -> None:
    of_pool = {"karpenter.sh/nodepool": "h100s"}
    cut = factories.node(world.cluster, "cut", gpus=1, labels=of_pool, mode=ModelMode.MIG_STATIC)
    factories.device_slice(cut.devices.get(), "1g.10gb", 0, 1)
    autoscaling.sync(cluster=world.cluster, found=Autoscaling((POOL,)), at=now())
    [cluster] = fleet.clusters()
    [device] = cluster.coming[0].node.devices
    assert (device.mode, device.slices) == (DeviceMode.WHOLE, ())


def test_work_that_waits_for_a_node_has_a_node_cut_for_it_all_the_same(world: World) -> None:
    described()
    [work] = world.submit(spec("h100", gpus=8, count=2))
    world.cycle()
    assert told(work)["code"] == "waiting-for-node"
    assert str(work.id) in waiting_for_room()
