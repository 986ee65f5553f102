"""Victims that make room for several pods: gangs, and work on more of a node than one asks for."""

from collections.abc import Sequence
from random import Random

import pytest

from scheduler.core.laws.invariants import violations
from scheduler.core.snapshot import HoldingView, Snapshot
from tests.core.build import AT, Outcome, decide, job, node, pods, queue, runs, snapshot
from tests.core.reference.losses import least_lost_s, lost_s


def of(
    holding: Sequence[HoldingView], *, nodes: int, width: int, asks: int, gpus: int, rack: bool
) -> Snapshot:
    """Pairs of nodes are in one rack."""
    within = "rack" if rack else ""
    waiting = job("w", "a", pods(asks, gpus=gpus), priority=9, within=within)
    return snapshot(
        nodes=[node(f"n{i}", gpus=width, at=f"r{i // 2}") for i in range(nodes)],
        queues=[queue("a", h100=nodes * width)],
        holding=holding,
        pending=[waiting],
        levels="rack",
    )


def gone(made: Outcome) -> list[str]:
    return [victim for victim, _, _ in made.victims()]


@pytest.mark.parametrize(("since_s", "expected"), [(59, ["gang"]), (61, ["p", "q"])])
def test_a_gang_goes_where_it_loses_less_than_single_work_on_as_many_nodes(
    since_s: int, expected: list[str]
) -> None:
    """Each of p and q loses less than the gang does, both together 120."""
    holding = [
        runs("gang", "a", "n0/0", "n2/0", since_s=since_s),
        runs("p", "a", "n4/0", since_s=60),
        runs("q", "a", "n6/0", since_s=60),
        *(runs(f"firm{i}", "a", f"n{i}/0", preemptible=False) for i in (1, 3, 5)),
    ]
    made = decide(of(holding, nodes=7, width=1, asks=2, gpus=1, rack=False))
    assert gone(made) == expected


def test_work_on_several_devices_of_one_node_makes_room_for_several_pods() -> None:
    holding = [
        runs("pair", "a", "n0/0", "n0/1", since_s=27),
        runs("p", "a", "n1/0", since_s=45),
        runs("q", "a", "n1/1", since_s=49),
    ]
    assert gone(decide(of(holding, nodes=2, width=2, asks=2, gpus=1, rack=False))) == ["pair"]


def test_one_pod_makes_no_gang_cheaper() -> None:
    holding = [
        runs("gang", "a", "n0/0", "n1/0", since_s=31),
        runs("p", "a", "n2/0", since_s=60),
    ]
    assert gone(decide(of(holding, nodes=3, width=1, asks=1, gpus=1, rack=False))) == ["p"]


def test_a_gang_is_taken_in_the_rack_where_all_has_to_be() -> None:
    """Of the racks with both nodes it is the cheaper; as dear as p in its rack for one pod."""
    holding = [
        runs("gang", "a", "n0/0", "n1/0", since_s=40),
        runs("p", "a", "n2/0", since_s=45),
        runs("q", "a", "n3/0", since_s=45),
    ]
    assert gone(decide(of(holding, nodes=4, width=1, asks=2, gpus=1, rack=True))) == ["gang"]


def test_small_fleets_come_out_near_the_least_there_is() -> None:
    """Not at it: pod by pod is not all at once. Of 400 fleets some ten lose more than the least,
    all together not 1 % more; with one search each it is 35, and 3 %."""
    lost = least = worse = 0
    for seed in range(400):
        pick = Random(seed)
        nodes, width = pick.randint(3, 6), pick.choice([1, 2, 4])
        asks, gpus, rack = pick.randint(2, 3), pick.randint(1, width), pick.random() < 0.3
        holding = _full(pick, nodes, width)
        case = of(holding, nodes=nodes, width=width, asks=asks, gpus=gpus, rack=rack)
        made = decide(case)
        assert violations(case, made.plan) == ()
        on = case.clusters[0].nodes
        best = least_lost_s(holding, on, pods=asks, gpus=gpus, within=int(rack), at=AT)
        assert (best is None) is (made.started() == [] and not made.waits("w"))
        if best is not None:
            names = set(gone(made))
            this = lost_s((held for held in holding if held.id in names), at=AT)
            assert this >= best
            lost, least, worse = lost + this, least + best, worse + (this > best)
    assert worse <= 12
    assert lost * 100 <= least * 101


def _full(pick: Random, nodes: int, width: int) -> list[HoldingView]:
    """Work of 1 to 4 devices, on few nodes or on many, most devices taken."""
    free = [f"n{i}/{k}" for i in range(nodes) for k in range(width) if pick.random() > 0.12]
    pick.shuffle(free)
    found: list[HoldingView] = []
    while free:
        if pick.random() < 0.5:
            last = free[-1].split("/")[0]
            free.sort(key=lambda device: device.startswith(last))
        size = pick.choice([1, 1, 1, 2, 2, 3, 4]) if len(found) < 9 else len(free)
        where, free = free[-size:], free[:-size]
        found.append(runs(f"r{len(found)}", "a", *where, since_s=pick.randint(1, 60)))
    return found
