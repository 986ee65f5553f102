"""Asking a cluster for all nodes at once, by a ProvisioningRequest. The test is the autoscaler."""

from collections.abc import Iterator

import pytest

from clusters.autoscaling import Autoscaling
from clusters.models import Cluster, NodePool
from clusters.services import autoscaling, clusters, declared_pools
from controlplane.kernel.clock import now
from scheduler.core.lifecycle import State
from scheduler.loop.scaling import node_asks
from scheduler.loop.scaling.ways import LIMIT
from scheduler.models import AskState, NodeAsk
from scheduler.selectors.node_asks import of_waiting
from scheduler.services import workloads
from tests.flows.world import World
from tests.scheduler.requesting import (
    BY,
    QUEUED,
    REQUESTS,
    SELECTOR,
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


@pytest.fixture
def world() -> Iterator[World]:
    with requesting() as world:
        yield world


def test_a_gang_gets_one_request_for_all_nodes_that_it_lacks(world: World) -> None:
    submitted(world, 3)
    step(world)
    ask = NodeAsk.objects.get()
    [request], [template] = requests(world), templates(world)
    assert request["metadata"]["name"] == template["metadata"]["name"] == f"nodes-{ask.id}"
    assert request["spec"] == {
        "provisioningClassName": QUEUED,
        "parameters": {"maxRunDurationSeconds": "604800"},
        "podSets": [{"podTemplateRef": {"name": f"nodes-{ask.id}"}, "count": 3}],
    }
    pod = template["template"]["spec"]
    assert pod["nodeSelector"] == SELECTOR
    [container] = pod["containers"]
    assert container["resources"]["requests"]["nvidia.com/gpu"] == "8"
    assert {"nvidia.com/gpu", "cloud.google.com/gke-queued"} <= {
        one["key"] for one in pod["tolerations"]
    }
    step(world)
    assert (NodeAsk.objects.count(), len(requests(world))) == (1, 1)


def test_its_nodes_are_being_made_until_they_are_there_and_how_long_is_learnt(
    world: World,
) -> None:
    work = submitted(world)
    step(world)
    read(world)
    pool = NodePool.objects.get()
    assert (pool.making_count, pool.room_count, pool.start_count) == (2, 2, 0)
    say(world, "Accepted", "Provisioned")
    stands(world, "a3-1", "a3-2")
    step(world)
    pool.refresh_from_db()
    assert (pool.making_count, pool.room_count, pool.start_count) == (0, 2, 2)
    assert pool.like is not None
    work.refresh_from_db()
    assert work.state == State.ADMITTED
    assert NodeAsk.objects.get().came == ["a3-1", "a3-2"]


def test_each_of_its_pods_takes_a_node_of_its_own(world: World) -> None:
    submitted(world, 3, gpus=5)
    step(world)
    [request], [template] = requests(world), templates(world)
    assert request["spec"]["podSets"][0]["count"] == 3
    [container] = template["template"]["spec"]["containers"]
    assert container["resources"]["requests"]["nvidia.com/gpu"] == "8"


def test_the_request_stays_until_the_work_runs_and_its_pods_name_it(world: World) -> None:
    work = submitted(world)
    step(world)
    say(world, "Accepted", "Provisioned")
    stands(world, "a3-1", "a3-2")
    step(world)
    ask = NodeAsk.objects.get()
    assert (ask.state, ask.queued, len(requests(world))) == (AskState.ASKING, True, 1)
    say(world, "Accepted", "Provisioned", "BookingExpired")  # too late to matter
    step(world)
    assert len(requests(world)) == 1
    world.until_state(work, State.RUNNING)
    [first, second] = annotations(world)
    for told in (first, second):
        assert told["autoscaling.x-k8s.io/consume-provisioning-request"] == f"nodes-{ask.id}"
        assert told["autoscaling.x-k8s.io/provisioning-class-name"] == QUEUED
    carry_on(world)
    carry_on(world)
    ask.refresh_from_db()
    assert (ask.state, requests(world), templates(world)) == (AskState.GIVEN, [], [])


@pytest.mark.parametrize("kind", ["Failed", "CapacityRevoked", "BookingExpired"])
def test_a_request_that_comes_to_nothing_is_told_and_made_again_later(
    world: World, kind: str
) -> None:
    work = submitted(world)
    step(world)
    say(world, "Accepted", kind, message="no capacity in any zone")
    at = now()
    step(world, at)
    step(world, at)
    ask = NodeAsk.objects.get()
    assert (ask.state, ask.error) == (AskState.FAILED, f"{kind}: no capacity in any zone")
    assert (requests(world), templates(world)) == ([], [])
    work.refresh_from_db()
    [told] = of_waiting(workload=work, at=at)
    assert (told.failed_at, told.error) == (at, ask.error)
    assert node_asks.plan(at=at + node_asks.AGAIN / 2) == 0
    assert node_asks.plan(at=at + node_asks.AGAIN) == 1
    carry_on(world)
    [again] = requests(world)
    assert again["metadata"]["name"] != f"nodes-{ask.id}"


@pytest.mark.parametrize("how", ["cancelled", "switched off", "forgotten"])
def test_what_nobody_wants_any_more_is_withdrawn(world: World, how: str) -> None:
    work = submitted(world)
    step(world)
    assert len(requests(world)) == 1
    match how:
        case "cancelled":
            workloads.cancel(actor=world.ada, workload=work, at=now())
        case "switched off":
            clusters.ask_for_nodes(cluster=world.cluster, ask=False, at=now(), **BY)
        case _:
            declared_pools.forget(id=NodePool.objects.get().id, at=now(), **BY)
    step(world)
    step(world)
    assert (requests(world), templates(world)) == ([], [])
    assert NodeAsk.objects.get().state == AskState.WITHDRAWN


def test_what_is_queued_waits_as_long_as_the_autoscaler_likes(world: World) -> None:
    submitted(world)
    step(world)
    say(world, "Accepted")
    step(world, now() + 20 * LIMIT)
    assert NodeAsk.objects.get().state == AskState.ASKING
    assert NodePool.objects.get().making_count == 2


def test_what_nobody_accepts_is_given_up(world: World) -> None:
    submitted(world)
    step(world)
    late = now() + LIMIT
    carry_on(world, late)
    carry_on(world, late)
    assert (NodeAsk.objects.get().state, requests(world)) == (AskState.LATE, [])


def test_a_request_that_is_refused_is_told_and_tried_again(world: World) -> None:
    work = submitted(world)
    world.simulator.fault(kind="error", verb="create", resource="provisioningrequests", count=1)
    step(world)
    assert (len(requests(world)), len(templates(world))) == (0, 1)
    work.refresh_from_db()
    [told] = of_waiting(workload=work, at=now())
    assert "500" in told.error
    carry_on(world)
    assert (len(requests(world)), len(templates(world))) == (1, 1)
    assert NodeAsk.objects.get().error == ""


def test_without_the_right_to_look_it_is_told(world: World) -> None:
    submitted(world)
    world.simulator.fault(kind="forbid", verb="list", resource="podtemplates", count=0)
    world.cycle()
    node_asks.plan(at=now())
    assert not node_asks.carry_on(port=world.port, cluster=world.cluster, at=now)
    assert "podtemplates" in NodeAsk.objects.get().error


def test_what_no_row_knows_is_taken_away(world: World) -> None:
    submitted(world)
    step(world)
    NodeAsk.objects.all().delete()
    carry_on(world)
    assert (requests(world), templates(world)) == ([], [])


def test_others_requests_are_left_alone_and_counted(world: World) -> None:
    body = {
        "metadata": {"name": "theirs", "labels": {"app": "kueue"}},
        "spec": {"provisioningClassName": QUEUED, "podSets": [{"count": 4}]},
        "status": {"conditions": [{"type": "Accepted", "status": "True"}]},
    }
    world.simulator.call("POST", REQUESTS, body)
    step(world)
    assert [one["metadata"]["name"] for one in requests(world)] == ["theirs"]
    assert Cluster.objects.get(name="north").foreign_requests_count == 1
    assert NodePool.objects.get().making_count == 0
    say(world, "Accepted", "Provisioned")
    read(world)
    assert Cluster.objects.get(name="north").foreign_requests_count == 0


def test_a_cluster_without_such_requests_has_nothing_of_a_declared_pool(world: World) -> None:
    submitted(world)
    autoscaling.sync(cluster=world.cluster, found=Autoscaling(), at=now())
    pool = NodePool.objects.get()
    assert (pool.ready, pool.room_count) == (False, 0)
    world.cycle()
    assert node_asks.plan(at=now()) == 0
