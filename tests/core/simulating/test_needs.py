"""Which nodes are asked for: as many as all that wait could start on, and not one more."""

from collections.abc import Sequence
from dataclasses import replace

from scheduler.core.policy import Policy
from scheduler.core.simulating.needs import NodeNeed, needs
from scheduler.core.snapshot import CapsView, ComingView, NodeView, PendingView, Snapshot
from tests.core.build import cluster, job, node, pods, queue, runs, snapshot


def comes(count: int, making: int = 0) -> ComingView:
    return ComingView("p", "h100s", node("like", gpus=8), count, making)


def of(
    pool: ComingView,
    *pending: PendingView,
    nodes: Sequence[NodeView] = (),
    quota: int = 64,
) -> Snapshot:
    return snapshot(
        clusters=[replace(cluster("c1", nodes), coming=(pool,))],
        queues=[queue("a", h100=quota)],
        pending=pending,
    )


def asked(found: Snapshot) -> dict[str, list[int]]:
    """By workload, the devices of each node that it lacks."""
    made = needs(snapshot=found, policy=Policy())
    return {need.workload: [each.devices_count for each in need.nodes] for need in made}


def large(
    name: str, count: int = 1, gpus: int = 8, *, priority: int = 0, submitted_at: int = 0
) -> PendingView:
    asks = pods(count, gpus=gpus)
    return job(name, "a", asks, priority=priority, submitted_at=submitted_at)


def test_a_gang_is_asked_for_whole() -> None:
    [need] = needs(snapshot=of(comes(4), large("w", 3)), policy=Policy())
    assert (need.workload, need.pool) == ("w", "p")
    assert need.nodes == (NodeNeed(8, 1000, 1024),) * 3


def test_what_is_free_is_not_asked_for() -> None:
    there = [node("n1", gpus=8)]
    assert asked(of(comes(4), large("w", 3), nodes=there)) == {"w": [8, 8]}
    assert asked(of(comes(4), large("w", 1), nodes=there)) == {}  # it starts


def test_more_than_the_pool_can_give_is_asked_for_by_nobody() -> None:
    first, second = large("first", 2), large("second", 2, submitted_at=9)
    assert asked(of(comes(3), first, second)) == {"first": [8, 8]}
    assert asked(of(comes(3), large("w", 4))) == {}


def test_no_more_than_the_quota_is_asked_for_together() -> None:
    first, second = large("first"), large("second", submitted_at=9)
    assert asked(of(comes(4), first, second, quota=8)) == {"first": [8]}


def test_no_more_than_may_run_at_once_is_asked_for() -> None:
    first, second = large("first"), large("second", submitted_at=9)
    found = of(comes(4), first, second)
    capped = replace(found.queues[0], caps=CapsView(running=1))
    assert asked(replace(found, queues=(capped,))) == {"first": [8]}


def test_who_comes_first_gets_the_nodes_that_are_being_made() -> None:
    high, low = large("high", priority=9, submitted_at=9), large("low")
    assert asked(of(comes(3, making=1), high, low)) == {"low": [8]}


def test_of_two_that_share_a_node_the_first_asks_for_what_both_take() -> None:
    first, second = large("first", gpus=4), large("second", gpus=4, submitted_at=9)
    assert asked(of(comes(1), first, second)) == {"first": [8]}


def test_the_surplus_of_an_elastic_gang_is_not_asked_for() -> None:
    elastic = job("w", "a", pods(4, gpus=8, least=1))
    assert asked(of(comes(4), elastic)) == {"w": [8]}


def test_who_waits_for_another_thing_asks_for_nothing() -> None:
    held = runs("r", "a", *(f"n1/{n}" for n in range(8)), preemptible=False)
    found = replace(of(comes(4), large("w"), nodes=[node("n1", gpus=8)], quota=8), holding=(held,))
    assert asked(found) == {}
