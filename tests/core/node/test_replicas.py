"""Shares on devices that their nodes offer in replicas: they take whole ones."""

from dataclasses import replace

import pytest

from scheduler.core.fleet.draft import Draft
from scheduler.core.fleet.space import largest_free_milli
from scheduler.core.node.replicas import largest_milli, taken_milli, unshared, width_milli
from scheduler.core.snapshot import DeviceView, HoldingView, Isolation, NodeView
from scheduler.core.units import ClusterId, WorkloadId
from tests.core.build import (
    BY_NAME,
    T4,
    Quota,
    decide,
    device,
    job,
    node,
    pods,
    queue,
    runs,
    snapshot,
)

ANY = Quota(1000, borrow=None)
QUEUE = queue("a", t4=ANY, t4share=ANY)


def cut(name: str, replicas: int, *, gpus: int = 1) -> NodeView:
    return node(name, gpus, T4, shares=Isolation.MEMORY, replicas=replicas)


def held(name: str, on: str, start: int, end: int, *, asked: float) -> HoldingView:
    return runs(name, "a", on, flavor="t4share", span=(start, end), amount=asked)


def test_as_many_shares_fit_as_there_are_replicas_for_them() -> None:
    for replicas in range(1, 1001):
        width = width_milli(replicas=replicas)
        for taken in {0, 1, replicas // 2, replicas - 1, replicas}:
            largest = largest_milli(bits=(1 << taken * width) - 1, replicas=replicas)
            left = replicas - taken
            assert taken_milli(asked_milli=largest, replicas=replicas) == left * width
            assert taken_milli(asked_milli=largest + 1, replicas=replicas) > left * width
        assert replicas * width + unshared(replicas=replicas).bit_count() == 1000
        assert largest_milli(bits=(1 << 1000) - 1, replicas=replicas) == 0


@pytest.mark.parametrize(
    "beside", [pytest.param((), id="packed"), pytest.param((device("n1/1"),), id="by the index")]
)
@pytest.mark.parametrize(
    ("replicas", "share", "start"),
    [(1000, 0.3, 3), (4, 0.3, 2), (4, 0.25, 4), (3, 0.333, 3), (3, 0.334, 1), (48, 0.02, 48)],
)
def test_shares_start_as_long_as_there_are_replicas(
    replicas: int, share: float, start: int, beside: tuple[DeviceView, ...]
) -> None:
    on = cut("n1", replicas)
    on = replace(on, devices=(*on.devices, *beside))
    wanted = [job(f"w{i}", "a", pods(flavors="t4share", share=share)) for i in range(start + 1)]
    made = decide(snapshot(nodes=[on], queues=[QUEUE], pending=wanted))
    assert len(made.admits) == start
    assert len(made.holds) == 1


def test_a_share_is_charged_for_what_it_asks_and_holds_what_it_takes() -> None:
    wanted = job("w", "a", pods(flavors="t4share", share=0.3))
    made = decide(snapshot(nodes=[cut("n1", 4)], queues=[QUEUE], pending=[wanted]))
    (place,) = made.admits[WorkloadId("w")].places
    assert place.amount_milli == 300
    assert [(span.start, span.end) for _, span in place.spans] == [(0, 500)]


def test_what_a_share_may_still_ask_of_a_node_is_told() -> None:
    of = snapshot(
        nodes=[cut("n1", 4)], queues=[QUEUE], holding=[held("r", "n1/0", 0, 500, asked=0.3)]
    )
    draft = Draft(snapshot=of, holding=of.holding)
    flavor = BY_NAME["t4share"]  # type: ignore[index]  # a name is an id here
    assert largest_free_milli(draft=draft, cluster=ClusterId("c1"), flavor=flavor) == 500


def test_a_share_goes_where_it_takes_least() -> None:
    wanted = job("w", "a", pods(flavors="t4share", share=0.3))
    nodes = [cut("n1", 4), cut("n2", 10), cut("n3", 2)]
    made = decide(snapshot(nodes=nodes, queues=[QUEUE], pending=[wanted]))
    assert made.nodes("w") == ["n2"]


def test_where_it_takes_least_is_full_it_goes_elsewhere() -> None:
    wanted = job("w", "a", pods(3, flavors="t4share", share=0.6))
    nodes = [cut("n1", 4), cut("n2", 10), cut("n3", 2)]
    made = decide(snapshot(nodes=nodes, queues=[QUEUE], pending=[wanted]))
    assert sorted(made.nodes("w")) == ["n1", "n2", "n3"]


def test_a_share_fills_the_replicas_between_others() -> None:
    holding = [
        held("r", "n1/0", 250, 500, asked=0.2),
        held("s", "n1/0", 750, 1000, asked=0.2),
    ]
    wanted = job("w", "a", pods(flavors="t4share", share=0.4))
    made = decide(
        snapshot(nodes=[cut("n1", 4)], queues=[QUEUE], holding=holding, pending=[wanted])
    )
    (place,) = made.admits[WorkloadId("w")].places
    assert [(span.start, span.end) for _, span in place.spans] == [(0, 250), (500, 750)]


def test_who_gives_back_its_replicas_is_enough() -> None:
    """It asked for less than the pod that it makes room for, and held as much."""
    holding = [held(f"r{i}", "n1/0", 500 * i, 500 * i + 500, asked=0.26) for i in range(2)]
    wanted = job("w", "a", pods(flavors="t4share", share=0.5), priority=1)
    made = decide(
        snapshot(nodes=[cut("n1", 4)], queues=[QUEUE], holding=holding, pending=[wanted])
    )
    assert len(made.victims()) == 1


def test_a_device_with_a_share_of_other_replicas_takes_nothing_new_until_that_has_ended() -> None:
    nodes, wanted = [cut("n1", 4)], job("w", "a", pods(flavors="t4share", share=0.25))
    of = snapshot(
        nodes=nodes,
        queues=[QUEUE],
        holding=[held("r", "n1/0", 0, 300, asked=0.3)],
        pending=[wanted],
    )
    assert "w" in decide(of).holds
    assert "w" in decide(replace(of, holding=())).admits


def test_a_share_of_other_replicas_is_evicted_for_quota_only_as_far_as_that_takes() -> None:
    """Nothing was put where it was, so it may stay where the workload has no other place."""
    sick = cut("n2", 4)
    sick = replace(sick, devices=(replace(sick.devices[0], usable=False),))
    of = snapshot(
        nodes=[cut("n1", 4, gpus=2), sick],
        queues=[queue("a", t4share=1.3)],
        holding=[
            held("few", "n1/0", 0, 300, asked=0.3),
            held("large", "n2/0", 0, 1000, asked=1),
        ],
        pending=[job("w", "a", pods(flavors="t4share"), priority=1)],
    )
    assert decide(of).victims() == [("large", "w", "priority")]


@pytest.mark.parametrize("replicas", [3, 4, 1000])
def test_a_whole_device_and_a_share_of_all_of_one_need_an_empty_one(replicas: int) -> None:
    nodes = [cut("n1", replicas, gpus=2)]
    holding = [held("r", "n1/0", 0, width_milli(replicas=replicas), asked=0.001)]
    wanted = [job("w", "a", pods(flavors="t4")), job("v", "a", pods(flavors="t4share"))]
    for one in wanted:
        of = snapshot(nodes=nodes, queues=[QUEUE], holding=holding, pending=[one])
        (admit,) = decide(of).admits.values()
        assert admit.places[0].spans[0][0] == "n1/1"
        rest = runs("s", "a", "n1/1", flavor="t4share", span=(0, width_milli(replicas=replicas)))
        assert decide(replace(of, holding=(*holding, rest))).holds
