"""Reservations in the database, as the loop plans by them."""

from datetime import timedelta

from scheduler.models import Workload
from scheduler.selectors.load import load_here
from tests import factories
from tests.factories import AT
from tests.scheduler.stage import Stage

HOUR = timedelta(hours=1)


def states() -> dict[str, str]:
    return dict(Workload.objects.values_list("name", "state"))


def test_what_is_over_or_cancelled_is_not_loaded(stage: Stage) -> None:
    of = stage.project, stage.flavor, stage.ada
    factories.reservation(*of, starts_at=AT - HOUR, ends_at=AT)
    factories.reservation(*of, starts_at=AT, ends_at=AT + HOUR, cancelled_at=AT)
    kept = factories.reservation(*of, starts_at=AT + HOUR, ends_at=AT + 2 * HOUR)
    [found] = load_here(at=AT).snapshot.reservations
    assert (found.project, found.flavor) == (str(kept.project_id), str(kept.flavor_id))
    assert (found.amount_milli, found.ends_at - found.starts_at) == (1000, 3600)
    assert found.starts_at == int(AT.timestamp()) + 3600


def test_one_of_a_tenant_is_for_all_below_it(stage: Stage) -> None:
    department = factories.tenant("Department", parent=stage.project.tenant)
    below = factories.project(department, "Below")
    beside = factories.project(factories.tenant("Elsewhere"), "Beside")
    for project in (below, beside):
        factories.quota(project, stage.flavor, 0, borrowing_limit_milli=None)
    factories.reservation(
        stage.project.tenant, stage.flavor, stage.ada, amount_milli=16_000,
        starts_at=AT, ends_at=AT + HOUR,
    )  # fmt: skip
    [found] = load_here(at=AT).snapshot.reservations
    assert (found.project, found.cohort) == (None, str(stage.project.tenant_id))
    for project in (beside, below, stage.project):
        factories.workload(project, stage.ada, [stage.flavor], project.name)
    stage.cycle()
    assert states() == {"Beside": "PENDING", "Below": "ADMITTED", stage.project.name: "ADMITTED"}


def test_only_what_ends_before_the_window_starts_on_what_is_kept(stage: Stage) -> None:
    other = factories.project(stage.project.tenant, "Other")
    factories.quota(other, stage.flavor, 0, borrowing_limit_milli=None)
    factories.reservation(
        other, stage.flavor, stage.ada, amount_milli=16_000,
        starts_at=AT + HOUR, ends_at=AT + 2 * HOUR,
    )  # fmt: skip
    stage.submit("long")
    stage.submit("short", run_time_limit_s=3600)
    stage.cycle()
    assert states() == {"long": "PENDING", "short": "ADMITTED"}
    reason = Workload.objects.get(name="long").reason
    assert reason is not None
    assert reason["code"] == "reserved"
    assert reason["text"].startswith("It would run into a reservation: in 60 min 16 h100 are kept")
    stage.cycle(at=AT + 2 * HOUR)
    assert states()["long"] == "ADMITTED"
