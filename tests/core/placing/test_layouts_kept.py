"""Pod sets in domains of their own as time goes on: what grows, moves, is told and would help."""

from dataclasses import replace

import pytest

from scheduler.core.cycle import plan, planned
from scheduler.core.explaining.change import Change, Relaxation, describe
from scheduler.core.explaining.checks import CheckCode, chains
from scheduler.core.faults import faults
from scheduler.core.laws.invariants import violations
from scheduler.core.plan import Plan
from scheduler.core.policy import Policy
from scheduler.core.reasons import PreemptRule
from scheduler.core.snapshot import PodSetView, Snapshot, TopologyView
from scheduler.core.units import WHOLE_DEVICE, DeviceId, PodSetId
from tests.core.build import decide, job, node, pods, queue, runs, snapshot
from tests.core.drawn.together import near, within
from tests.core.explaining.test_relax import busy, helps
from tests.core.held.elastic import grows
from tests.core.moving.test_consolidate import POLICY, TWO, moved, nodes_of, saved

RACKS = [
    node("n1", gpus=2, at="z/r1"),
    node("n2", gpus=2, at="z/r1"),
    node("n3", gpus=4, at="z/r2"),
    node("n4", gpus=4),
]


def elastic(of_set: PodSetView) -> Plan:
    held = runs("e", "a", "n1/0", of=of_set, since_s=100)
    of = snapshot(nodes=RACKS, queues=[queue("a", h100=16)], holding=[held], levels="zone rack")
    made = plan(of, Policy())
    assert violations(of, made) == ()
    return made


def test_what_has_to_be_in_one_rack_grows_in_it_alone() -> None:
    assert grows(elastic(within("rack", pods(8, least=1)))) == {"e": "n1 n2 n2"}


def test_what_had_better_be_in_one_rack_grows_in_it_first() -> None:
    assert grows(elastic(near("rack", pods(5, least=1)))) == {"e": "n1 n2 n2 n3"}


def test_a_pod_set_in_a_domain_that_there_is_no_more_does_not_grow() -> None:
    assert grows(elastic(within("row", pods(5, least=1)))) == {}


def test_what_has_to_stay_in_a_full_rack_keeps_nobody_who_need_not_from_growing() -> None:
    """Like pods of two gangs of the rack: the first to be asked may not leave it."""
    held = []
    for name, on, since_s, required in [("e", "n1", 200, True), ("f", "n2", 100, False)]:
        made = runs(name, "a", f"{on}/0", amount=2, since_s=since_s, of=pods(2, gpus=2, least=1))
        both = tuple((DeviceId(f"{on}/{i}"), WHOLE_DEVICE) for i in range(2))
        placement = replace(made.placements[0], spans=both)
        topology = TopologyView("rack", required)
        held.append(replace(made, placements=(placement,), topology=topology))
    of = snapshot(nodes=RACKS, queues=[queue("a", h100=16)], holding=held, levels="zone rack")
    assert grows(plan(of, Policy())) == {"f": "n3"}


def halves(*pod_sets: PodSetView, p_set: PodSetView | None = None) -> Snapshot:
    """Two racks of two devices, each half full with work that may be moved."""
    p, q = saved("p", "n1/0"), saved("q", "n2/0", ago_s=90)
    if p_set is not None:
        p = replace(p, pod_sets=(replace(p_set, id=PodSetId("p.main")),))
    return snapshot(
        nodes=[node("n1", gpus=2, at="z/r1"), node("n2", gpus=2, at="z/r2")],
        queues=TWO,
        holding=[p, q],
        pending=[job("w", "a", *pod_sets)],
        levels="zone rack",
    )


def test_work_moves_to_make_room_for_a_pod_set_in_one_rack() -> None:
    of = halves(within("rack", pods(2)))
    made = plan(of, POLICY)
    assert violations(of, made) == ()
    assert moved(made) == ["p"]
    assert nodes_of(made.landings) == {"w": {"n1"}, "p": {"n2"}}


def test_work_moves_only_to_where_its_own_pod_set_may_be() -> None:
    """It loses least, and there is no such domain for it any more."""
    of = halves(pods(gpus=2), p_set=within("row", pods()))
    assert moved(plan(of, POLICY)) == ["q"]


def test_a_wider_level_for_the_pod_set_before_none_helps() -> None:
    asked = job("w", "a", within("rack", pods(2, name="train")))
    found = helps(busy("n1/0", "n2/0"), asked)[Change.TOPOLOGY]
    assert found == Relaxation(Change.TOPOLOGY, "rack", "zone", subject="w.train")
    assert describe(replace(found, subject="train")) == (
        "Let the pods of train start in one zone, not in one rack."
    )


def test_fewer_pods_is_no_advice_for_what_starts_in_whole_groups() -> None:
    grouped = job("w", "a", within("zone", pods(4), groups_of=2))
    whole = job("w", "a", within("zone", pods(4)))
    of = busy("n1/0", "n2/0")
    assert Change.PODS in helps(of, whole)
    assert Change.PODS not in helps(of, grouped)


def test_the_check_of_domains_fails_with_the_level_and_the_pods_of_the_set() -> None:
    asked = job("w", "a", within("rack", pods(2)))
    of = replace(busy("n1/0", "n2/0"), pending=(asked,))
    made, cycle = planned(of, Policy(preemption=False))
    [hold] = made.holds
    [chain] = chains(cycle=cycle, pending=asked, decision=hold)
    [failed] = [check for check in chain.checks if check.code is CheckCode.DOMAIN]
    assert (failed.passed, failed.where, failed.value, failed.limit) == (False, "rack", 2, 1)


@pytest.mark.parametrize(
    ("at", "told"),
    [
        ("z/r1 z/r1 z/r2 z/r2", ""),
        ("z/r1 z/r2 z/r2 z/r1", "in 2 domains of level rack"),
        ("z/r1 z/r1 z z", "where the rack is unknown"),
    ],
)
def test_the_law_tells_of_a_group_that_is_not_together(at: str, told: str) -> None:
    nodes = [node(f"n{i}", gpus=1, at=where) for i, where in enumerate(at.split())]
    asked = job("w", "a", within("rack", pods(4), groups_of=2))
    free = replace(asked, pod_sets=(replace(asked.pod_sets[0], topology=None),))
    of = snapshot(nodes=nodes, queues=[queue("a", h100=4)], pending=[asked], levels="zone rack")
    found = violations(of, decide(replace(of, pending=(free,))).plan)
    assert bool(found) == bool(told)
    assert told in "".join(found)


def test_the_law_tells_of_a_pod_set_that_grows_out_of_its_rack() -> None:
    of = snapshot(
        nodes=RACKS,
        queues=[queue("a", h100=16)],
        holding=[runs("e", "a", "n1/0", of=near("rack", pods(5, least=1)), since_s=100)],
        levels="zone rack",
    )
    made = plan(of, Policy())
    [held] = of.holding
    bound = replace(held, pod_sets=(replace(held.pod_sets[0], topology=None),))
    bound = replace(bound, pod_sets=(within("rack", bound.pod_sets[0]),))
    assert violations(replace(of, holding=(bound,)), made) == ("e grows out of its rack",)


@pytest.mark.parametrize("groups_of", [0, 3, -1])
def test_groups_that_do_not_divide_the_pods_are_a_fault(groups_of: int) -> None:
    asked = job("w", "a", within("rack", pods(4), groups_of=groups_of))
    of = snapshot(nodes=RACKS, queues=[queue("a", h100=4)], pending=[asked], levels="zone rack")
    [fault] = faults(of)
    assert f"4 to 4 pods in groups of {groups_of}; right would be" in fault.text
    assert decide(of).started() == []


def test_groups_that_come_and_go_are_a_fault() -> None:
    asked = job("w", "a", within("rack", pods(4, least=2), groups_of=2))
    of = snapshot(nodes=RACKS, queues=[queue("a", h100=4)], pending=[asked], levels="zone rack")
    assert "2 to 4 pods in groups of 2" in faults(of)[0].text


def test_nobody_is_evicted_outside_of_the_rack_of_a_pod_set() -> None:
    """t loses least, and holds nothing in the rack."""
    of = snapshot(
        nodes=[node("n0", gpus=1), node("n1", gpus=1, at="z/r1")],
        queues=[queue("a", h100=2)],
        holding=[
            runs("r", "a", "n1/0", since_s=900),
            runs("t", "a", "n0/0", since_s=9),
        ],
        pending=[job("w", "a", within("rack", pods(1)), priority=1)],
        levels="zone rack",
    )
    made = decide(of)
    assert made.victims() == [("r", "w", PreemptRule.PRIORITY.value)]
