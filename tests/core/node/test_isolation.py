"""Work that accepts no less than some isolation between neighbours, and what then is told."""

from dataclasses import replace

import pytest

from scheduler.core.bounds.limits import never_admissible
from scheduler.core.cycle import planned
from scheduler.core.explaining.change import Change, describe
from scheduler.core.explaining.checks import CheckCode, chains
from scheduler.core.explaining.explain import explain
from scheduler.core.memory import Memory
from scheduler.core.node.isolation import is_enough, stricter
from scheduler.core.policy import Policy
from scheduler.core.reasons import ReasonCode
from scheduler.core.reasons import describe as told
from scheduler.core.snapshot import Isolation, PodSetView, Snapshot
from scheduler.core.units import PodSetId
from tests.core.build import T4, decide, job, node, pods, queue, snapshot

NONE, MEMORY, HARDWARE = Isolation
SLOTS = [node("n1", gpus=1, model=T4, shares=NONE)]
QUEUE = queue("a", t4slot=8, t4=8)


def slot(least: Isolation = NONE, flavors: str = "t4slot", share: float = 0.5) -> PodSetView:
    return replace(pods(share=share, flavors=flavors), least_isolation=least)


def fleet(of_project: Isolation, *asks: PodSetView) -> Snapshot:
    queues = [replace(QUEUE, least_isolation=of_project)]
    return snapshot(nodes=SLOTS, queues=queues, pending=[job("w", "a", *asks)])


@pytest.mark.parametrize(
    ("of_project", "of_pods", "starts"),
    [
        (NONE, NONE, True),
        (NONE, MEMORY, False),
        (MEMORY, NONE, False),
        (HARDWARE, NONE, False),
        (HARDWARE, MEMORY, False),
    ],
)
def test_the_stricter_of_project_and_pod_set_binds(
    of_project: Isolation, of_pods: Isolation, starts: bool
) -> None:
    of = fleet(of_project, slot(of_pods))
    made = decide(of)
    assert made.started() == (["w"] if starts else [])
    if not starts:
        least = stricter(of_project, of_pods)
        by = "project" if least is of_project else "request"
        expected = {"by": by, "flavor": "t4slot", "given": "none", "least": least.value}
        assert made.numbers("w") == expected
        assert never_admissible(of, of.pending[0]) == made.hold("w").reason


def test_a_whole_device_is_apart_from_everybody() -> None:
    assert decide(fleet(HARDWARE, slot(flavors="t4slot t4", share=1))).started() == ["w"]
    assert all(is_enough(given=HARDWARE, least=least) for least in Isolation)


def test_what_a_project_accepts_holds_from_the_next_plan_on() -> None:
    """Though who waits is the same."""
    memory, policy = Memory(), Policy()
    of = fleet(HARDWARE, slot())
    assert planned(of, policy, memory)[0].admits == ()
    looser = replace(of, queues=(QUEUE,))
    assert [a.workload for a in planned(looser, policy, memory)[0].admits] == ["w"]


def test_the_sentence_says_whose_word_it_is() -> None:
    assert told(decide(fleet(MEMORY, slot())).hold("w").reason) == (
        "t4slot isolates by nothing where neighbours share a GPU; the project accepts no less than"
        " memory limits alone."
    )
    assert "what was asked for accepts" in told(decide(fleet(NONE, slot(MEMORY))).hold("w").reason)


def test_the_chain_of_a_flavor_that_is_refused_ends_at_its_isolation() -> None:
    of = fleet(HARDWARE, slot(flavors="t4slot t4", share=1), replace(slot(), id=PodSetId("b")))
    made, cycle = planned(of, Policy())
    (pending,) = of.pending
    found = chains(cycle=cycle, pending=pending, decision=made.decision(pending.id))
    assert [(chain.flavors, chain.told) for chain in found] == [(("t4slot",), True)]
    first, *others = found[0].checks
    assert (first.code, first.passed, first.flavor) == (CheckCode.ISOLATION, False, "t4slot")
    assert first.reason is not None
    assert first.reason.code is ReasonCode.ISOLATION
    assert {check.passed for check in others} == {None}


def test_an_option_beside_a_refused_flavor_passes_that_check() -> None:
    full = [node("n1", gpus=1, model=T4, shares=NONE, usable=False)]
    of = fleet(HARDWARE, slot(flavors="t4slot t4", share=1))
    of = replace(of, clusters=snapshot(nodes=full).clusters)
    made, cycle = planned(of, Policy())
    (pending,) = of.pending
    found = chains(cycle=cycle, pending=pending, decision=made.decision(pending.id))
    assert [(chain.flavors, chain.told) for chain in found] == [
        (("t4",), True),
        (("t4slot",), False),
    ]
    assert (found[0].checks[0].code, found[0].checks[0].passed) == (CheckCode.ISOLATION, True)


def test_it_is_told_that_accepting_less_would_help() -> None:
    of = fleet(HARDWARE, slot(MEMORY))
    explained = explain(snapshot=of, policy=Policy(), pending=of.pending[0])
    (found,) = (r for r in explained.relaxations if r.change is Change.ISOLATION)
    assert (found.old, found.new, found.subject) == ("hardware", "none", "t4slot")
    assert describe(found).startswith("Accept t4slot, with isolation none, not hardware:")
