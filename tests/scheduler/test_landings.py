"""What is kept for who is moved, and for whom: rows until they have started, read as written."""

from dataclasses import replace
from datetime import timedelta

import pytest
from pytest_django import Settings

from scheduler.core import cycle
from scheduler.core.lifecycle import State
from scheduler.core.plan import Admit, Plan
from scheduler.core.policy import Policy
from scheduler.loop.run import run_cycle
from scheduler.models import InvariantCheck, Landing, Workload
from scheduler.selectors import policy as policies
from scheduler.selectors.landings import landings
from scheduler.selectors.load import load_here
from tests import factories
from tests.factories import AT
from tests.scheduler.stage import Stage

POLICY = Policy(consolidation_budget_milli_s=10**9)


def half(stage: Stage, name: str, node: int) -> Workload:
    """It holds four of the eight devices of a node."""
    row = factories.workload(
        stage.project, stage.ada, [stage.flavor], name, state=State.RUNNING, gpus=4
    )
    placed = factories.place(row, stage.nodes[node], stage.flavor, amount_milli=4000)
    for device in stage.nodes[node].devices.order_by("ordinal")[:4]:
        factories.span(placed, device)
    Workload.objects.filter(id=row.id).update(started_at=AT)
    return row


def moved(stage: Stage) -> tuple[Workload, Workload, Plan]:
    """Who moves, for whom, and the plan that was carried out."""
    mover, _ = half(stage, "p", 0), half(stage, "q", 1)
    Workload.objects.filter(name="q").update(started_at=AT - timedelta(hours=1))
    large = stage.submit("large", gpus=8)
    loaded = load_here(at=AT)
    made = cycle.plan(loaded.snapshot, POLICY)
    assert [preempt.victim for preempt in made.preempts] == [str(mover.id)]
    stage.carry_out(loaded, made)
    return mover, large, made


def test_a_plan_reads_its_landings_again_as_it_wrote_them(stage: Stage) -> None:
    mover, large, made = moved(stage)
    assert {each.workload for each in made.landings} == {str(mover.id), str(large.id)}
    assert set(landings()) == set(made.landings)
    mover.refresh_from_db()
    assert (mover.state, mover.moved_at) == (State.PREEMPTING, AT)
    loaded = load_here(at=AT + timedelta(seconds=1))
    again = cycle.plan(loaded.snapshot, POLICY)
    assert set(again.landings) == set(made.landings)
    assert not again.preempts
    [held] = [h for h in loaded.snapshot.holding if h.id == str(mover.id)]
    assert held.moved_at == int(AT.timestamp())


def test_what_a_plan_no_longer_keeps_is_gone(stage: Stage) -> None:
    moved(stage)
    loaded = load_here(at=AT)
    stage.carry_out(loaded, replace(cycle.plan(loaded.snapshot, POLICY), landings=()))
    assert not Landing.objects.exists()


def test_who_was_refused_when_it_should_have_landed_keeps_its_places(stage: Stage) -> None:
    """The rows say that its places are still held."""
    _, large, made = moved(stage)
    loaded = load_here(at=AT)
    landing = next(each for each in made.landings if each.workload == str(large.id))
    starts = Admit(landing.workload, landing.cluster, landing.places)
    others = tuple(each for each in made.landings if each is not landing)
    outcome = stage.carry_out(loaded, Plan(admits=(starts,), landings=others))
    assert outcome.refused == (str(large.id),)
    assert set(landings()) == set(made.landings)


def test_what_another_version_wrote_is_passed_over_and_replaced(stage: Stage) -> None:
    _, _, made = moved(stage)
    Landing.objects.update(places=[{"seat": 1}])
    assert landings() == ()
    loaded = load_here(at=AT)
    stage.carry_out(loaded, replace(cycle.plan(loaded.snapshot, POLICY), landings=made.landings))
    assert set(landings()) == set(made.landings)


def test_a_workload_that_is_gone_takes_its_landing_along(stage: Stage) -> None:
    _, large, _ = moved(stage)
    stage.cancel(large)
    loaded = load_here(at=AT)
    made = cycle.plan(loaded.snapshot, POLICY)
    assert [each.workload for each in made.landings] != []
    assert str(large.id) not in {each.workload for each in made.landings}


@pytest.mark.django_db(transaction=True)
def test_while_admission_is_stopped_places_stay_kept(stage: Stage) -> None:
    _, _, made = moved(stage)
    InvariantCheck.objects.create(at=AT, took_ms=1, violations=[{"rule": "P1", "rows": 1}])
    run_cycle(at=AT, policy=POLICY)
    assert set(landings()) == set(made.landings)


def test_the_budget_is_the_installations(settings: Settings) -> None:
    assert policies.current().consolidation_budget_milli_s == 3600 * 1000
    settings.BERTH_CONSOLIDATION_BUDGET_S = 0
    assert policies.current().consolidation_budget_milli_s == 0
