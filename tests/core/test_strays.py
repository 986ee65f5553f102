"""Work of which pods run that the database does not know: it waits until they have ended."""

from dataclasses import replace

from scheduler.core.cycle import plan
from scheduler.core.explaining.checks import CheckCode, shared_checks
from scheduler.core.explaining.explain import explain
from scheduler.core.laws.invariants import violations
from scheduler.core.memory import Memory
from scheduler.core.policy import Policy
from scheduler.core.reasons import ReasonCode, describe
from scheduler.core.simulating.estimate import Basis, forecast
from scheduler.core.waits import StraysView
from tests.core.build import decide, job
from tests.core.drawn.gated import behind
from tests.core.sweep.test_sweep import ALL, agree
from tests.core.test_gathering import MISSING, fleet

RUN = StraysView(count=2, cluster="north")


def test_it_is_held_with_how_many_run_where_whatever_there_is_room_for() -> None:
    made = decide(fleet(replace(job("w", priority=9), strays=RUN), job("other")))
    assert made.started() == ["other"]
    assert made.reason("w") is ReasonCode.STRAYS
    assert made.numbers("w") == {"strays_count": 2, "cluster": "north"}
    assert describe(made.hold("w").reason) == (
        "2 of its pods are in north that the database, put back from a backup, does not know; it"
        " starts again once they are gone."
    )


def test_it_is_told_after_a_gate_and_before_its_pods() -> None:
    waits = replace(job("w"), strays=RUN, gathering=MISSING)
    assert decide(fleet(waits)).reason("w") is ReasonCode.STRAYS
    assert decide(fleet(behind(waits))).reason("w") is ReasonCode.GATE
    held = decide(fleet(waits)).hold("w")
    checks = shared_checks(pending=waits, decision=held)
    failed = [check.code for check in checks if check.passed is False]
    assert failed == [CheckCode.STRAYS]


def test_nobody_knows_when_it_starts_and_no_other_request_would_help() -> None:
    waits = replace(job("w"), strays=RUN)
    made = forecast(snapshot=fleet(waits), policy=Policy(), run_times={}, passes=3, seed=1)
    assert [(each.p50_s, each.basis) for each in made] == [(None, Basis.NONE)]
    told = explain(snapshot=fleet(), policy=Policy(), pending=waits, late=lambda: False)
    assert told.relaxations == ()


def test_the_law_tells_of_a_plan_that_starts_it() -> None:
    made = plan(snapshot=fleet(job("w")), policy=Policy())
    told = violations(fleet(replace(job("w"), strays=RUN)), made)
    assert "w starts beside 2 pods of it that run" in told


def test_in_bulk_it_is_held_as_by_hand() -> None:
    waiting = [job(f"w{i:04}", submitted_at=i) for i in range(600)]
    of = fleet(*(replace(p, strays=RUN) if i < 300 else p for i, p in enumerate(waiting)))
    made = agree(of, ALL)
    assert [admit.workload for admit in made.admits] == [f"w{i:04}" for i in range(300, 308)]


def test_a_plan_with_a_memory_starts_it_once_they_have_ended() -> None:
    memory = Memory()
    of = fleet(replace(job("w"), strays=RUN))
    assert not plan(snapshot=of, policy=Policy(), memory=memory).admits
    assert plan(snapshot=fleet(job("w")), policy=Policy(), memory=memory).admits
