"""Which node is cut anew, and how: against every other choice there is, on small fleets."""

from collections import Counter
from dataclasses import replace
from itertools import combinations_with_replacement

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.moving.recut import Cost, Proposal, cost, cut_so, for_what_waits
from scheduler.core.node import mig
from scheduler.core.node.ways import Way, placed, served, serving
from scheduler.core.snapshot import NodeView, QueueView
from scheduler.core.units import ClusterId, ProjectId, WorkloadId
from tests.core.build import H100, device, node, runs
from tests.core.moving.recutting import (
    HALF,
    HALVES,
    SEVEN,
    SMALL,
    fleet,
    half,
    next_step,
    pool,
    proposed,
    small,
)

PROFILES = ("1g.10gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb")
asked = st.dictionaries(st.sampled_from(PROFILES), st.integers(0, 9), max_size=4)


def best(devices: int, first: dict[str, int], then: dict[str, int]) -> tuple[int, int]:
    """The most of `first`, then of `then`, that any ways of so many devices serve."""
    names = sorted({*first, *then})
    layouts = mig.full_layouts(model=H100, profiles=names)
    ways = [tuple(sorted(each.items())) for each in layouts] or [()]
    return max(
        score(chosen, first, then) for chosen in combinations_with_replacement(ways, devices)
    )


def score(ways: tuple[Way, ...], first: dict[str, int], then: dict[str, int]) -> tuple[int, int]:
    total = Counter({name: 0 for name in (*first, *then)})
    for way in ways:
        total.update(dict(way))
    return (
        sum(min(total[name], count) for name, count in first.items()),
        sum(min(max(0, total[name] - first.get(name, 0)), count) for name, count in then.items()),
    )


@settings(deadline=None, max_examples=150)
@given(first=asked, then=asked, devices=st.integers(1, 3))
def test_no_ways_serve_more(first: dict[str, int], then: dict[str, int], devices: int) -> None:
    ways = serving(model=H100, now=(SMALL,) * devices, first=first, then=then)
    assert len(ways) == devices
    assert score(ways, first, then) == best(devices, first, then)
    for way in ways:
        mig.arrange(model=H100, counts=dict(way), devices=1)


def test_eight_devices_with_every_profile_asked_for_are_cut_in_time() -> None:
    first = {name: 3 for name in PROFILES}
    then = {name: 40 for name in PROFILES}
    ways = serving(model=H100, now=(SMALL,) * 8, first=first, then=then)
    assert score(ways, first, then)[0] == 15


def test_what_nothing_is_asked_of_keeps_its_way_and_its_place() -> None:
    now = (SMALL, HALF, SMALL)
    assert serving(model=H100, now=now, first={}, then={"3g.40gb": 4}) == (SMALL, HALF, HALF)
    assert placed(now=now, ways=(HALF, SMALL, HALF)) == (SMALL, HALF, HALF)


@pytest.mark.parametrize("since_s", [0, 1])
def test_an_idle_node_is_cut_for_what_waits(since_s: int) -> None:
    """Before one whose work would lose nothing yet."""
    made = proposed(holding=[small("x", "n1/0", since_s=since_s)])
    assert made == Proposal(Cost(made.cost.node), (SMALL, SMALL), (HALF, HALF), 3) if made else 0
    assert made is not None
    assert made.cost.node == "n2"


def test_of_two_that_are_used_the_one_that_loses_less_is_cut_and_keeps_room_for_its_work() -> None:
    made = proposed(holding=[small("x", "n1/0", since_s=60), small("y", "n2/0", since_s=50)])
    assert made is not None
    assert made.cost == Cost(made.cost.node, ((WorkloadId("y"), 7_143),))
    assert served(ways=made.ways, asked={"1g.10gb": 1}) == 1
    assert made.serves == 3


def test_a_slice_costs_the_part_that_it_is_of_a_device() -> None:
    """A whole device for 100 s is more than two of its sevenths for 60 s."""
    whole = (("7g.80gb", 0, 8),)
    nodes = [node("n1", 2, cut=whole), node("n2", 2, cut=SEVEN)]
    large = runs("x", "a", "n1/0", flavor="7g", span=(0, 8), since_s=100)
    sevenths = [small(f"y{i}", f"n2/{i}", since_s=60) for i in range(2)]
    made = proposed(nodes=nodes, holding=[large, *sevenths])
    assert made is not None
    assert (made.cost.node, made.cost.lost_milli_s) == ("n2", 2 * 8_572)
    assert cost(snapshot=fleet(holding=[large]), node=nodes[0]).lost_milli_s == 100_000


def test_cores_that_are_held_beside_slices_cost_nothing() -> None:
    """Of a gang all goes, whatever of it is elsewhere."""
    gang, cores = small("x", "n1/0", since_s=7), runs("x", "a", "n9", flavor="cpu", cores=9)
    gang = replace(gang, placements=(*gang.placements, *cores.placements))
    here = fleet(holding=[gang])
    assert cost(snapshot=here, node=here.clusters[0].nodes[0]).lost_milli_s == 1_000


def test_of_two_that_cost_as_much_the_one_that_serves_more_is_cut() -> None:
    nodes = [node("n1", 1, cut=SEVEN), node("n2", 2, cut=SEVEN)]
    made = proposed(nodes=nodes)
    assert made is not None
    assert (made.cost.node, made.serves) == ("n2", 3)
    made = proposed(nodes=nodes, holding=[small("x", "n1/0"), small("y", "n2/0")])
    assert made is not None
    assert (made.cost.node, made.cost.lost_milli_s, made.serves) == ("n2", 0, 3)


@pytest.mark.parametrize("fields", [{"preemptible": False}, {"releasing": True}])
def test_a_node_whose_work_can_only_be_waited_for_is_left(fields: dict[str, bool]) -> None:
    assert proposed(holding=[small("x", "n1/0", **fields), small("y", "n2/1", **fields)]) is None
    one = fleet(holding=[small("x", "n1/0", **fields)])
    there = one.clusters[0].nodes[0]
    assert cost(snapshot=one, node=there) == Cost(there.id, waits_for=((WorkloadId("x"), None),))


def test_where_slices_are_free_nothing_is_cut() -> None:
    nodes = [node("n1", 2, cut=SEVEN), node("n2", 2, cut=HALVES)]
    assert proposed(nodes=nodes) is None
    assert proposed(nodes=nodes, pending=()) is None
    full = [half(f"x{i}", f"n2/{i // 2}", i % 2 * 4) for i in range(4)]
    made = proposed(nodes=nodes, holding=full)
    assert made is not None
    assert made.cost.node == "n1"


def test_whole_devices_stay_whole() -> None:
    nodes = [
        node("n1", 1, cut=SEVEN),
        node("n2", 3),
    ]
    mixed = nodes[0]
    both = mixed.__class__(
        mixed.id, "n1", 64_000, 2**19, (*mixed.devices, *node("n1", 3).devices[1:])
    )
    made = proposed(nodes=[both, nodes[1]])
    assert made is not None
    assert (made.now, made.ways) == ((SMALL, (), ()), (HALF, (), ()))


def test_each_recut_is_a_step_towards_the_advice() -> None:
    wanted = {HALF: 3, SMALL: 1}
    first = next_step(fleet(nodes=[node("n1", 2, cut=SEVEN), node("n2", 2, cut=SEVEN)]), wanted)
    assert first is not None
    assert (first.cost.node, first.ways, first.serves) == ("n1", (HALF, HALF), 2)
    then = fleet(nodes=[node("n1", 2, cut=HALVES), node("n2", 2, cut=SEVEN)])
    second = next_step(then, wanted)
    assert second is not None
    assert (second.cost.node, Counter(second.ways)) == ("n2", {HALF: 1, SMALL: 1})
    assert next_step(then, {HALF: 2, SMALL: 2}) is None


def test_how_devices_of_other_clusters_are_cut_is_nothing_to_what_is_advised_for_one() -> None:
    here = fleet(nodes=[node("n1", 2, cut=SEVEN)])
    there = replace(here.clusters[0], id=ClusterId("c2"), nodes=(node("m1", 2, cut=HALVES),))
    both = replace(here, clusters=(*here.clusters, there))
    made = next_step(both, {HALF: 2})
    assert made is not None
    assert (made.cost.node, made.ways) == ("n1", (HALF, HALF))
    assert next_step(both, {SMALL: 2}) is None


def test_of_nodes_that_can_not_be_cut_none_is_in_the_way_of_one_that_can() -> None:
    """Idle ones, and first by their name."""
    made = proposed(never="n1")
    assert made is not None
    assert made.cost.node == "n2"
    step = next_step(fleet(), {HALF: 4}, never="n1")
    assert step is not None
    assert step.cost.node == "n2"
    assert proposed(never="n1 n2") is next_step(fleet(), {HALF: 4}, never="n1 n2") is None


def test_devices_on_nodes_that_are_not_cut_now_are_there_all_the_same() -> None:
    """The halves that are wanted are: on a node that is cordoned, or can't be cut."""
    whole = node("n2", 2, cut=(("7g.80gb", 0, 8),))
    there = [node("n0", 2, cut=HALVES), node("n1", 2, cut=SEVEN), whole]
    wanted: dict[Way, int] = {HALF: 2, SMALL: 2, (("7g.80gb", 1),): 2}
    cordoned = fleet(nodes=[replace(there[0], usable=False), *there[1:]])
    assert next_step(cordoned, wanted) is None
    assert next_step(fleet(nodes=there), wanted, never="n0") is None
    step = next_step(cordoned, {HALF: 3, SMALL: 1})
    assert step is not None
    assert (step.cost.node, Counter(step.ways)) == ("n1", {HALF: 1, SMALL: 1})
    assert next_step(cordoned, {SMALL: 6}, never="n2") is None, "the halves can't be cut now"


def unusable(of: NodeView) -> NodeView:
    return replace(of, devices=tuple(replace(each, usable=False) for each in of.devices))


def test_devices_that_are_sick_are_not_there() -> None:
    wanted, nodes = {HALF: 1, SMALL: 1}, [node("n1", 1, cut=HALVES), node("n2", 2, cut=SEVEN)]
    assert next_step(fleet(nodes=nodes), wanted) is None
    step = next_step(fleet(nodes=[unusable(nodes[0]), nodes[1]]), wanted)
    assert step is not None
    assert step.cost.node == "n2"


def test_those_of_a_pool_that_is_held_are() -> None:
    """No device of it is usable."""
    of = fleet(nodes=[unusable(node(f"n{i}", 2, cut=SEVEN)) for i in (1, 2)])
    held = replace(of, clusters=(replace(of.clusters[0], held_models=(H100,)),))
    step = next_step(held, {HALF: 1, SMALL: 3})
    assert step is not None
    assert (step.cost.node, step.serves) == ("n1", 1)


def test_other_ways_that_come_to_the_same_slices_are_no_step() -> None:
    """Of all devices together, or of a node: only slices by profile tell how that is cut."""
    three: Way = (("1g.10gb", 1), ("2g.20gb", 3))
    two: Way = (("1g.10gb", 3), ("2g.20gb", 2))
    one: Way = (("1g.10gb", 5), ("2g.20gb", 1))
    thrice = (("2g.20gb", 0, 2), ("2g.20gb", 2, 4), ("2g.20gb", 4, 6), ("1g.10gb", 6, 7))
    both = node("n1", 2, cut=thrice)
    both = replace(both, devices=(both.devices[0], device("n1/1", cut=SEVEN)))
    assert Counter(dict(three)) + Counter(dict(SMALL)) == Counter(dict(two)) + Counter(dict(one))
    assert next_step(fleet(nodes=[both]), {two: 1, one: 1}) is None
    apart = [node("n1", 1, cut=thrice), node("n2", 1, cut=SEVEN)]
    assert next_step(fleet(nodes=apart), {two: 1, one: 1}) is None
    beside = fleet(nodes=[both, node("n2", 1, cut=HALVES)])
    step = next_step(beside, {two: 1, one: 1, (("7g.80gb", 1),): 1})
    assert step is not None
    assert step.cost.node == "n2"


def test_what_is_free_on_a_node_that_can_not_be_cut_is_room_all_the_same() -> None:
    nodes = [node("n1", 2, cut=SEVEN), node("n2", 2, cut=HALVES)]
    assert proposed(nodes=nodes, never="n2") is None
    full = [half(f"x{i}", f"n2/{i // 2}", i % 2 * 4) for i in range(2)]
    made = proposed(nodes=nodes, never="n2", holding=full)
    assert made is not None
    assert (made.cost.node, made.serves, Counter(made.ways)) == ("n1", 1, {HALF: 1, SMALL: 1})


def test_slices_of_other_models_that_go_by_the_same_names_are_no_room() -> None:
    """As are those on a node with devices of both."""
    other = node("n2", 2, "NVIDIA-H800-80GB-HBM3", cut=HALVES)
    both = replace(other, devices=(*other.devices, device("n2/2", cut=HALVES)))
    made = proposed(nodes=[node("n1", 2, cut=SEVEN), both], never="n2")
    assert made is not None
    assert (made.cost.node, made.serves) == ("n1", 1)


def test_the_order_of_nodes_changes_nothing() -> None:
    nodes = [node(f"n{i}", 2, cut=SEVEN) for i in range(4)]
    one, other = proposed(nodes=nodes), proposed(nodes=nodes[::-1])
    assert one == other
    assert cut_so(node=nodes[0]) == (SMALL, SMALL)


def test_nothing_is_cut_for_what_lacks_more_than_room() -> None:
    made = fleet()
    few = [made.pending[0].id]
    one = for_what_waits(snapshot=made, pool=pool(made), for_room=few)
    assert one is not None
    assert one.serves == 1
    assert for_what_waits(snapshot=made, pool=pool(made), for_room=()) is None
    held = QueueView(ProjectId("a"), held_by=("a",))
    assert proposed(queues=(held,)) is None
    assert proposed(queues=(replace(held, held_by=()),)) is not None
