"""A quota changes: the walls of its project follow in every cluster, without a start there."""

from datetime import timedelta

from clusters.port import Fault
from scheduler import tasks
from scheduler.loop import confine
from scheduler.models import Confinement
from scheduler.selectors import confinements
from tenants.models import Quota
from tests.scheduler.stage import Stage
from tests.scheduler.test_confine import SOON, look, set_quota, wall

SECOND = timedelta(seconds=1)


def test_the_wall_follows_a_quota_that_was_raised(stage: Stage) -> None:
    stage.started()
    assert confine.follow() == 0
    assert look(stage, at=SOON - SECOND) == 0
    set_quota(4000)
    tasks.follow_quotas()
    assert look(stage, at=SOON - SECOND) == 1
    assert wall(stage) == {"nvidia.com/gpu": 4}
    assert confine.follow() == 0


def test_what_failed_waits_for_its_turn(stage: Stage) -> None:
    stage.started()
    set_quota(4000)
    assert confine.follow() == 1
    stage.port.fails("confine", Fault.SERVER)
    look(stage)
    assert Confinement.objects.get().error
    assert confine.follow() == 0


def test_a_change_is_told_until_it_is_applied(stage: Stage) -> None:
    stage.started()
    project = stage.project.id
    row = Confinement.objects.get()
    assert row.checked_at
    changed_at = row.checked_at + SECOND

    def lagging(at: float) -> list[tuple[str, str]]:
        found = confinements.lagging(
            changed={project: changed_at}, at=changed_at + timedelta(seconds=at)
        )
        return [(each.cluster, each.error) for each in found.get(project, ())]

    name = stage.cluster.name
    assert lagging(1) == [(name, "")]  # nobody has compared it yet
    assert lagging(31) == []  # it was, and was as wanted
    Quota.objects.update(nominal_milli=4000, borrowing_limit_milli=0)
    confine.follow()
    assert lagging(31) == [(name, "")]
    stage.port.fails("confine", Fault.SERVER)
    look(stage, at=changed_at + SECOND)
    [(_, error)] = lagging(31)
    assert error
    stage.port.trouble.clear()
    look(stage, at=changed_at + confine.EVERY + 2 * SECOND)
    assert lagging(1) == []
