"""A project whose quota nobody confirmed: nothing of it starts, and what runs goes on."""

from datetime import timedelta

import pytest

from controlplane.counts import Counts
from scheduler.loop.preparing import drain
from scheduler.models import Workload
from tenants.access import actor_for
from tenants.models import Project, Role
from tenants.services import reviews
from tests import factories
from tests.factories import AT
from tests.scheduler.stage import LATER, Stage


@pytest.fixture(autouse=True)
def confirmed(stage: Stage) -> None:
    Project.objects.update(quota_confirmed_at=AT - timedelta(days=365))


def freeze(stage: Stage) -> None:
    Project.objects.filter(id=stage.project.id).update(quota_frozen_at=AT)


def confirm(stage: Stage) -> None:
    oz = factories.user("oz")
    factories.member(oz, Role.OPERATOR)
    reviews.confirm(actor=actor_for(user=oz), project=stage.project, at=LATER)


def states() -> dict[str, str]:
    return dict(Workload.objects.values_list("name", "state"))


def test_what_runs_goes_on_and_nothing_starts_until_somebody_confirms(stage: Stage) -> None:
    stage.running("runs")
    freeze(stage)
    waits = stage.submit("waits")
    stage.cycle()
    assert drain.evict(at=LATER) == 0
    assert states() == {"runs": "RUNNING", "waits": "PENDING"}
    waits.refresh_from_db()
    assert waits.reason is not None
    assert waits.reason["code"] == "queue-held"
    assert waits.reason["text"] == (
        "Held, so that nothing starts until it is opened again:"
        f" the quota of project {stage.project.name}, which nobody confirmed."
    )
    confirm(stage)
    stage.cycle()
    assert states() == {"runs": "RUNNING", "waits": "ADMITTED"}


def test_what_was_planned_before_is_not_applied(stage: Stage) -> None:
    stage.submit("waits")
    decided = stage.decide()
    freeze(stage)
    stage.carry_out(*decided)
    assert states() == {"waits": "PENDING"}


def test_it_is_counted(stage: Stage) -> None:
    freeze(stage)
    [closed] = [each for each in Counts().collect() if each.name == "berth_queues_closed"]
    found = {tuple(of.labels.values()): of.value for of in closed.samples}
    assert found["project", "frozen"] == 1
    assert found["project", "held"] == 0
