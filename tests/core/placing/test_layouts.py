"""Pod sets that have to be, or had better be, in domains of their own."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.cycle import never_admissible
from scheduler.core.placing import layouts
from scheduler.core.reasons import ReasonCode, describe
from scheduler.core.snapshot import NodeView, PendingView, PodSetView, Snapshot, TopologyView
from tests.core.build import (
    Outcome,
    Quota,
    cpu_pods,
    decide,
    job,
    node,
    pods,
    queue,
    runs,
    snapshot,
)
from tests.core.drawn.together import near, within
from tests.core.reference.laid_out import can_be_laid_out

QUEUE = queue("a", h100=64, cpu=64)
LEVELS = "zone rack"
FLEET = (
    node("n1", gpus=4, at="z1/r1"),
    node("n2", gpus=4, at="z1/r2"),
    node("n3", gpus=4, at="z2/r1"),
    node("n4", gpus=2, at="z2/r2"),
)


def of(*pending: PendingView, nodes: Sequence[NodeView] = FLEET, busy: str = "") -> Snapshot:
    held = [runs(f"r{at}", "a", at, preemptible=False) for at in busy.split()]
    return snapshot(nodes=nodes, queues=[QUEUE], pending=pending, holding=held, levels=LEVELS)


def by_set(made: Outcome, name: str) -> dict[str, list[str]]:
    """The nodes of its pods in the order of their ranks, by pod set."""
    found: dict[str, list[str]] = {}
    for place in made.places(name):
        found.setdefault(place.pod_set.removeprefix(f"{name}."), []).append(place.node)
    return found


def test_a_pod_set_is_in_one_rack_and_another_goes_anywhere() -> None:
    asked = job("w", "a", within("rack", pods(4, name="train")), pods(6, name="serve"))
    made = by_set(decide(of(asked)), "w")
    assert len(set(made["train"])) == 1
    assert len(set(made["serve"])) > 1


def test_each_group_of_a_pod_set_is_in_one_rack_by_rank() -> None:
    made = decide(of(job("w", "a", within("rack", pods(6), groups_of=2)), busy="n1/0 n1/1 n2/0"))
    assert by_set(made, "w") == {"main": ["n3"] * 4 + ["n2"] * 2}
    assert [place.rank for place in made.places("w")] == [0, 1, 2, 3, 4, 5]


def test_groups_are_in_racks_of_the_zone_that_all_pods_have_to_be_in() -> None:
    asked = job("w", "a", within("rack", pods(6), groups_of=3), within="zone")
    assert set(decide(of(asked, busy="n1/0")).nodes("w")) == {"n1", "n2"}
    assert decide(of(asked, busy="n1/0 n1/1")).started() == []


def test_who_may_be_anywhere_leaves_the_rack_to_those_that_have_to_be_in_it() -> None:
    """Best fit would put the driver where only the trainers fit."""
    asked = job("w", "a", pods(1, gpus=2, name="driver"), within("rack", pods(4, name="train")))
    made = by_set(decide(of(asked, nodes=(FLEET[0], FLEET[3]))), "w")
    assert made == {"driver": ["n4"], "train": ["n1", "n1", "n1", "n1"]}


def test_another_rack_is_tried_when_the_first_leaves_no_room_for_the_rest() -> None:
    """The trainers fit in either rack; a driver of four devices in one of them only."""
    nodes = (
        node("n1", gpus=4, at="z/r1"),
        node("n2", gpus=2, at="z/r2"),
        node("n3", gpus=3, at="z/r2"),
    )
    asked = job("w", "a", within("rack", pods(4, name="train")), pods(1, gpus=4, name="driver"))
    assert by_set(decide(of(asked, nodes=nodes)), "w") == {
        "train": ["n2", "n2", "n3", "n3"],
        "driver": ["n1"],
    }


def test_a_rack_takes_fewer_groups_than_it_holds_where_others_need_it() -> None:
    """Two sets of two devices leave one in each of two racks of three."""
    nodes = [node("n1", gpus=3, at="z/r1"), node("n2", gpus=3, at="z/r2")]
    pairs = [within("rack", pods(2, name=name)) for name in ("left", "right")]
    asked = job("w", "a", within("rack", pods(2, name="single"), groups_of=1), *pairs)
    assert by_set(decide(of(asked, nodes=nodes)), "w")["single"] == ["n1", "n2"]


def test_a_node_is_a_domain_too() -> None:
    nodes = [node(f"n{i}", gpus=3, at=f"z/r/n{i}") for i in range(3)]
    asked = job("w", "a", within("node", pods(6), groups_of=2))
    made = decide(replace(of(asked, nodes=nodes), levels=("zone", "rack", "node")))
    assert sorted(made.nodes("w")) == ["n0", "n0", "n1", "n1", "n2", "n2"]


@pytest.mark.parametrize(
    ("count", "groups_of", "where"),
    [(4, None, [4]), (6, None, [2, 4]), (6, 2, [2, 4]), (14, None, [2, 4, 4, 4])],
    ids=["one rack", "one zone", "groups", "anywhere"],
)
def test_what_had_better_be_together_goes_outwards_as_far_as_it_must(
    count: int, groups_of: int | None, where: list[int]
) -> None:
    made = decide(of(job("w", "a", near("rack", pods(count), groups_of=groups_of))))
    on = made.nodes("w")
    assert sorted(on.count(n) for n in set(on)) == where
    if count == 6 and groups_of is None:
        assert len({n for n in on if n in {"n1", "n2"}}) in (0, 2)  # of one zone


def test_a_wish_that_keeps_others_from_starting_is_dropped() -> None:
    nodes = [node(n, gpus=of, at=f"z/{n[0]}") for n, of in (("a", 4), ("b", 3), ("c", 1))]
    asked = job("w", "a", near("rack", pods(4, name="train")), pods(1, gpus=4, name="driver"))
    made = by_set(decide(of(asked, nodes=nodes)), "w")
    assert made == {"train": ["c", "b", "b", "b"], "driver": ["a"]}
    alone = replace(asked, pod_sets=asked.pod_sets[:1])
    assert decide(of(alone, nodes=nodes)).nodes("w") == ["a"] * 4


@pytest.mark.parametrize("required", [True, False], ids=["in one zone", "anywhere"])
@pytest.mark.parametrize(
    "sets",
    [
        (cpu_pods(2, cores=5, name="large"), near("rack", cpu_pods(2, cores=3, name="small"))),
        (pods(2, gpus=5, name="large"), near("rack", pods(2, gpus=3, name="small"))),
        (pods(gpus=4), pods(2, gpus=3, name="b"), near("rack", pods(3, gpus=2, name="c"))),
    ],
    ids=["cores", "devices", "what fits by another way alone"],
)
def test_nor_does_a_wish_keep_its_own_work_from_starting(
    sets: tuple[PodSetView, ...], required: bool
) -> None:
    nodes = [node(n, gpus=8, cores=8, at="z/r") for n in ("a", "b")]
    asked = replace(job("w", "a", *sets), topology=TopologyView("zone", required))
    made = decide(replace(of(asked, nodes=nodes), levels=("zone", "rack")))
    assert len(made.nodes("w")) == sum(each.count for each in sets)


def test_pods_beyond_the_least_stay_with_their_pod_set() -> None:
    made = decide(of(job("w", "a", within("rack", pods(8, least=3)))))
    assert made.nodes("w") == ["n1"] * 4
    apart = decide(of(job("w", "a", near("rack", pods(8, least=3)))))
    assert len(apart.nodes("w")) == 8


@pytest.mark.parametrize(
    ("asked", "told", "sentence"),
    [
        (
            within("rack", pods(5)),
            {"pod_set": "main", "level": "rack", "domains_count": 4, "most_pods_count": 4},
            "All 5 pods of main have to be in one rack; even empty, the largest of 4 takes 4.",
        ),
        (
            within("rack", pods(9), groups_of=3),
            {"groups_count": 3, "pods_count": 3, "most_groups_count": 3},
            None,
        ),
        (
            within("rack", pods(12), groups_of=3),
            {"groups_count": 4, "pods_count": 3, "most_groups_count": 3, "most_pods_count": 4},
            "Each 3 pods of main have to be in one rack, in 4 groups; even empty, the largest of"
            " 4 takes 4 pods, and there is room for 3 groups.",
        ),
        (
            within("row", pods(1)),
            {"domains_count": 0},
            "The pods of main have to be in one row, and of no node is known in which it is.",
        ),
    ],
    ids=["all", "groups that fit", "groups", "no such level"],
)
def test_the_reason_names_the_pod_set_the_level_and_what_a_domain_takes(
    asked: PodSetView, told: dict[str, int | str], sentence: str | None
) -> None:
    reason = never_admissible(of(), job("w", "a", asked))
    if sentence is None:
        assert reason is None
        return
    assert reason is not None
    assert told.items() <= dict(reason.numbers).items()
    assert describe(reason) == sentence


def test_the_reason_is_of_the_first_pod_set_that_finds_no_domain_beside_the_others() -> None:
    sets = within("rack", pods(4, name="big")), within("rack", pods(3, name="small"))
    asked = job("w", "a", *sets)
    made = decide(of(asked, busy="n2/0 n2/1 n3/0 n3/1"), preemption=False)
    assert made.reason("w") is ReasonCode.NO_FIT
    assert made.numbers("w").items() >= {"pod_set": "small", "most_pods_count": 3}.items()
    assert describe(made.hold("w").reason).endswith("That is without its other pods.")


def test_the_topology_of_all_pods_is_told_before_that_of_a_pod_set() -> None:
    reason = never_admissible(of(), job("w", "a", within("rack", pods(9)), within="zone"))
    assert reason is not None
    assert dict(reason.numbers)["level"] == "zone"
    assert "pod_set" not in dict(reason.numbers)


def test_likes_whose_groups_differ_are_of_different_classes() -> None:
    small, large = (job(f"w{n}", "a", within("rack", pods(6), groups_of=n)) for n in (2, 6))
    assert decide(of(large, small)).started() == ["w2"]


def on_racks(*held: str, asked: PodSetView, since: Sequence[int] = ()) -> Outcome:
    """Three racks of two devices; b borrows all that is held."""
    nodes = [node(f"n{i}", gpus=2, at=f"z/r{i}") for i in range(3)]
    ago = [*since, *(100 for _ in held[len(since) :])]
    running = [runs(at, "b", at, since_s=s) for at, s in zip(held, ago, strict=True)]
    queues = [queue("a", h100=6), queue("b", h100=Quota(0, borrow=6))]
    return decide(
        snapshot(
            nodes=nodes,
            queues=queues,
            holding=running,
            pending=[job("w", "a", asked)],
            levels=LEVELS,
        )
    )


def test_room_is_made_for_a_pod_set_in_the_rack_where_that_costs_least() -> None:
    made = on_racks("n0/0", "n1/0", "n2/0", asked=within("rack", pods(2)), since=(900, 100, 500))
    assert made.victims() == [("n1/0", "w", "reclaim")]


def test_room_is_made_only_for_the_groups_that_find_none() -> None:
    made = on_racks("n0/0", "n1/0", asked=within("rack", pods(4), groups_of=2))
    assert len(made.victims()) == 1
    assert made.waits("w")


def test_nobody_is_evicted_for_a_pod_set_that_no_rack_holds() -> None:
    assert on_racks("n0/0", "n1/0", asked=within("rack", pods(3))).victims() == []


RACKS = ("z1/r1", "z1/r2", "z2/r1")


@settings(max_examples=300, deadline=None)
@given(
    hardware=st.lists(
        st.tuples(st.integers(0, 4), st.sampled_from(RACKS)), min_size=1, max_size=6
    ),
    sets=st.lists(
        st.tuples(
            st.sampled_from(["", "zone", "rack", "rack"]), st.integers(1, 3), st.integers(1, 3)
        ),
        min_size=1,
        max_size=3,
    ),
    whole=st.sampled_from(["", "zone"]),
)
def test_it_starts_just_when_its_groups_can_be_laid_out(
    hardware: list[tuple[int, str]], sets: list[tuple[str, int, int]], whole: str
) -> None:
    """Brute force over all domains of each group, of pods of one device."""
    nodes = [node(f"n{i}", gpus=free, at=at) for i, (free, at) in enumerate(hardware)]
    free = {at: sum(n for n, of in hardware if of == at) for at in RACKS}
    pod_sets, groups = [], []
    for i, (level, size, number) in enumerate(sets):
        pod_set = pods(size * number, name=f"s{i}")
        pod_sets.append(within(level, pod_set, groups_of=size) if level else pod_set)
        groups += [(level, size)] * number
    zones = [{at: n for at, n in free.items() if at.startswith(z)} for z in ("z1", "z2")]
    rooms = zones if whole else [free]
    fleet = of(job("w", "a", *pod_sets, within=whole), nodes=nodes)
    made = decide(fleet)
    possible = any(can_be_laid_out(groups, room) for room in rooms)
    assert bool(made.started()) == possible
    if not possible:
        assert describe(made.hold("w").reason)


def test_so_many_ways_are_tried_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rack that is tried first is the only one with a node for the driver."""
    nodes = [node(n, gpus=of, at=f"z/{n[0]}") for n, of in (("a", 4), ("b1", 2), ("b2", 2))]
    asked = job("w", "a", within("rack", pods(4, name="train")), pods(1, gpus=4, name="driver"))
    assert decide(of(asked, nodes=nodes)).nodes("w") == ["b1", "b1", "b2", "b2", "a"]
    monkeypatch.setattr(layouts, "MOST_TRIES", 2)
    assert decide(of(asked, nodes=nodes)).started() == []


def test_what_fills_a_domain_has_its_own_before_what_fits_anywhere() -> None:
    """Of eight racks one has nine devices; the pods that may be in any would try it first."""
    nodes = [node(f"n{i}", gpus=8 if i else 9, at=f"z/r{i}") for i in range(8)]
    anywhere = within("rack", pods(40, name="many"), groups_of=1)
    asked = job("w", "a", anywhere, within("rack", pods(9, name="one")))
    assert decide(of(asked, nodes=nodes)).nodes("w")[40:] == ["n0"] * 9


def test_so_many_pods_are_put_in_vain_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = [node(n, gpus=of, at=f"z/{n[0]}") for n, of in (("a", 4), ("b1", 2), ("b2", 2))]
    asked = job("w", "a", within("rack", pods(4, name="train")), pods(1, gpus=4, name="driver"))
    monkeypatch.setattr(layouts, "MOST_PODS", 4)
    assert decide(of(asked, nodes=nodes)).started() == []
