"""Gates: who waits for somebody's word does not start, and is told whose."""

from dataclasses import replace

import pytest

from scheduler.core.cycle import plan
from scheduler.core.explaining.explain import explain
from scheduler.core.laws.invariants import violations
from scheduler.core.memory import Memory
from scheduler.core.policy import Policy
from scheduler.core.reasons import ReasonCode, describe
from scheduler.core.simulating.estimate import Basis, forecast
from scheduler.core.snapshot import PendingView, Snapshot
from scheduler.core.waits import GateView, UnmetView
from tests.core.build import AT, decide, job, node, queue, snapshot
from tests.core.drawn.gated import behind
from tests.core.sweep.test_sweep import ALL, agree


def fleet(*waiting: PendingView) -> Snapshot:
    return snapshot(nodes=[node("n1", gpus=8)], queues=[queue("a", h100=8)], pending=waiting)


def test_it_is_held_with_whose_word_it_waits_for_whatever_there_is_room_for() -> None:
    made = decide(fleet(behind(job("w", priority=9)), job("other")))
    assert made.started() == ["other"]
    assert made.reason("w") is ReasonCode.GATE
    numbers = {"gate": "data", "owner": "ada", "since_at": AT - 60, "gates_count": 1}
    assert made.numbers("w") == numbers


@pytest.mark.parametrize(
    ("gate", "sentence"),
    [
        (
            GateView("data", "ada", 0),
            "It waits for ada to open its gate data, since 1 Jan 1970 00:00 (UTC).",
        ),
        (
            GateView("data", "ada", 60, 86400, 3),
            "It waits for ada to open its gate data, since 1 Jan 1970 00:01 (UTC). Not opened by"
            " 2 Jan 1970 00:00 (UTC), it is cancelled. Other gates of it that are not open: 2.",
        ),
        (
            GateView("data", "ada", -1, 1 << 62),
            "It waits for ada to open its gate data, since 1 Jan 1970 00:00 (UTC). Not opened by"
            " 31 Dec 9999 23:59 (UTC), it is cancelled.",
        ),
    ],
    ids=["one", "three", "unreal"],
)
def test_the_sentence_says_since_when_and_until_when(gate: GateView, sentence: str) -> None:
    held = decide(fleet(behind(job("w"), gate))).hold("w")
    assert describe(held.reason) == sentence


def test_a_held_queue_is_told_before_it_and_a_dependency_after_it() -> None:
    waits = replace(behind(job("w")), waits_for=UnmetView(1, "x"))
    of = fleet(waits)
    assert decide(of).reason("w") is ReasonCode.GATE
    held = replace(of, queues=tuple(replace(q, held_by=("tenant a",)) for q in of.queues))
    assert decide(held).reason("w") is ReasonCode.QUEUE_HELD
    opened = replace(of, pending=(behind(waits, None),))
    assert decide(opened).reason("w") is ReasonCode.DEPENDENCY


def test_its_start_is_not_estimated() -> None:
    of = fleet(behind(job("w")), job("other"))
    made = forecast(snapshot=of, policy=Policy(), run_times={}, passes=3, seed=1)
    found = {str(each.workload): each for each in made}
    assert (found["w"].p50_s, found["w"].basis) == (None, Basis.NONE)
    assert found["other"].p50_s == 0


def test_no_other_request_would_help() -> None:
    asked = behind(job("w"))
    found = explain(snapshot=fleet(), policy=Policy(), pending=asked, late=lambda: False)
    assert found.relaxations == ()


def test_the_law_tells_of_a_plan_that_starts_it() -> None:
    made = plan(fleet(job("w")), Policy())
    assert "w starts before its gate data is open" in violations(fleet(behind(job("w"))), made)


def test_in_bulk_it_is_held_as_by_hand() -> None:
    waiting = [job(f"w{i:04}", submitted_at=i) for i in range(600)]
    of = fleet(*(behind(p) if i < 300 else p for i, p in enumerate(waiting)))
    made = agree(of, ALL)
    assert [admit.workload for admit in made.admits] == [f"w{i:04}" for i in range(300, 308)]


def test_a_plan_with_a_memory_starts_it_once_the_gate_is_open() -> None:
    memory = Memory()
    of = fleet(*(behind(job(f"w{i}")) for i in range(3)))
    assert plan(of, Policy(), memory).admits == ()
    opened = replace(of, pending=(behind(of.pending[0], None), *of.pending[1:]))
    made = plan(opened, Policy(), memory)
    assert [admit.workload for admit in made.admits] == ["w0"]
    assert made == plan(opened, Policy())
