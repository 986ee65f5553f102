"""Where the pods of gangs and of several pod sets go, and which flavor they get."""

from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from scheduler.core.reasons import ReasonCode
from scheduler.core.snapshot import NodeView, PodSetView
from tests.core.build import (
    A30,
    T4,
    Quota,
    cpu_pods,
    decide,
    job,
    node,
    pods,
    queue,
    queue_of,
    snapshot,
)
from tests.core.placing.test_place import QUEUE, TWO, t4
from tests.core.sweep.test_sweep import agree


def test_a_gang_that_fits_no_cluster_as_a_whole_takes_nothing() -> None:
    made = decide(
        snapshot(clusters=TWO, queues=[QUEUE], pending=[job("w", "a", pods(10, gpus=1))])
    )
    assert made.started() == []


def test_a_gang_takes_all_of_its_pod_sets_or_none() -> None:
    sets = pods(gpus=8, name="worker"), pods(gpus=1, flavors="a30", name="leader")
    alone = snapshot(nodes=[node("n1", gpus=8)], queues=[QUEUE], pending=[job("w", "a", *sets)])
    assert decide(alone).started() == []
    both = [node("n1", gpus=8), node("n2", gpus=1, model=A30)]
    made = decide(snapshot(nodes=both, queues=[QUEUE], pending=[job("w", "a", *sets)]))
    assert made.nodes("w") == ["n1", "n2"]


def test_ranks_count_over_the_pod_sets_in_their_order_whatever_is_placed_first() -> None:
    sets = cpu_pods(1, name="leader"), pods(2, gpus=4, name="worker")
    of = snapshot(nodes=[node("n1", gpus=8)], queues=[QUEUE], pending=[job("w", "a", *sets)])
    placed = [(p.rank, p.pod_set) for p in decide(of).places("w")]
    assert placed == [(0, "w.leader"), (1, "w.worker"), (2, "w.worker")]


def test_ranks_have_no_gaps_when_only_the_least_starts() -> None:
    sets = pods(4, gpus=1, least=1, name="worker"), cpu_pods(2, name="helper")
    of = snapshot(nodes=[node("n1", gpus=2)], queues=[QUEUE], pending=[job("w", "a", *sets)])
    placed = [(p.rank, p.pod_set) for p in decide(of).places("w")]
    assert placed == [(0, "w.worker"), (1, "w.worker"), (2, "w.helper"), (3, "w.helper")]


@pytest.mark.parametrize(
    ("quota", "least", "started"),
    [(Quota(8), 2, 6), (Quota(5), 2, 5), (Quota(2), 2, 2), (Quota(1), 2, 0), (Quota(8), 7, 0)],
)
def test_as_many_pods_start_as_room_and_quota_allow_but_not_fewer_than_the_least(
    quota: Quota, least: int, started: int
) -> None:
    wanted = pods(8, gpus=1, least=least)
    of = snapshot(
        nodes=[node("n1", gpus=6)],
        queues=[queue("a", h100=quota)],
        pending=[job("w", "a", wanted)],
    )
    made = decide(of)
    assert sum(len(a.places) for a in made.plan.admits) == started


@pytest.mark.parametrize(
    ("nodes", "quotas", "flavor"),
    [
        ([node("n1", gpus=8), node("n2", gpus=8, model=A30)], {"h100": 8, "a30": 8}, "h100"),
        ([node("n1", gpus=1), node("n2", gpus=8, model=A30)], {"h100": 8, "a30": 8}, "a30"),
        ([node("n1", gpus=8), node("n2", gpus=8, model=A30)], {"h100": 1, "a30": 8}, "a30"),
        ([node("n1", gpus=8), node("n2", gpus=8, model=A30)], {"a30": 8}, "a30"),
    ],
    ids=["preferred", "where there is room", "where there is quota", "where there is a quota row"],
)
def test_all_pods_of_a_set_get_the_first_accepted_flavor_that_works(
    nodes: list[NodeView], quotas: dict[str, float], flavor: str
) -> None:
    waiting = job("w", "a", pods(2, gpus=1, flavors="h100 a30"))
    of = snapshot(nodes=nodes, queues=[queue_of("a", quotas)], pending=[waiting])
    assert {p.flavor for p in decide(of).places("w")} == {flavor}


def test_a_flavor_with_nominal_quota_left_comes_before_one_that_would_be_borrowed() -> None:
    nodes = [node("n1", gpus=8), node("n2", gpus=8, model=A30)]
    queues = [queue("a", h100=Quota(0, borrow=None), a30=1), queue("b", h100=8)]
    pending = [job(f"w{i}", "a", pods(flavors="h100 a30"), submitted_at=i) for i in range(2)]
    made = decide(snapshot(nodes=nodes, queues=queues, pending=pending))
    assert [made.places(f"w{i}")[0].flavor for i in range(2)] == ["a30", "h100"]


def test_unlike_pods_of_a_gang_are_placed_largest_first() -> None:
    """The small pod would take the node tightest in cores, the only one with the memory."""
    nodes = [node("n1", gpus=1, cores=4, memory_gib=16), node("n2", gpus=1, memory_gib=4)]
    sets = pods(memory_gib=1, name="small"), pods(memory_gib=16, name="large")
    of = snapshot(nodes=nodes, queues=[QUEUE], pending=[job("w", "a", *sets)])
    assert decide(of).nodes("w") == ["n2", "n1"]


def _fit(left: tuple[int, ...], asked: tuple[int, ...]) -> bool:
    """Whether some way puts each of these on one of the nodes with so many free."""
    if not asked:
        return True
    first, rest = asked[0], asked[1:]
    return any(
        free >= first and _fit((*left[:n], free - first, *left[n + 1 :]), rest)
        for n, free in enumerate(left)
    )


@settings(max_examples=300, deadline=None)
@given(
    free=st.lists(st.integers(1, 8), min_size=1, max_size=4),
    sets=st.lists(st.tuples(st.integers(1, 3), st.integers(1, 5)), min_size=2, max_size=3),
    within=st.sampled_from(["", "rack"]),
)
@example(free=[8, 8], sets=[(1, 4), (2, 3), (3, 2)], within="")
@example(free=[8, 6], sets=[(1, 5), (3, 3)], within="rack")
def test_unlike_pods_start_where_any_way_places_them(
    free: list[int], sets: list[tuple[int, int]], within: str
) -> None:
    of = snapshot(
        nodes=[node(f"n{i}", gpus=gpus, at="r1") for i, gpus in enumerate(free)],
        queues=[queue("a", h100=99)],
        levels="rack",
        pending=[
            job(
                "w",
                "a",
                *(pods(count, gpus=gpus, name=f"s{i}") for i, (count, gpus) in enumerate(sets)),
                within=within,
            )
        ],
    )
    asked = tuple(gpus for count, gpus in sets for _ in range(count))
    made = agree(of)
    assert bool(made.admits) is _fit(tuple(free), asked)


def test_on_a_node_the_device_that_cannot_be_shared_is_given_whole() -> None:
    mixed = t4("n1")
    mixed = replace(mixed, devices=(mixed.devices[0], replace(mixed.devices[1], shares=None)))
    of = snapshot(nodes=[mixed], queues=[QUEUE], pending=[job("w", "a", pods(flavors="t4"))])
    assert decide(of).spans("w") == [("n1/1", 0, 1000)]


@pytest.mark.parametrize(
    "wanted",
    [
        pods(gpus=2, share=0.5, flavors="t4share"),
        pods(gpus=1, share=0.5, flavors="t4"),
        pods(gpus=1, flavors="cpu"),
        pods(gpus=0, flavors="t4"),
    ],
    ids=["shares of two devices", "half of a whole", "a device as cores", "cores as a device"],
)
def test_a_flavor_that_does_not_suit_the_pods_is_no_flavor(wanted: PodSetView) -> None:
    of = snapshot(nodes=[t4("n1")], queues=[QUEUE], pending=[job("w", "a", wanted)])
    assert decide(of).reason("w") is ReasonCode.NO_MATCHING_FLAVOR


def test_devices_that_cannot_be_shared_are_given_whole_first() -> None:
    nodes = [t4("n1", 1), node("n2", gpus=8, model=T4)]
    of = snapshot(nodes=nodes, queues=[QUEUE], pending=[job("w", "a", pods(flavors="t4"))])
    assert decide(of).nodes("w") == ["n2"]
