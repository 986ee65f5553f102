"""A gang for which there are no nodes gets all of them by one request: on a real API server and
scheduler, with ProvisioningRequests and somebody who plays their autoscaler."""

from collections.abc import Iterator
from datetime import timedelta
from itertools import count
from typing import Any

import pytest

from clusters.models import NodePool
from clusters.services import declared_pools
from clusters.services.autoscaling import Described
from clusters.services.declared_pools import Declared
from controlplane.kernel.clock import now
from scheduler.core.lifecycle import State
from scheduler.loop.scaling import node_asks
from scheduler.models import AskState, NodeAsk
from scheduler.selectors.node_asks import of_waiting
from scheduler.services import workloads
from tests.flows.world import H100, spec
from tests.kube.control_plane import NAMES, ControlPlane
from tests.kube.crds import serve_requests
from tests.kube.growing import Growing, growing
from tests.kube.scale_up import REQUESTS, scale_up

pytestmark = pytest.mark.kube

_serial = count(1)
TEMPLATES = f"/api/v1/namespaces/{NAMES.home}/podtemplates"
CLASS = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
BY = {"actor": "user:oz", "actor_name": "oz"}


@pytest.fixture
def world(control_plane: ControlPlane, transactional_db: None) -> Iterator[Growing]:
    """A pool at zero of up to three nodes with eight H100s each, as an operator declares."""
    name = f"at-once-{next(_serial)}"
    serve_requests(control_plane.admin)
    with growing(control_plane, name) as world:
        pool = Declared(name, {"example.org/group": name}, CLASS, 3, {"ValidUntilSeconds": "600"})
        node = Described(H100, 8, 90_000, 1_000_000)
        declared_pools.declare(cluster=world.cluster, pool=pool, node=node, at=now(), **BY)
        world.turn()
        yield world
    nodes = control_plane.admin.get(f"/api/v1/nodes?labelSelector=example.org/group={name}")
    for made in nodes["items"]:
        control_plane.admin.delete(f"/api/v1/nodes/{made['metadata']['name']}")


def requests(world: Growing) -> list[Any]:  # Any: JSON
    return list(world.kube.admin.get(REQUESTS)["items"])


def nothing_is_left(world: Growing) -> bool:
    return not requests(world) and not world.kube.admin.get(TEMPLATES)["items"]


def test_a_gang_waits_gets_all_nodes_by_one_request_and_starts_whole(world: Growing) -> None:
    [work] = world.submit(spec("h100", gpus=8, count=2))
    world.turn()
    work.refresh_from_db()
    assert (work.reason or {})["code"] == "waiting-for-node"
    [request] = requests(world)
    assert [pods["count"] for pods in request["spec"]["podSets"]] == [2]
    with scale_up(world.kube.admin, most=3):
        world.until_state(work, State.BOUND, State.RUNNING, State.SUCCEEDED)
        pods = world.kube.admin.get(f"/api/v1/namespaces/{world.vision.namespace}/pods")["items"]
        world.until_state(work, State.SUCCEEDED)
        world.until(lambda: nothing_is_left(world))
    consumes = "autoscaling.x-k8s.io/consume-provisioning-request"
    told = [pod["metadata"]["annotations"].get(consumes) for pod in pods]
    assert told == [request["metadata"]["name"]] * 2
    assert NodeAsk.objects.get().state == AskState.GIVEN
    pool = NodePool.objects.get()
    assert (pool.making_count, pool.start_count, pool.used) == (0, 2, {"nodes": 2})
    assert pool.like is not None


def test_a_request_that_fails_is_told_and_made_again_later(world: Growing) -> None:
    [work] = world.submit(spec("h100", gpus=8, count=3))
    with scale_up(world.kube.admin, most=2):
        world.until(lambda: NodeAsk.objects.filter(state=AskState.FAILED).exists())
    assert nothing_is_left(world)
    work.refresh_from_db()
    assert work.state == State.PENDING
    [told] = of_waiting(workload=work, at=now())
    assert told.error == "Failed: the group has no more"
    assert node_asks.plan(at=now()) == 0
    later = now() + node_asks.AGAIN + timedelta(seconds=1)
    assert node_asks.plan(at=later) == 1
    with scale_up(world.kube.admin, most=3):
        world.until_state(work, State.SUCCEEDED)


def test_what_is_cancelled_leaves_no_request(world: Growing) -> None:
    [work] = world.submit(spec("h100", gpus=8, count=3))
    world.turn()
    assert len(requests(world)) == 1
    workloads.cancel(actor=world.ada, workload=work, at=now())
    world.until(lambda: NodeAsk.objects.get().state == AskState.WITHDRAWN)
    assert nothing_is_left(world)
