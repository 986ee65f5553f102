"""Several gangs that wait for nodes of one declared pool: each is asked for whole."""

from collections.abc import Iterator

import pytest

from controlplane.kernel.clock import now
from scheduler.loop.scaling import node_asks
from tests.flows.world import World, spec
from tests.scheduler.requesting import carry_on, requesting, requests, say, step, submitted

pytestmark = [pytest.mark.part_simulator, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def world() -> Iterator[World]:
    with requesting() as world:
        yield world


def counts(world: World) -> list[int]:
    """How many nodes each request is for."""
    return sorted(one["spec"]["podSets"][0]["count"] for one in requests(world))


def test_a_gang_is_asked_for_whole_beside_one_whose_nodes_are_being_made(world: World) -> None:
    submitted(world, 1)
    step(world)
    submitted(world, 3)
    step(world)
    assert counts(world) == [1, 3]
    step(world)
    assert counts(world) == [1, 3]


def test_who_queues_for_days_keeps_nobody_else_from_asking(world: World) -> None:
    submitted(world, 2)
    step(world)
    say(world, "Accepted")
    submitted(world, 2)
    step(world)
    assert counts(world) == [2, 2]


def test_before_it_is_seen_what_is_asked_for_is_not_asked_for_again(world: World) -> None:
    submitted(world, 2)
    world.cycle()
    assert node_asks.plan(at=now()) == 1
    submitted(world, 2)
    world.cycle()
    assert node_asks.plan(at=now()) == 1
    submitted(world, 1)  # of four nodes none is left
    world.cycle()
    assert node_asks.plan(at=now()) == 0


def test_no_gang_is_asked_for_in_part(world: World) -> None:
    """The low one would stand beside the gang, so that together they lack two nodes."""
    submitted(world, 1, gpus=2)
    world.cycle()
    assert node_asks.plan(at=now()) == 1
    world.submit(spec("h100", gpus=6, count=2, priority_class="high"))
    world.cycle()
    assert node_asks.plan(at=now()) == 0  # one more would do, once the other is being made
    carry_on(world)
    step(world)
    assert counts(world) == [1, 1]
