"""A budget in hard mode, from when it is used up to when its work starts again."""

from datetime import UTC, datetime, timedelta

import pytest

from clusters.port import PodPhase
from controlplane.audit.models import AuditEvent
from scheduler.loop import run
from scheduler.models import Operation, Placement, Workload
from scheduler.selectors import budgets as selectors
from tenants.access import actor_for
from tenants.models import Budget, BudgetMode, Period, Project, Role, Tenant
from tenants.services import budgets
from tests import factories
from tests.factories import AT
from tests.scheduler.stage import Stage
from tests.scheduler.test_budgets import budget, standing, states

HOUR = timedelta(hours=1)


def hard(of: Project | Tenant, limit_h: int) -> Budget:
    return budget(of, limit_h, BudgetMode.HARD)


def gone(stage: Stage, *, at: datetime) -> None:
    """All that was told to go has."""
    for placement in Placement.objects.filter(
        workload__state="PREEMPTING", released_at__isnull=True
    ):
        stage.observe(stage.report(placement, PodPhase.FAILED, finished_at=at), at=at)


def reason(name: str) -> str:
    told = Workload.objects.get(name=name).reason
    assert told is not None
    return str(told["code"])


def test_what_runs_is_stopped_once_it_is_used_up_and_told_why(stage: Stage) -> None:
    hard(stage.project, 8)
    stage.running("long", gpus=4)
    stage.running("firm", gpus=4, preemptible=False)
    stage.cycle(at=AT + HOUR - timedelta(seconds=1))
    assert set(states().values()) == {"RUNNING"}
    stage.cycle(at=AT + HOUR)
    assert states() == {"long": "PREEMPTING", "firm": "PREEMPTING"}
    for workload in Workload.objects.all():
        messages = set(workload.events.values_list("message", flat=True))
        assert {
            "rule: budget",
            "preempted because the budget of Detection is used up, and stops what runs on GPUs",
        } <= messages
    told = AuditEvent.objects.get(action="budget.used-up")
    assert (told.actor, told.project_id) == ("system:scheduler", stage.project.id)


def test_it_has_its_notice_before(stage: Stage) -> None:
    hard(stage.project, 8)
    told = stage.running("told", gpus=8, notice_s=600)
    stage.cycle(at=AT + HOUR)
    told.refresh_from_db()
    assert told.notice_until == AT + HOUR + timedelta(seconds=600)
    kinds = Operation.objects.filter(attempt__workload=told, done_at__isnull=True)
    assert sorted(kinds.values_list("kind", flat=True)) == ["notice", "stop"]


def test_it_waits_until_the_period_ends_and_is_stopped_once(stage: Stage) -> None:
    made = hard(stage.project.tenant, 8)
    stage.running("long", gpus=8)
    stage.cycle(at=AT + HOUR)
    stage.dispatch()
    gone(stage, at=AT + HOUR)
    for minutes in (61, 90, 600):
        stage.cycle(at=AT + timedelta(minutes=minutes))
        assert (states(), reason("long")) == ({"long": "PENDING"}, "budget-used")
    assert made.ends_on is not None
    stage.cycle(at=datetime.combine(made.ends_on, datetime.min.time(), UTC))
    assert states() == {"long": "ADMITTED"}
    assert Workload.objects.get().events.filter(kind="preempted").count() == 1


def test_hours_that_come_back_start_nothing_and_more_hours_do(stage: Stage) -> None:
    """A pod that ended a little before it was told to go, by its cluster's clock."""
    made = hard(stage.project, 8)
    stage.running("long", gpus=8)
    stage.cycle(at=AT + HOUR)
    stage.dispatch()
    gone(stage, at=AT + HOUR - timedelta(seconds=30))
    at = AT + HOUR + timedelta(minutes=1)
    now = standing(at=at)
    assert now.used_milli_s < now.limit_milli_s
    assert (now.state, now.left_milli_s, now.stopped_at) == ("used", 0, AT + HOUR)
    stage.cycle(at=at)
    assert states() == {"long": "PENDING"}
    oz = factories.user("oz")
    factories.member(oz, Role.OPERATOR)
    for limit_h, state in ((8, "PENDING"), (7, "PENDING"), (9, "ADMITTED")):
        budgets.set_budget(
            actor=actor_for(user=oz), of=stage.project, period=Period.ONCE, at=at,
            terms=budgets.Terms(
                limit_h=limit_h, mode=BudgetMode.HARD, starts_on=made.starts_on,
                ends_on=made.ends_on,
            ),
        )  # fmt: skip
        stage.cycle(at=at)
        assert states() == {"long": state}
    made.refresh_from_db()
    assert made.used_up_at is None


def test_in_the_next_period_it_is_not_used_up(stage: Stage) -> None:
    made = hard(stage.project, 8)
    Budget.objects.filter(id=made.id).update(used_up_at=AT - timedelta(days=30))
    assert standing().stopped_at is None


def test_one_that_was_raised_meanwhile_is_not_marked(stage: Stage) -> None:
    made = hard(stage.project, 8)
    assert budgets.mark_used_up(limits_h={made.id: 7}, at=AT) == 0
    assert budgets.mark_used_up(limits_h={made.id: 8}, at=AT) == 1
    made.refresh_from_db()
    assert made.used_up_at == AT


def test_of_nested_budgets_the_nearest_is_named_and_all_are_used_up(stage: Stage) -> None:
    own, above = hard(stage.project, 8), hard(stage.project.tenant, 8)
    stage.running("long", gpus=8)
    stage.cycle(at=AT + HOUR)
    own.refresh_from_db()
    above.refresh_from_db()
    assert own.used_up_at == above.used_up_at == AT + HOUR


@pytest.mark.django_db(transaction=True)
def test_a_cycle_stops_it_though_nothing_waits_and_then_is_idle_again(committed: Stage) -> None:
    hard(committed.project, 8)
    long = committed.running("long", gpus=8)
    assert run.run_cycle(at=AT + HOUR - timedelta(seconds=1)) is None
    record = run.run_cycle(at=AT + HOUR)
    assert record is not None
    assert record.plan["preempts"] == [[str(long.id), "", "budget"]]
    assert not selectors.any_to_stop(at=AT + HOUR)
    assert run.run_cycle(at=AT + HOUR + timedelta(seconds=1)) is None
