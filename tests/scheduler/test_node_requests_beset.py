"""What others do while nodes are asked for at once: the pool is changed or taken over, the request
deleted, the clock of the cluster behind, and the work starts elsewhere."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from clusters.autoscaling import Autoscaling, NodePoolReport
from clusters.models import NodePool
from clusters.services import autoscaling, declared_pools
from clusters.services.declared_pools import Declared
from controlplane.kernel.clock import now
from scheduler.core.lifecycle import State
from scheduler.loop.scaling import node_asks
from scheduler.models import AskState, NodeAsk, Workload
from tests.flows.world import World
from tests.scheduler.requesting import (
    BY,
    POOL,
    QUEUED,
    REQUESTS,
    SHAPE,
    annotations,
    carry_on,
    read,
    requesting,
    requests,
    say,
    stands,
    step,
    submitted,
    templates,
)

pytestmark = [pytest.mark.part_simulator, pytest.mark.django_db(transaction=True)]
ATOMIC = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"


@pytest.fixture
def world() -> Iterator[World]:
    with requesting() as world:
        yield world


def delete_request(world: World) -> None:
    [request] = requests(world)
    world.simulator.call("DELETE", f"{REQUESTS}/{request['metadata']['name']}", {})


def test_a_request_goes_once_its_pool_is_karpenters(world: World) -> None:
    submitted(world)
    step(world)
    declared_pools.forget(id=NodePool.objects.get().id, at=now(), **BY)
    theirs = Autoscaling((NodePoolReport("a3"),), requests=())
    autoscaling.sync(cluster=world.cluster, found=theirs, at=now())
    carry_on(world)
    carry_on(world)
    assert (requests(world), templates(world)) == ([], [])
    assert world.port.list_placeholders() == ()
    assert NodeAsk.objects.get().state == AskState.WITHDRAWN


def test_one_of_no_row_goes_even_if_its_pool_is_karpenters_since(world: World) -> None:
    first = submitted(world, 1)
    step(world)
    submitted(world, 1)
    step(world)
    NodeAsk.objects.filter(workload=first).delete()  # as does a restored database
    declared_pools.forget(id=NodePool.objects.get().id, at=now(), **BY)
    theirs = Autoscaling((NodePoolReport("a3"),), requests=())
    autoscaling.sync(cluster=world.cluster, found=theirs, at=now())
    for _ in range(3):
        carry_on(world)
    assert (requests(world), templates(world)) == ([], [])


@pytest.mark.parametrize(
    "pool",
    [
        replace(POOL, request_class=ATOMIC),
        replace(POOL, selector={"pool": "other"}),
        replace(POOL, parameters={}),
    ],
)
def test_a_request_goes_once_its_pool_is_asked_on_other_terms(
    world: World, pool: Declared
) -> None:
    submitted(world)
    step(world)
    say(world, "Accepted")
    declared_pools.declare(cluster=world.cluster, pool=pool, node=SHAPE, at=now(), **BY)
    step(world)
    step(world)
    assert requests(world) == []
    assert node_asks.plan(at=now() + node_asks.WITHDRAWN_AGAIN) == 1
    carry_on(world)
    [again] = requests(world)
    assert again["spec"]["provisioningClassName"] == pool.request_class
    assert again["spec"]["parameters"] == pool.parameters


def test_one_that_is_not_asked_on_other_terms_stays(world: World) -> None:
    submitted(world)
    step(world)
    pool = replace(POOL, nodes=3)
    declared_pools.declare(cluster=world.cluster, pool=pool, node=SHAPE, at=now(), **BY)
    step(world)
    step(world)
    assert (NodeAsk.objects.get().state, len(requests(world))) == (AskState.ASKING, 1)


def test_nodes_that_came_are_not_ordered_again_once_the_request_is_gone(world: World) -> None:
    submitted(world)
    step(world)
    say(world, "Accepted", "Provisioned")
    stands(world, "a3-1", "a3-2")
    read(world)
    carry_on(world)
    delete_request(world)
    carry_on(world)
    carry_on(world)
    assert (requests(world), templates(world)) == ([], [])
    ask = NodeAsk.objects.get()
    assert (ask.state, ask.error) == (
        AskState.FAILED,
        "Deleted: it is no longer in its cluster",
    )


def test_one_that_nobody_has_accepted_is_made_again(world: World) -> None:
    submitted(world)
    step(world)
    delete_request(world)
    carry_on(world)
    assert len(requests(world)) == 1


def test_an_accepted_request_that_is_gone_does_not_matter_once_the_work_starts(
    world: World,
) -> None:
    work = submitted(world)
    step(world)
    say(world, "Accepted", "Provisioned")
    stands(world, "a3-1", "a3-2")
    step(world)
    delete_request(world)
    carry_on(world)
    assert (NodeAsk.objects.get().state, requests(world)) == (AskState.ASKING, [])
    world.until_state(work, State.RUNNING)
    carry_on(world)
    carry_on(world)
    assert NodeAsk.objects.get().state == AskState.GIVEN


def test_what_starts_before_its_request_is_made_gets_none(world: World) -> None:
    work = submitted(world)
    read(world)
    world.cycle()
    assert node_asks.plan(at=now()) == 1
    stands(world, "free-1", "free-2", of={})
    world.cycle()
    work.refresh_from_db()
    assert work.state == State.ADMITTED
    carry_on(world)
    assert (requests(world), templates(world)) == ([], [])


def test_nodes_come_for_their_request_whatever_the_clocks_say(world: World) -> None:
    submitted(world)
    step(world)
    say(world, "Accepted", "Provisioned")
    found = world.port.read_autoscaling()
    assert found
    [request] = found.requests or ()
    behind = replace(request, created_at=now() - timedelta(minutes=5))
    stands(world, "a3-1", "a3-2")
    found = replace(found, requests=(behind,))
    autoscaling.sync(cluster=world.cluster, found=found, at=now())
    carry_on(world)
    assert NodeAsk.objects.get().came == ["a3-1", "a3-2"]


def test_no_ask_counts_the_nodes_of_another(world: World) -> None:
    first, second = submitted(world), submitted(world)
    step(world)
    say(world, "Accepted", to=first)
    say(world, "Accepted", "Provisioned", to=second)
    stands(world, "a3-1", "a3-2")
    read(world)
    carry_on(world)
    came = dict(NodeAsk.objects.values_list("workload_id", "came"))
    assert came == {first.id: [], second.id: ["a3-1", "a3-2"]}


def test_pods_on_nodes_of_no_request_name_none(world: World) -> None:
    work = submitted(world)
    step(world)
    stands(world, "free-1", "free-2", of={"cloud.google.com/gke-nodepool": "other"})
    world.cycle()
    world.until_state(work, State.RUNNING)
    assert [QUEUED in told.values() for told in annotations(world)] == [False, False]


def test_pods_name_the_request_on_the_terms_on_which_it_was_made(world: World) -> None:
    work = submitted(world)
    step(world)
    say(world, "Accepted", "Provisioned")
    stands(world, "a3-1", "a3-2")
    step(world)
    NodePool.objects.update(request_class=ATOMIC)
    world.until_state(work, State.RUNNING)
    assert [QUEUED in told.values() for told in annotations(world)] == [True, True]


def test_a_withdrawn_request_is_named_by_no_pod(world: World) -> None:
    work = submitted(world)
    step(world)
    stands(world, "a3-1", "a3-2")
    step(world)
    NodeAsk.objects.update(state=AskState.CLOSING, outcome=AskState.WITHDRAWN)
    world.until_state(work, State.RUNNING)
    assert [QUEUED in told.values() for told in annotations(world)] == [False, False]
    assert Workload.objects.get().state == State.RUNNING
