"""Gangs that have to be, or had better be, in one zone, rack or NVLink domain."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.core.cycle import never_admissible
from scheduler.core.reasons import ReasonCode, describe
from scheduler.core.snapshot import NodeView, PendingView, PodSetView, Snapshot, TopologyView
from tests.core.build import (
    Outcome,
    Quota,
    cluster,
    cpu_pods,
    decide,
    job,
    node,
    pods,
    queue,
    runs,
    snapshot,
)
from tests.core.reference.brute import domains

QUEUE = queue("a", h100=64, cpu=64)
LEVELS = "zone rack"
FLEET = (
    node("n1", gpus=4, at="z1/r1"),
    node("n2", gpus=4, at="z1/r1"),
    node("n3", gpus=4, at="z1/r2"),
    node("n4", gpus=2, at="z1/r2"),
    node("n5", gpus=8, at="z2/r1"),
)


def of(*pending: PendingView, nodes: Sequence[NodeView] = FLEET) -> Snapshot:
    return snapshot(nodes=nodes, queues=[QUEUE], pending=pending, levels=LEVELS)


def racks(made: Outcome, name: str) -> set[str]:
    at = {n.id: "/".join(n.topology) for n in FLEET}
    return {at[p.node] for p in made.places(name)}


@pytest.mark.parametrize(
    ("asked", "rack"),
    [
        (pods(3, gpus=2), "z1/r2"),  # 6 free: the least that holds it
        (pods(4, gpus=2), "z1/r1"),  # of two with 8 free, the first by name
        (pods(1, gpus=8), "z2/r1"),  # the only one with so many on a node
        (pods(2, gpus=3), "z1/r1"),  # 6 free in z1/r2, and room for one
    ],
    ids=["least free", "by name", "a large pod", "free in sum only"],
)
def test_a_gang_that_has_to_be_in_one_rack_is_in_the_fullest_that_holds_it(
    asked: PodSetView, rack: str
) -> None:
    assert racks(decide(of(job("w", "a", asked, within="rack"))), "w") == {rack}


def test_all_pod_sets_of_a_workload_are_in_the_same_domain() -> None:
    sets = pods(3, gpus=2, name="worker"), cpu_pods(2, name="leader")
    made = decide(of(job("w", "a", *sets, within="rack"), nodes=(*FLEET, node("n0", cores=64))))
    assert racks(made, "w") == {"z1/r2"}


def test_pods_beyond_the_least_stay_in_the_domain_that_has_to_be() -> None:
    made = decide(of(job("w", "a", pods(20, gpus=1, least=7), within="rack")))
    assert (racks(made, "w"), len(made.places("w"))) == ({"z1/r1"}, 8)


def test_pods_beyond_the_least_go_beside_the_others_and_then_anywhere_if_they_had_better() -> None:
    made = decide(of(job("w", "a", pods(10, gpus=1, least=7), near="rack")))
    assert (racks(made, "w"), len(made.places("w"))) == ({"z1/r1", "z1/r2"}, 10)
    assert sum(n in {"n1", "n2"} for n in made.nodes("w")) == 8


@pytest.mark.parametrize(
    ("count", "where"),
    [
        (6, {"z1/r2"}),
        (8, {"z1/r1"}),
        (10, {"z1/r1", "z1/r2"}),
        (18, {"z1/r1", "z1/r2", "z2/r1"}),
    ],
    ids=["a rack", "another rack", "the zone", "anywhere"],
)
def test_a_gang_that_had_better_be_in_one_rack_goes_outwards_to_the_least_that_holds_it(
    count: int, where: set[str]
) -> None:
    assert racks(decide(of(job("w", "a", pods(count, gpus=1), near="rack"))), "w") == where


def test_what_no_rack_holds_stays_in_the_zone_though_best_fit_would_leave_it() -> None:
    elsewhere = node("n0", gpus=1, at="z3/r1")
    made = decide(of(job("w", "a", pods(10, gpus=1), near="rack"), nodes=(*FLEET, elsewhere)))
    assert "n0" not in made.nodes("w")


def test_a_rack_of_the_same_name_in_another_zone_is_another_rack() -> None:
    made = decide(of(job("w", "a", pods(10, gpus=1), within="rack")))
    assert made.reason("w") is ReasonCode.EXCEEDS_CAPACITY


def test_a_domain_does_not_reach_into_another_cluster() -> None:
    two = [cluster(c, [node(f"{c}n", gpus=4, at="z/r")]) for c in ("c1", "c2")]
    of = snapshot(
        clusters=two,
        queues=[QUEUE],
        pending=[job("w", "a", pods(8), within="zone")],
        levels=LEVELS,
    )
    assert decide(of).started() == []


@pytest.mark.parametrize("at", ["", "z1", "z1/"])
def test_a_node_whose_rack_is_unknown_is_in_none(at: str) -> None:
    made = decide(of(job("w", "a", within="rack"), nodes=[node("n1", gpus=1, at=at)]))
    assert made.reason("w") is ReasonCode.EXCEEDS_CAPACITY
    assert describe(made.hold("w").reason) == (
        "All its pods have to be in one rack, and of no node is known in which it is."
    )
    near = decide(of(job("w", "a", near="rack"), nodes=[node("n1", gpus=1, at=at)]))
    assert near.started() == ["w"]


def test_a_rack_may_be_known_where_the_zone_is_not() -> None:
    nodes = [node("n1", gpus=1, at="/r1"), node("n2", gpus=1, at="/r1")]
    assert decide(of(job("w", "a", pods(2), within="rack"), nodes=nodes)).started() == ["w"]


@pytest.mark.parametrize("near", [True, False])
def test_of_a_level_that_there_is_not_there_are_no_domains(near: bool) -> None:
    asked = job("w", "a", near="row") if near else job("w", "a", within="row")
    assert decide(of(asked)).started() == (["w"] if near else [])


def test_the_reason_says_how_many_pods_the_roomiest_domain_takes() -> None:
    busy = snapshot(
        nodes=FLEET,
        queues=[QUEUE],
        holding=[runs("r", "a", "n1/0", "n5/0")],
        pending=[job("w", "a", pods(8, gpus=1), within="rack")],
        levels=LEVELS,
    )
    made = decide(busy, preemption=False)
    assert made.reason("w") is ReasonCode.NO_FIT
    told = {"level": "rack", "domains_count": 3, "most_pods_count": 7, "pods_count": 8}
    assert told.items() <= made.numbers("w").items()
    assert describe(made.hold("w").reason) == (
        "8 h100 asked and 20 free, but all 8 pods have to be in one rack: of 3, the one with most"
        " room takes 7."
    )


def test_what_no_rack_could_ever_hold_is_refused_at_submission_and_fits_without_the_wish() -> None:
    asked = job("w", "a", pods(9, gpus=1), within="rack")
    reason = never_admissible(of(), asked)
    assert reason is not None
    assert reason.code is ReasonCode.EXCEEDS_CAPACITY
    assert describe(reason) == (
        "All 9 pods have to be in one rack; even empty, the largest of 3 takes 8."
    )
    assert never_admissible(of(), replace(asked, topology=None)) is None
    assert never_admissible(of(), replace(asked, topology=TopologyView("zone", True))) is None


def test_of_what_does_not_fit_apart_either_the_reason_says_nothing_of_racks() -> None:
    reason = never_admissible(of(), job("w", "a", pods(99), within="rack"))
    assert reason is not None
    assert "level" not in dict(reason.numbers)


def test_likes_that_want_to_be_elsewhere_are_of_another_class() -> None:
    wide, narrow = (job(level, "a", pods(10), within=level) for level in ("zone", "rack"))
    assert decide(of(narrow, wide)).started() == ["zone"]


def on_two(*, releasing: bool = False, rack: str = "rack") -> Outcome:
    """Each rack has one GPU free; w wants two in one."""
    nodes = [node("n1", gpus=2, at="z/r1"), node("n2", gpus=2, at="z/r2")]
    held = [
        runs("r1", "b", "n1/0", releasing=releasing, since_s=900),
        runs("r2", "b", "n2/0", releasing=releasing, since_s=100),
    ]
    queues = [queue("a", h100=4), queue("b", h100=Quota(0, borrow=4))]
    asked = job("w", "a", pods(2), within=rack)
    return decide(
        snapshot(nodes=nodes, queues=queues, holding=held, pending=[asked], levels=LEVELS)
    )


def test_room_is_made_in_the_domain_where_that_costs_least() -> None:
    assert on_two().victims() == [("r2", "w", "reclaim")]
    assert on_two().waits("w")


def test_what_leaves_a_domain_is_waited_for_and_nobody_is_evicted() -> None:
    assert on_two(releasing=True).victims() == []
    assert on_two(releasing=True).waits("w")


def test_nobody_is_evicted_where_the_domain_has_room_already() -> None:
    assert on_two(rack="zone").started() == ["w"]
    assert on_two(rack="zone").victims() == []


def test_nobody_is_evicted_outside_of_the_domain() -> None:
    """r holds in the rack and outside of it, where t loses least."""
    of = snapshot(
        nodes=[node("n0", gpus=2), node("n1", gpus=1, at="z/r1")],
        queues=[queue("a", h100=4), queue("b", h100=Quota(0, borrow=4))],
        holding=[
            runs("r", "b", "n1/0", "n0/0", since_s=900),
            runs("t", "b", "n0/1", since_s=9),
        ],
        pending=[job("w", "a", within="rack")],
        levels=LEVELS,
    )
    assert decide(of).victims() == [("r", "w", "reclaim")]


def test_nobody_is_evicted_for_what_no_domain_holds() -> None:
    of = snapshot(
        nodes=[node("n1", gpus=2, at="z/r1"), node("n2", gpus=2, at="z/r2")],
        queues=[queue("a", h100=4), queue("b", h100=Quota(0, borrow=4))],
        holding=[runs("r1", "b", "n1/0"), runs("r2", "b", "n2/0", preemptible=False)],
        pending=[job("w", "a", pods(3), within="rack")],
        levels=LEVELS,
    )
    assert decide(of).victims() == []


@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.sampled_from(["", "z1/r1", "z1/r2", "z2/r1", "/r1"])),
        min_size=1,
        max_size=6,
    ),
    st.integers(1, 6),
    st.integers(1, 3),
    st.sampled_from(["zone", "rack"]),
)
def test_a_gang_of_like_pods_starts_just_when_some_domain_holds_it(
    hardware: list[tuple[int, str]], count: int, gpus: int, level: str
) -> None:
    """Brute force: each domain holds as many pods as its nodes do, one by one."""
    nodes = [node(f"n{i}", gpus=free, at=at) for i, (free, at) in enumerate(hardware)]
    asked = job("w", "a", pods(count, gpus=gpus), within=level)
    fleet = of(asked, nodes=nodes)
    rooms = domains(fleet, nodes, TopologyView(level, required=True))
    holds = [sum(len(n.devices) // gpus for n in room) for room in rooms]
    made = decide(fleet)
    assert bool(made.started()) == any(pods >= count for pods in holds)
    if "level" in (numbers := dict(made.hold("w").reason.numbers) if made.plan.holds else {}):
        assert numbers["most_pods_count"] == max(holds, default=0)
        assert numbers["domains_count"] == len(holds)
