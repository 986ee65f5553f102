"""Asking a cluster for nodes: placeholders for what work lacks, taken away once nodes come or
nobody wants them. The test is the autoscaler."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from clusters.autoscaling import Amounts, Autoscaling, NodeClaimReport, NodePoolReport
from clusters.models import Cluster, NodePool
from clusters.services import autoscaling, clusters, inventory
from controlplane.kernel.clock import now
from controlplane.kernel.ids import uuid7
from scheduler.loop.scaling import node_asks
from scheduler.loop.scaling.ways import LIMIT
from scheduler.loop.watching import hardware
from scheduler.models import AskState, NodeAsk, Workload
from scheduler.selectors.node_asks import of_waiting
from scheduler.services import workloads
from tests import factories
from tests.flows.world import H100, World, build, spec
from tests.simulation import simulation

pytestmark = [pytest.mark.part_simulator, pytest.mark.django_db(transaction=True)]

POOL = NodePoolReport("h100s", limits=Amounts(devices=32))
PODS = "/api/v1/namespaces/berth-system/pods"


@pytest.fixture
def world() -> Iterator[World]:
    """A cluster that is to be asked, without a node, and a pool of which four can come."""
    with simulation() as simulator:
        world = build(simulator)
        world.quota(world.vision, "h100", 64)
        inventory.sync(
            cluster=world.cluster, reports=(), complete=True, arrange=hardware.arrange, at=now()
        )
        seen(world)
        node = autoscaling.Described(H100, 8, 96_000, 1_000_000)
        id = NodePool.objects.get().id
        autoscaling.describe_node(id=id, node=node, actor="user:oz", actor_name="oz", at=now())
        switch(world, ask=True)
        yield world


def switch(world: World, *, ask: bool) -> None:
    clusters.ask_for_nodes(
        cluster=world.cluster, ask=ask, actor="user:oz", actor_name="oz", at=now()
    )


def seen(world: World, *claims: NodeClaimReport) -> None:
    autoscaling.sync(cluster=world.cluster, found=Autoscaling((POOL,), claims), at=now())


def came(name: str, at: datetime) -> NodeClaimReport:
    """A node of the pool that has registered and is not ready."""
    return NodeClaimReport(
        name, f"uid-{name}", "h100s", at, launched=True, registered=True, node=name
    )


def submitted(world: World, count: int = 2) -> Workload:
    [work] = world.submit(spec("h100", gpus=8, count=count))
    return work


def step(world: World, at: datetime | None = None) -> None:
    world.cycle()
    moment = at or now()
    node_asks.plan(at=moment)
    carry_on(world, moment)


def carry_on(world: World, at: datetime | None = None) -> None:
    cluster = Cluster.objects.get(name="north")
    assert node_asks.carry_on(port=world.port, cluster=cluster, at=lambda: at or now())


def placeholders(world: World) -> list[Any]:  # Any: JSON
    found = world.simulator.call("GET", PODS)["items"]
    return [pod for pod in found if "berth.dev/node-ask" in pod["metadata"].get("labels", {})]


def test_a_gang_gets_a_placeholder_for_each_node_that_it_lacks(world: World) -> None:
    submitted(world)
    step(world)
    ask = NodeAsk.objects.get()
    found = placeholders(world)
    assert {pod["metadata"]["name"] for pod in found} == {f"node-{ask.id}-{n}" for n in (0, 1)}
    pod = found[0]["spec"]
    assert pod["nodeSelector"] == {"karpenter.sh/nodepool": "h100s"}
    assert pod["priorityClassName"] == "berth-placeholder"
    [container] = pod["containers"]
    assert container["resources"]["requests"]["nvidia.com/gpu"] == "8"
    gpu = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
    assert gpu in pod["tolerations"]
    assert not pod.get("schedulingGates")  # else no autoscaler would see it
    step(world)
    assert (NodeAsk.objects.count(), len(placeholders(world))) == (1, 2)


def test_a_cluster_that_is_not_to_be_asked_is_not(world: World) -> None:
    switch(world, ask=False)
    submitted(world)
    step(world)
    assert not NodeAsk.objects.exists()
    assert (Workload.objects.get().reason or {})["code"] == "waiting-for-node"


def test_where_one_cluster_of_two_is_asked_that_one_is(world: World) -> None:
    other = clusters.register(
        name="south", region="", actor="system:test", actor_name="test", at=now()
    )
    clusters.heard(cluster=other)
    of = NodePool.objects.get()
    of.pk, of.cluster, of.name = uuid7(), other, "others"
    of._state.adding = True
    of.save()
    submitted(world)
    step(world)
    assert NodeAsk.objects.get().pool.cluster == world.cluster


def test_placeholders_go_as_nodes_register_and_the_ask_is_answered(world: World) -> None:
    submitted(world)
    step(world)
    at = now()
    seen(world, came("n-1", at))
    step(world)
    [left] = placeholders(world)
    assert left["metadata"]["name"].endswith("-1")
    seen(world, came("n-1", at), came("n-2", at))
    step(world)
    step(world)
    ask = NodeAsk.objects.get()
    assert (ask.state, ask.came, placeholders(world)) == (AskState.GIVEN, ["n-1", "n-2"], [])
    step(world)
    assert NodeAsk.objects.count() == 1  # the two are being made
    seen(world)  # they are gone again
    world.cycle()
    assert node_asks.plan(at=now() + timedelta(minutes=9)) == 0
    assert node_asks.plan(at=now() + node_asks.AGAIN) == 1


def test_a_node_is_the_answer_to_one_ask(world: World) -> None:
    submitted(world, 1)
    submitted(world, 1)
    step(world)
    assert len(placeholders(world)) == 2
    seen(world, came("n-1", now()))
    step(world)
    step(world)
    states = NodeAsk.objects.order_by("asked_at", "id").values_list("state", flat=True)
    assert sorted(states) == [AskState.ASKING, AskState.GIVEN]
    assert len(placeholders(world)) == 1


@pytest.mark.parametrize("how", ["cancelled", "switched off", "no quota"])
def test_what_nobody_wants_any_more_is_given_back(world: World, how: str) -> None:
    work = submitted(world)
    step(world)
    match how:
        case "cancelled":
            workloads.cancel(actor=world.ada, workload=work, at=now())
        case "switched off":
            switch(world, ask=False)
        case _:
            world.quota(world.vision, "h100", 0, borrowing=0)
    step(world)
    step(world)
    assert placeholders(world) == []
    assert NodeAsk.objects.get().state == AskState.WITHDRAWN


def test_what_does_not_come_in_time_is_not_asked_for_again_for_a_while(world: World) -> None:
    submitted(world)
    step(world)
    late = now() + LIMIT
    carry_on(world, late)
    carry_on(world, late)
    assert NodeAsk.objects.get().state == AskState.LATE
    assert placeholders(world) == []
    assert node_asks.plan(at=late + timedelta(minutes=9)) == 0
    assert node_asks.plan(at=late + node_asks.AGAIN) == 1


def test_a_placeholder_that_came_to_stand_somewhere_makes_way_at_once(world: World) -> None:
    submitted(world, 1)
    step(world)
    ask = NodeAsk.objects.get()
    NodePool.objects.update(gone_at=None)
    bind(world, f"node-{ask.id}-0")
    step(world)
    step(world)
    assert (placeholders(world), NodeAsk.objects.get().state) == ([], AskState.GIVEN)


def bind(world: World, name: str) -> None:
    """It gets a node of the pool, of which Berth knows nothing yet."""
    stands(world, "late", discovered=False)

    def bound() -> bool:
        return bool(world.simulator.call("GET", f"{PODS}/{name}")["spec"].get("nodeName"))

    world.until(bound)


def stands(world: World, name: str, *, discovered: bool = True) -> None:
    """A node of the pool, with eight free H100s; nobody has looked yet at what GPUs one has that
    is not `discovered`."""
    nodes = world.simulator.call("GET", "/api/v1/nodes")["items"]
    product = "nvidia.com/gpu.product"
    like = next(n for n in nodes if "H100" in n["metadata"]["labels"].get(product, ""))
    labels = like["metadata"]["labels"] if discovered else {}
    labels |= {"karpenter.sh/nodepool": "h100s", "kubernetes.io/hostname": name}
    metadata = {"name": name, "labels": labels}
    body = {"metadata": metadata, "spec": {}, "status": like["status"]}
    world.simulator.call("POST", "/api/v1/nodes", body)


def test_a_free_node_that_is_there_is_no_answer_and_takes_no_placeholder(world: World) -> None:
    stands(world, "there")
    reports = [one for one in world.port.list_nodes().items if one.name == "there"]
    inventory.sync(
        cluster=world.cluster, reports=reports, complete=True, arrange=hardware.arrange, at=now()
    )
    seen(world)
    submitted(world, 2)
    step(world)
    [pod] = placeholders(world)  # for the other of the two

    def refused() -> bool:
        told = world.simulator.call("GET", f"{PODS}/{pod['metadata']['name']}")
        return bool(told["status"].get("conditions"))

    world.until(refused)
    step(world)
    ask = NodeAsk.objects.get()
    assert (ask.state, ask.came) == (AskState.ASKING, [])
    assert [one["spec"].get("nodeName") for one in placeholders(world)] == [None]


def test_a_known_node_is_no_answer_even_if_a_placeholder_stands_there(world: World) -> None:
    submitted(world, 1)
    step(world)
    ask = NodeAsk.objects.get()
    factories.node(world.cluster, "late", gpus=0)
    bind(world, f"node-{ask.id}-0")
    carry_on(world)
    ask.refresh_from_db()
    assert (ask.came, placeholders(world)) == ([], [])


def test_works_that_share_a_node_ask_for_one(world: World) -> None:
    for _ in range(9):
        world.submit(spec("h100", gpus=1, count=1))
    step(world)
    asked = [node["devices_count"] for ask in NodeAsk.objects.all() for node in ask.nodes]
    assert sorted(asked) == [1, 8]
    carry_on(world)
    assert len(placeholders(world)) == 2


def test_who_comes_later_and_goes_first_does_not_ask_for_the_same_again(world: World) -> None:
    world.submit(spec("h100", gpus=1, count=1))
    step(world)
    world.submit(spec("h100", gpus=1, count=1, priority_class="high"))
    step(world)
    assert NodeAsk.objects.count() == 1


def test_a_gang_asks_for_all_that_it_lacks_beside_what_is_being_made(world: World) -> None:
    submitted(world, 1)
    step(world)
    seen(world, NodeClaimReport("n-1", "uid-n-1", "h100s", now()))
    submitted(world, 3)
    step(world)
    assert sorted(len(ask.nodes) for ask in NodeAsk.objects.all()) == [1, 3]


def test_of_a_pool_whose_node_was_of_no_use_nobody_asks_another_for_a_while(world: World) -> None:
    submitted(world, 1)
    step(world)
    at = now()
    seen(world, came("n-1", at))
    step(world)
    step(world)
    assert NodeAsk.objects.get().state == AskState.GIVEN
    seen(world)  # it was none for this work
    submitted(world, 1)
    world.cycle()
    assert node_asks.plan(at=now()) == 0
    assert node_asks.plan(at=now() + node_asks.AGAIN) == 2


def test_a_placeholder_that_no_row_knows_is_taken_away(world: World) -> None:
    """Whoever made it was killed, and its row is gone with its workload."""
    submitted(world)
    step(world)
    NodeAsk.objects.all().delete()
    assert node_asks.due() == [world.cluster.id]
    carry_on(world)
    assert placeholders(world) == []


def test_a_cluster_that_is_asked_no_more_is_looked_after_for_a_day(world: World) -> None:
    submitted(world)
    step(world)
    switch(world, ask=False)
    step(world)
    step(world)
    assert NodeAsk.objects.get().state == AskState.WITHDRAWN
    assert node_asks.due() == [world.cluster.id]
    NodeAsk.objects.update(ended_at=now() - node_asks.LOOKED_AFTER)
    assert node_asks.due() == []


def test_a_cluster_that_is_out_of_reach_is_left_as_it_is(world: World) -> None:
    submitted(world)
    world.cycle()
    node_asks.plan(at=now())
    world.simulator.fault(kind="forbid", verb="list", resource="pods", count=0)
    cluster = Cluster.objects.get(name="north")
    assert not node_asks.carry_on(port=world.port, cluster=cluster, at=now)
    world.simulator.heal()
    carry_on(world)
    assert len(placeholders(world)) == 2


def test_a_placeholder_that_is_refused_holds_up_no_other(world: World) -> None:
    for _ in range(2):
        submitted(world, 1)
    world.cycle()
    node_asks.plan(at=now())
    second = NodeAsk.objects.order_by("asked_at", "id")[1]
    world.simulator.fault(kind="error", verb="create", resource="pods", count=1)
    carry_on(world)
    [made] = placeholders(world)
    assert made["metadata"]["name"] == f"node-{second.id}-0"
    [refused] = NodeAsk.objects.exclude(error="")
    [told] = of_waiting(workload=refused.workload, at=now())
    assert "500" in told.error
    carry_on(world)
    assert len(placeholders(world)) == 2
    assert not NodeAsk.objects.exclude(error="").exists()
