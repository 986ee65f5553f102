"""check_invariants: silent on a sound database, and one sentence for each way to break it.

The database's own walls are taken down first: what they refuse has to be noticed all the same.
"""

from collections.abc import Callable
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.models import Sum

from clusters.port import PodPhase
from scheduler.loop.checking import invariants, rules
from scheduler.loop.checking.promises import RULES
from scheduler.loop.measuring import meter
from scheduler.models import Placement, Workload
from scheduler.services import workloads
from tenants.models import Quota, TenantQuota, UsageInterval
from tenants.services.quotas import record
from tests import factories
from tests.constraints.catalog import walls
from tests.factories import AT
from tests.flows.world import spec
from tests.scheduler.breaks import BREAKS, HOURS, over_fleet, over_limit, sql
from tests.scheduler.stage import LATER, Stage


def found() -> list[str]:
    return rules.told(invariants.violations_here())


@pytest.fixture
def lived(stage: Stage) -> Stage:
    """A day in the life: done, running over a full hour, preempted, lost, cancelled, waiting."""
    done = stage.running("done", gpus=2)
    stage.observe(
        stage.report(
            done.placements.get(),
            PodPhase.SUCCEEDED,
            started_at=done.started_at,
            finished_at=LATER,
        )
    )
    stage.running("runs", gpus=8, at=LATER)
    lost = stage.running("lost", count=2, at=LATER)
    stage.observe(stage.report(lost.placements.get(rank=0), PodPhase.FAILED, reason="NodeLost"))
    gone = stage.submit("gone")
    stage.cancel(gone)
    stage.dispatch()
    stage.relist()
    stage.submit("waits", gpus=8, count=2)
    stage.cycle(at=LATER)
    meter.tick(at=HOURS)
    return stage


@pytest.fixture
def unguarded(lived: Stage) -> Stage:
    """The same without a single wall, within the test's transaction."""
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        for table in {wall.table for wall in walls().values()}:
            cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
    for wall in walls().values():
        if wall.kind in {"unique", "exclude", "index", "check"}:
            wall.drop()
    return lived


def test_a_sound_database_breaks_no_promise(lived: Stage) -> None:
    assert set(Workload.objects.values_list("state", flat=True)) == {
        "SUCCEEDED", "RUNNING", "PENDING", "CANCELLED",
    }  # fmt: skip
    assert UsageInterval.objects.exists()
    assert found() == []


@pytest.mark.parametrize("act", BREAKS, ids=[act.__name__ for act in BREAKS])
def test_it_notices(act: Callable[[], None], unguarded: Stage) -> None:
    act()
    assert any(BREAKS[act] in sentence for sentence in found()), found()


@pytest.mark.parametrize(
    ("cut", "before_s", "breaks"),
    [
        pytest.param(over_limit, 0, False, id="limit, what was there before"),
        pytest.param(over_limit, 50, False, id="limit, a cut that waited for the cycle"),
        pytest.param(over_limit, 70, True, id="limit, what came after"),
        pytest.param(over_fleet, 0, False, id="fleet, what was there before"),
        pytest.param(over_fleet, 50, False, id="fleet, a cut that waited for the cycle"),
        pytest.param(over_fleet, 70, True, id="fleet, what came after"),
    ],
)
def test_a_quota_that_was_cut_may_be_passed_by_what_was_there_before(
    cut: Callable[[], None], before_s: int, breaks: bool, unguarded: Stage
) -> None:
    cut()
    quota = Quota.objects.get()
    newest = Placement.objects.filter(released_at=None).latest("created_at").created_at
    at = newest - timedelta(seconds=before_s)
    record(unguarded.actor, quota, quota, action="quota.set", at=at)
    assert bool(found()) is breaks


def test_what_a_project_does_not_lend_is_its_own_even_after_a_cut_elsewhere(stage: Stage) -> None:
    """It is held beyond what the fleet has left, and breaks nothing."""
    stage.running("borrows", gpus=8)
    cut = Quota.objects.get()
    Quota.objects.update(nominal_milli=1000)
    cut.refresh_from_db()
    record(stage.actor, cut, cut, action="quota.set", at=AT)
    other = factories.project(stage.project.tenant, "Other")
    factories.quota(other, stage.flavor, 8000, lending_limit_milli=0)
    [own] = workloads.submit(
        actor=stage.actor, project=other, specs=[spec(gpus=8, flavor="h100")], at=LATER
    )
    stage.cycle(at=LATER)
    own.refresh_from_db()
    assert own.state == "ADMITTED"
    assert Quota.objects.aggregate(held=Sum("used_milli"), of=Sum("nominal_milli")) == {
        "held": 16_000, "of": 9000,
    }  # fmt: skip
    assert found() == []


def test_what_a_tenant_has_beside_its_projects_counts(unguarded: Stage) -> None:
    over_fleet()
    own = Quota.objects.get()
    assert found() != []
    TenantQuota.objects.create(tenant=own.project.tenant, flavor=own.flavor, nominal_milli=1000)
    assert found() == []


def test_what_a_tenant_does_not_lend_counts_neither_as_had_nor_as_held_above_it(
    unguarded: Stage,
) -> None:
    own = Quota.objects.get()
    Quota.objects.update(nominal_milli=0, borrowing_limit_milli=None)
    TenantQuota.objects.create(
        tenant=own.project.tenant, flavor=own.flavor, nominal_milli=8000, lending_limit_milli=0
    )
    assert found() == []


def test_a_flood_of_violations_is_told_in_few_sentences(
    unguarded: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "TOLD", 2)
    sql("UPDATE scheduler_workload SET version = version + 7")
    told = [line for line in found() if "P5" in line]
    assert len(told) == 3
    assert told[-1].endswith(f"and {Workload.objects.count() - 2} more like the last.")
    monkeypatch.setattr(rules, "MOST", 3)
    monkeypatch.setattr(invariants, "MOST", 3)
    assert found()[-1].endswith("and at least 2 more like the last.")


def test_each_rule_has_a_name_of_its_own() -> None:
    """By which an operator's acceptance outlasts the sentence."""
    known = [*RULES, invariants.AT_ONCE]
    assert len({(rule.about, rule.name) for rule in known}) == len(known)
    assert all(0 < rule.ids <= sum(c == "{" for c in rule.sentence) for rule in known)


def test_the_command_says_so_by_its_exit_status(committed: Stage) -> None:
    committed.submit()
    out = StringIO()
    call_command("check_invariants", stdout=out)
    assert "Every promise holds" in out.getvalue()
    Quota.objects.update(used_milli=1)
    err = StringIO()
    with pytest.raises(SystemExit) as status:
        call_command("check_invariants", stderr=err)
    assert status.value.code == 1
    assert "P2" in err.getvalue()
