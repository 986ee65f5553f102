"""What is free in a cluster of a model, which gangs fit, and what is of no use to anybody."""

from dataclasses import replace

import pytest

from scheduler.core.fleet.pools import Gangs, PoolFigures, pools
from scheduler.core.snapshot import Isolation, PendingView, Snapshot
from tests.core.build import (
    H100,
    T4,
    cluster,
    job,
    node,
    pods,
    runs,
    snapshot,
)


def one(of: Snapshot) -> PoolFigures:
    [found] = pools(snapshot=of)
    return found


def fits(of: PoolFigures, level: str = "") -> dict[int, int]:
    return {gangs.gpus: gangs.pods for gangs in of.gangs if gangs.level == level}


def test_an_idle_cluster_takes_all_sizes_and_strands_nothing() -> None:
    found = one(snapshot(nodes=[node("n1", 8), node("n2", 8)]))
    assert found == PoolFigures(
        cluster=found.cluster,
        model=H100,
        total_milli=16_000,
        free_milli=16_000,
        stranded_milli=0,
        whole_nodes=2,
        scattered_milli=0,
        gangs=(Gangs("", 1, 16), Gangs("", 2, 8), Gangs("", 4, 4), Gangs("", 8, 2)),
    )


def test_what_is_free_in_pieces_takes_small_pods_alone() -> None:
    of = snapshot(
        nodes=[node("n1", 8), node("n2", 8), node("n3", 8)],
        holding=[
            runs("r", "a", *(f"n1/{i}" for i in range(5))),
            runs("s", "a", *(f"n2/{i}" for i in range(6))),
        ],
    )
    found = one(of)
    assert fits(found) == {1: 13, 2: 6, 4: 2, 8: 1}
    assert (found.free_milli, found.whole_nodes) == (13_000, 1)
    assert found.scattered_milli == 5000 // 13


def test_domains_are_told_by_the_best_of_each_level() -> None:
    of = snapshot(
        levels="zone rack",
        nodes=[
            node("n1", 8, at="z/r1"),
            node("n2", 8, at="z/r1"),
            node("n3", 8, at="z/r2"),
            node("n4", 8, at="y/r1"),
            node("n5", 8),
        ],
        holding=[runs("r", "a", "n3/0")],
    )
    found = one(of)
    assert fits(found) == {1: 39, 2: 19, 4: 9, 8: 4}
    assert fits(found, "zone") == {1: 23, 2: 11, 4: 5, 8: 2}
    assert fits(found, "rack") == {1: 16, 2: 8, 4: 4, 8: 2}


def test_without_cores_or_memory_a_device_is_stranded() -> None:
    of = snapshot(
        nodes=[node("n1", 4, cores=4), node("n2", 2)],
        holding=[runs("r", "a", "n1/0", cores=4)],
    )
    found = one(of)
    assert fits(found) == {1: 2, 2: 1, 4: 0, 8: 0}
    assert (found.free_milli, found.stranded_milli) == (5000, 3000)


@pytest.mark.parametrize(
    ("waits", "stranded"),
    [
        ([], 0),
        ([job("w", "a", pods(gpus=2))], 0),
        ([job("w", "a", pods(gpus=4))], 3000),
        ([job("w", "a", pods(gpus=4)), job("v", "a", pods(gpus=1))], 0),
        ([job("w", "a", pods(gpus=1, cores=63))], 0),
        ([job("w", "a", pods(gpus=1, cores=64))], 3000),
        ([job("w", "a", pods(gpus=1, memory_gib=512))], 3000),
        ([job("w", "a", pods(gpus=4), clusters="c2")], 0),  # not of this cluster
        ([job("w", "a", pods(flavors="t4", gpus=4))], 0),  # not of this model
        ([job("w", "a", pods(flavors="1g"))], 0),  # not of such devices
        ([job("w", "a", pods(flavors="1g h100", gpus=3))], 0),
    ],
)
def test_of_a_node_in_part_use_what_no_pod_that_waits_could_get_is_stranded(
    waits: list[PendingView], stranded: int
) -> None:
    """Five of eight are in use, and one core."""
    held = runs("r", "a", *(f"n1/{i}" for i in range(5)), cores=0.2)
    of = snapshot(nodes=[node("n1", 8)], holding=[held], pending=waits)
    assert one(of).stranded_milli == stranded


def test_a_whole_node_is_never_stranded() -> None:
    of = snapshot(nodes=[node("n1", 2)], pending=[job("w", "a", pods(gpus=4))])
    assert one(of).stranded_milli == 0


@pytest.mark.parametrize(
    ("waits", "eighths"),
    [
        ("", 0),  # 3g could lie at 4 to 8, smaller ones beside it
        ("1g", 1),  # no slice of a seventh starts at the last eighth
        ("3g", 3),
        ("7g", 7),
        ("1gme", 7),  # its media engines are in use
        ("2g", 3),  # at 2 and 4: the eighth at 1 and the last two are left
    ],
)
def test_eighths_that_no_legal_slice_that_waits_could_hold_are_stranded(
    waits: str, eighths: int
) -> None:
    of = snapshot(
        nodes=[node("n1", 1, dynamic=True)],
        holding=[runs("r", "a", "n1/0", flavor="1gme", span=(0, 1))],
        pending=[job("w", "a", pods(flavors=waits))] if waits else [],
    )
    found = one(of)
    assert (found.total_milli, found.free_milli) == (1000, 875)
    assert found.stranded_milli == eighths * 125


def test_of_a_device_that_is_cut_already_slices_that_nobody_waits_for_are_stranded() -> None:
    cut = (("1g.10gb", 0, 1), ("1g.10gb", 1, 2), ("2g.20gb", 2, 4), ("3g.40gb", 4, 8))
    nodes = [node("n1", 1, cut=cut)]
    held = [runs("r", "a", "n1/0", flavor="1g", span=(0, 1))]
    assert one(snapshot(nodes=nodes, holding=held)).stranded_milli == 0
    waits = [job("w", "a", pods(flavors="1g"))]
    assert one(snapshot(nodes=nodes, holding=held, pending=waits)).stranded_milli == 6 * 125


@pytest.mark.parametrize(("share", "stranded"), [(None, 0), (0.4, 0), (0.5, 400), (1, 400)])
def test_of_a_shared_device_less_than_the_smallest_share_is_stranded(
    share: float | None, stranded: int
) -> None:
    of = snapshot(
        nodes=[node("n1", 2, T4, shares=Isolation.MEMORY)],
        holding=[
            runs("r", "a", "n1/0", flavor="t4share", span=(0, 600), amount=0.6),
            runs("s", "a", "n1/1", flavor="t4share", span=(0, 1000)),
        ],
        pending=[] if share is None else [job("w", "a", pods(flavors="t4share", share=share))],
    )
    found = one(of)
    assert (found.free_milli, found.stranded_milli) == (400, stranded)


def test_what_takes_nothing_new_is_left_out() -> None:
    sick = node("n2", 8, usable=False)
    half = node("n3", 2)
    half = replace(half, devices=(half.devices[0], replace(half.devices[1], usable=False)))
    of = snapshot(
        clusters=[
            cluster("c1", [node("n1", 8), sick, half]),
            cluster("c2", [node("m", 8)], usable=False),
        ]
    )
    found = one(of)
    assert (found.total_milli, found.whole_nodes) == (9000, 1)


def test_each_model_of_each_cluster_is_told_apart() -> None:
    of = snapshot(
        clusters=[
            cluster("c2", [node("m", 4)]),
            cluster("c1", [node("n1", 8), node("n2", 2, T4), node("n3")]),
        ]
    )
    found = [(each.cluster, each.model, each.total_milli) for each in pools(snapshot=of)]
    assert found == [("c1", H100, 8000), ("c1", T4, 2000), ("c2", H100, 4000)]


def test_idle_nodes_that_are_cut_on_demand_are_whole_too() -> None:
    found = one(snapshot(nodes=[node("n1", 2, dynamic=True), node("n2", 2, dynamic=True)]))
    assert (found.whole_nodes, found.scattered_milli, found.free_milli) == (2, 0, 4000)
