"""Work whose pods are made in its cluster: it waits until those that start together are there."""

from dataclasses import replace

from scheduler.core.cycle import plan
from scheduler.core.explaining.explain import explain
from scheduler.core.laws.invariants import violations
from scheduler.core.memory import Memory
from scheduler.core.policy import Policy
from scheduler.core.reasons import ReasonCode, describe
from scheduler.core.simulating.estimate import Basis, forecast
from scheduler.core.snapshot import PendingView, Snapshot
from scheduler.core.waits import GatheringView
from tests.core.build import decide, job, node, queue, snapshot
from tests.core.drawn.gated import behind
from tests.core.sweep.test_sweep import ALL, agree

MISSING = GatheringView(missing=3, wanted=4)


def fleet(*waiting: PendingView) -> Snapshot:
    return snapshot(nodes=[node("n1", gpus=8)], queues=[queue("a", h100=8)], pending=waiting)


def test_it_is_held_with_how_many_are_missing_whatever_there_is_room_for() -> None:
    made = decide(fleet(replace(job("w", priority=9), gathering=MISSING), job("other")))
    assert made.started() == ["other"]
    assert made.reason("w") is ReasonCode.GATHERING
    assert made.numbers("w") == {"missing_count": 3, "wanted_count": 4}
    assert describe(made.hold("w").reason) == (
        "3 of the 4 pods that start together are not there yet: they are made in its cluster."
    )


def test_it_starts_once_they_are_there() -> None:
    assert decide(fleet(job("w"))).started() == ["w"]


def test_a_gate_is_told_before_it_and_a_retry_after_it() -> None:
    waits = replace(job("w", not_before=1 << 40), gathering=MISSING)
    assert decide(fleet(waits)).reason("w") is ReasonCode.GATHERING
    assert decide(fleet(behind(waits))).reason("w") is ReasonCode.GATE


def test_nobody_knows_when_it_starts_and_no_other_request_would_help() -> None:
    waits = replace(job("w"), gathering=MISSING)
    of = fleet(waits, job("other"))
    made = forecast(snapshot=of, policy=Policy(), run_times={}, passes=3, seed=1)
    found = {str(each.workload): each for each in made}
    assert (found["w"].p50_s, found["w"].basis) == (None, Basis.NONE)
    assert found["other"].p50_s == 0
    told = explain(snapshot=fleet(), policy=Policy(), pending=waits, late=lambda: False)
    assert told.relaxations == ()


def test_the_law_tells_of_a_plan_that_starts_it() -> None:
    made = plan(snapshot=fleet(job("w")), policy=Policy())
    told = violations(fleet(replace(job("w"), gathering=MISSING)), made)
    assert "w starts before its 4 pods are there" in told


def test_in_bulk_it_is_held_as_by_hand() -> None:
    waiting = [job(f"w{i:04}", submitted_at=i) for i in range(600)]
    of = fleet(*(replace(p, gathering=MISSING) if i < 300 else p for i, p in enumerate(waiting)))
    made = agree(of, ALL)
    assert [admit.workload for admit in made.admits] == [f"w{i:04}" for i in range(300, 308)]


def test_a_plan_with_a_memory_starts_it_once_they_are_there() -> None:
    memory = Memory()
    of = fleet(replace(job("w"), gathering=MISSING))
    assert not plan(snapshot=of, policy=Policy(), memory=memory).admits
    assert plan(snapshot=fleet(job("w")), policy=Policy(), memory=memory).admits
