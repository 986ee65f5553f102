"""Budgets in the database: what is used of them, and what the loop plans by it."""

from datetime import UTC, date, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduler.loop.measuring import meter
from scheduler.models import Placement, Workload
from scheduler.selectors import budgets
from scheduler.selectors.budgets import Standing
from scheduler.selectors.load import load_here
from tenants.models import Budget, BudgetMode, PastUse, Period, Project, Tenant
from tests import factories
from tests.factories import AT
from tests.scheduler.stage import Stage

HOUR = timedelta(hours=1)
TODAY = AT.astimezone(UTC).date()


def budget(of: Project | Tenant, limit_h: int, mode: BudgetMode = BudgetMode.SOFT) -> Budget:
    """From today on, for three days."""
    owner = {"project" if isinstance(of, Project) else "tenant": of}
    return Budget.objects.create(
        **owner, period=Period.ONCE, limit_h=limit_h, mode=mode,
        starts_on=TODAY, ends_on=TODAY + timedelta(days=3),
    )  # fmt: skip


def used(of: Project, stage: Stage, hours: float, *, day: date = TODAY) -> None:
    PastUse.objects.create(
        project=of, flavor=stage.flavor, day=day, milli_s=round(hours * 3_600_000)
    )


def standing(*, at: datetime = AT) -> Standing:
    [found] = budgets.standings(budgets=Budget.objects.all(), at=at)
    return found


def states() -> dict[str, str]:
    return dict(Workload.objects.values_list("name", "state"))


def test_what_the_ledger_has_and_what_runs_since_add_up(stage: Stage) -> None:
    budget(stage.project, 100)
    stage.running(gpus=4)
    for minutes in (0, 30, 59, 61, 150):
        at = AT + timedelta(minutes=minutes)
        before = standing(at=at)
        assert before.used_milli_s == 4000 * 60 * minutes
        assert before.running_milli == 4000
        meter.tick(at=at + meter.LAG)
        assert standing(at=at).used_milli_s == before.used_milli_s
    assert PastUse.objects.exists()


def test_only_what_lies_in_its_period_counts(stage: Stage) -> None:
    budget(stage.project, 100)
    used(stage.project, stage, 50, day=TODAY - timedelta(days=1))
    used(stage.project, stage, 2)
    midnight = datetime.combine(TODAY, datetime.min.time(), UTC)
    stage.running(at=midnight - HOUR)
    Placement.objects.update(started_at=midnight - HOUR)
    assert standing(at=midnight + HOUR).used_milli_s == 3 * 3_600_000
    assert budgets.standings(budgets=Budget.objects.all(), at=midnight - HOUR) == []


def test_that_of_a_tenant_counts_all_below_it_and_nobody_elses(stage: Stage) -> None:
    lab = stage.project.tenant
    budget(lab, 100)
    deep = factories.project(factories.tenant("Robots", parent=lab), "Arms")
    other = factories.project(factories.tenant("Others"), "Other")
    for of, hours in ((stage.project, 1), (deep, 2), (other, 4)):
        used(of, stage, hours)
    assert standing().used_milli_s == 3 * 3_600_000


def test_a_slice_counts_as_its_part_of_a_device_and_cores_do_not(stage: Stage) -> None:
    budget(stage.project, 100)
    for flavor, milli_s in ((factories.mig_flavor(), 7000), (factories.cpu_flavor(), 9000)):
        PastUse.objects.create(project=stage.project, flavor=flavor, day=TODAY, milli_s=milli_s)
    assert standing().used_milli_s == 1000


@pytest.mark.parametrize(
    ("hours", "state"), [(79.99, "ok"), (80, "warned"), (99.99, "warned"), (100, "used")]
)
def test_it_warns_from_four_fifths_on(stage: Stage, hours: float, state: str) -> None:
    budget(stage.project, 100)
    used(stage.project, stage, hours)
    assert standing().state == state


def test_it_tells_when_it_is_used_up_at_the_present_rate(stage: Stage) -> None:
    made = budget(stage.project, 16)
    assert standing().lasts_until is None
    stage.running(gpus=8)
    assert standing().lasts_until == AT + 2 * HOUR
    Budget.objects.filter(id=made.id).update(limit_h=10_000)
    assert standing().lasts_until is None
    used(stage.project, stage, 20_000)
    assert standing().lasts_until == AT


def test_once_it_is_used_up_nothing_new_starts_and_a_larger_one_lets_it(stage: Stage) -> None:
    made = budget(stage.project.tenant, 10)
    used(stage.project, stage, 10)
    stage.submit()
    stage.cycle()
    reason = Workload.objects.get().reason
    assert reason is not None
    assert reason["code"] == "budget-used"
    assert reason["text"].startswith(
        "The budget of Vision Lab is used up: 10 of 10 GPU-hours. Nothing new starts on GPUs"
    )
    Budget.objects.filter(id=made.id).update(limit_h=11)
    stage.cycle()
    assert states() == {"train": "ADMITTED"}


def test_one_that_only_warns_keeps_nothing_waiting(stage: Stage) -> None:
    budget(stage.project, 0, BudgetMode.WARN)
    stage.submit()
    stage.cycle()
    assert states() == {"train": "ADMITTED"}
    assert load_here(at=AT).snapshot.budgets == ()


def test_in_safe_mode_what_starts_is_covered_beside_what_runs(stage: Stage) -> None:
    budget(stage.project, 10, BudgetMode.SAFE)
    stage.running("first", gpus=2, run_time_limit_s=4 * 3600)
    stage.submit("unknown")
    stage.submit("long", run_time_limit_s=3 * 3600)
    stage.submit("short", run_time_limit_s=2 * 3600)
    stage.cycle()
    assert states() == {
        "first": "RUNNING", "unknown": "PENDING", "long": "PENDING", "short": "ADMITTED",
    }  # fmt: skip
    codes = {w.name: w.reason and w.reason["code"] for w in Workload.objects.all()}
    assert (codes["unknown"], codes["long"]) == ("run-time-unknown", "budget-used")


def test_loading_them_takes_two_queries_whatever_their_number(stage: Stage) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as found:
            budgets.views(at=AT)
        return len(found)

    assert queries() == 1
    budget(stage.project, 1)
    budget(stage.project.tenant, 1)
    for n in range(5):
        budget(factories.project(stage.project.tenant, f"P{n}"), 1)
    assert queries() == 2
