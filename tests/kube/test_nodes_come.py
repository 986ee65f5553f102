"""Work for which there is no node gets its nodes made: on a real API server and scheduler, with
Karpenter's kinds and somebody who plays Karpenter."""

from collections.abc import Iterator
from itertools import count

import pytest

from clusters.models import NodePool
from clusters.services import autoscaling
from controlplane.kernel.clock import now
from scheduler.core.lifecycle import State
from scheduler.models import AskState, NodeAsk
from scheduler.services import workloads
from tests.flows.world import H100, spec
from tests.kube.control_plane import NAMES, ControlPlane
from tests.kube.crds import serve_karpenter
from tests.kube.growing import Growing, growing
from tests.kube.karpenter import KARPENTER, bring, claims, is_ready, karpenter

pytestmark = pytest.mark.kube

_serial = count(1)
PODS = f"/api/v1/namespaces/{NAMES.home}/pods"


def placeholders(world: Growing) -> list[str]:
    pods = world.kube.admin.get(f"{PODS}?labelSelector={NAMES.label_ask}")["items"]
    return [pod["metadata"]["name"] for pod in pods]


@pytest.fixture
def world(control_plane: ControlPlane, transactional_db: None) -> Iterator[Growing]:
    """A pool at zero, of which three nodes of eight H100s can come, as an operator says. Pool and
    namespace have a name of the test's own; Berth makes the namespace."""
    name = f"growing-{next(_serial)}"
    serve_karpenter(control_plane.admin)
    pool = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {"limits": {"nodes": "3"}, "template": {"spec": {}}},
    }
    control_plane.admin.create(f"{KARPENTER}/nodepools", pool)
    with growing(control_plane, name) as world:
        world.turn()
        node = autoscaling.Described(H100, 8, 90_000, 1_000_000)
        id = NodePool.objects.get(name=name).id
        autoscaling.describe_node(id=id, node=node, actor="user:oz", actor_name="oz", at=now())
        yield world
    for made in claims(control_plane.admin):
        control_plane.admin.delete(f"{KARPENTER}/nodeclaims/{made['metadata']['name']}")
        control_plane.admin.delete(f"/api/v1/nodes/{made['metadata']['name']}")
    control_plane.admin.delete(f"{KARPENTER}/nodepools/{name}")


def test_a_gang_waits_for_nodes_gets_them_made_and_starts_whole(world: Growing) -> None:
    [work] = world.submit(spec("h100", gpus=8, count=2))
    world.turn()
    work.refresh_from_db()
    assert work.reason is not None
    assert work.reason["code"] == "waiting-for-node"
    assert len(placeholders(world)) == 2
    with karpenter(world.kube.admin):
        world.until_state(work, State.SUCCEEDED)
        world.until(lambda: not placeholders(world))
    assert len(claims(world.kube.admin)) == 2  # and not one more
    ask = NodeAsk.objects.get()
    assert ask.state == AskState.GIVEN
    pool = NodePool.objects.get()
    assert (pool.making_count, pool.start_count) == (0, 2)
    assert pool.like is not None


def test_what_is_cancelled_leaves_no_placeholder(world: Growing) -> None:
    [work] = world.submit(spec("h100", gpus=8, count=3))
    world.turn()
    assert len(placeholders(world)) == 3
    workloads.cancel(actor=world.ada, workload=work, at=now())
    world.until(lambda: NodeAsk.objects.get().state == AskState.WITHDRAWN)
    assert placeholders(world) == []


def test_a_node_that_is_free_takes_its_part_and_no_placeholder(world: Growing) -> None:
    pool = NodePool.objects.get().name
    bring(world.kube.admin, f"{pool}-there", pool=pool)
    try:
        world.until(lambda: is_ready(world.kube.admin, f"{pool}-there"))
        [work] = world.submit(spec("h100", gpus=8, count=2))
        world.turn()
        assert len(placeholders(world)) == 1
        with karpenter(world.kube.admin):
            world.until_state(work, State.SUCCEEDED)
            world.until(lambda: not placeholders(world))
        assert len(claims(world.kube.admin)) == 1
        assert NodeAsk.objects.get().state == AskState.GIVEN
    finally:
        world.kube.admin.delete(f"/api/v1/nodes/{pool}-there")
