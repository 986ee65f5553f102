"""A quota changes: the walls of its project follow in every cluster, without a start there."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from uuid import UUID

import pytest

from clusters.models import Cluster
from clusters.port import Fault
from scheduler import tasks
from scheduler.loop.dispatching import confine
from scheduler.models import Confinement
from scheduler.selectors import confinements
from scheduler.selectors.confinements import Change
from tenants.access import actor_for
from tenants.models import Role, User
from tenants.services import quotas
from tenants.services.quotas import Amounts
from tests import factories
from tests.factories import AT
from tests.scheduler.stage import Stage
from tests.scheduler.test_confine import NEXT, SOON, look, set_quota, wall


def test_the_wall_follows_a_quota_that_was_raised(stage: Stage) -> None:
    stage.started()
    assert confine.follow() == 0
    assert look(stage, at=SOON) == 0
    set_quota(4000)
    tasks.follow_quotas()
    assert look(stage, at=SOON) == 1
    assert wall(stage) == {"nvidia.com/gpu": 4}
    assert confine.follow() == 0


def test_what_failed_is_tried_again_within_the_minute(stage: Stage) -> None:
    stage.started()
    set_quota(4000)
    assert confine.follow() == 1
    stage.port.fails("confine", Fault.SERVER, times=2)
    assert look(stage) == 0
    assert Confinement.objects.get().error
    assert confine.follow() == 0
    second = timedelta(seconds=1)
    first, then = confine.AGAIN[:2]
    assert look(stage, at=NEXT + first) == 0  # not before that has passed
    assert stage.port.calls["confine"] == 2
    assert look(stage, at=NEXT + first + second) == 0  # and fails again
    assert look(stage, at=NEXT + first + second + then + second) == 1
    assert wall(stage) == {"nvidia.com/gpu": 4}
    row = Confinement.objects.get()
    assert (row.error, row.failed_count) == ("", 0)
    assert first + then + 2 * second < timedelta(minutes=1)


def test_what_fails_again_and_again_is_tried_less_and_less_often(stage: Stage) -> None:
    stage.started()
    set_quota(4000)
    confine.follow()
    stage.port.fails("confine", Fault.SERVER)
    second, at = timedelta(seconds=1), NEXT
    for wait in (*confine.AGAIN, confine.EVERY, confine.EVERY):
        tried = stage.port.calls["confine"]
        look(stage, at=at)
        assert stage.port.calls["confine"] == tried + 1
        look(stage, at=at + wait)
        assert stage.port.calls["confine"] == tried + 1
        at += wait + second


def test_a_change_is_followed_though_a_look_has_failed(stage: Stage) -> None:
    Cluster.objects.update(repair_drift=False)
    stage.started()
    stage.port.fails("look", Fault.SERVER, times=1)
    look(stage)
    assert Confinement.objects.get().error
    assert confine.follow() == 0
    set_quota(4000)
    assert confine.follow() == 1
    assert look(stage) == 1
    assert wall(stage) == {"nvidia.com/gpu": 4}


def test_a_look_alone_that_failed_waits_for_its_turn(stage: Stage) -> None:
    Cluster.objects.update(repair_drift=False)
    stage.started()
    stage.port.fails("look", Fault.SERVER, times=1)
    assert look(stage) == 0
    assert look(stage, at=NEXT + confine.EVERY) == 0
    assert Confinement.objects.get().error
    assert look(stage, at=NEXT + 2 * confine.EVERY) == 1
    assert not Confinement.objects.get().error


def set_by_hand(stage: Stage, milli: int) -> Change:
    oz, made = User.objects.get_or_create(username="oz")
    if made:
        factories.member(oz, Role.OPERATOR)
    quota = quotas.set_quota(
        actor=actor_for(user=oz),
        project=stage.project,
        flavor=stage.flavor,
        amounts=Amounts(nominal_milli=milli, borrowing_limit_milli=0),
        at=AT,
    )
    return Change(stage.project.id, stage.flavor.id, quota.version)


def lagging(change: Change) -> list[tuple[str, str]]:
    [found] = confinements.lagging(changes=[change]).values()
    return [(each.cluster, each.error) for each in found]


def test_a_change_is_told_until_it_is_applied(stage: Stage) -> None:
    stage.started()
    name = stage.cluster.name
    changed = set_by_hand(stage, 4000)
    assert lagging(changed) == [(name, "")]  # nobody has compared it yet, however long ago it was
    confine.follow()
    assert lagging(changed) == [(name, "")]
    stage.port.fails("confine", Fault.SERVER)
    look(stage)
    [(_, error)] = lagging(changed)
    assert error
    stage.port.trouble.clear()
    look(stage, at=NEXT + 2 * confine.AGAIN[0])
    assert lagging(changed) == []


def test_a_change_is_applied_once_it_was_compared_and_wants_nothing_else(stage: Stage) -> None:
    stage.started()
    set_by_hand(stage, 40_000)
    confine.follow()
    look(stage)
    changed = set_by_hand(stage, 50_000)  # of 16 that are there
    assert lagging(changed) == [(stage.cluster.name, "")]
    assert confine.follow() == 0
    assert lagging(changed) == []
    cpu = factories.quota(stage.project, factories.cpu_flavor())  # of no wall at all
    told = Change(stage.project.id, cpu.flavor_id, cpu.version)
    assert lagging(told) == [(stage.cluster.name, "")]
    confine.follow()
    assert lagging(told) == []


def test_a_change_in_the_midst_of_a_look_waits_for_the_next(stage: Stage) -> None:
    stage.started()
    first = set_by_hand(stage, 4000)
    confine.follow()
    later: list[Change] = []

    def meanwhile() -> datetime:
        """Asked for once before the quotas are read, then after."""
        if Confinement.objects.filter(digest="").exists() and not later:
            later.append(set_by_hand(stage, 6000))
        return NEXT

    confine.check(port=stage.port, cluster_id=stage.cluster.id, at=meanwhile)
    assert wall(stage) == {"nvidia.com/gpu": 4}
    assert lagging(first) == []
    assert lagging(later[0]) == [(stage.cluster.name, "")]


def test_what_was_applied_stays_so_when_something_else_changes(stage: Stage) -> None:
    stage.started()
    first = set_by_hand(stage, 4000)
    confine.follow()
    look(stage)
    later = set_by_hand(stage, 6000)
    stage.port.fails("confine", Fault.SERVER)
    confine.follow()
    look(stage, at=NEXT + 2 * confine.EVERY)
    assert lagging(first) == []
    [(_, error)] = lagging(later)
    assert error


def test_what_is_applied_in_the_midst_of_a_comparison_is_not_taken_for_compared(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.started()
    changed = set_by_hand(stage, 50_000)
    wanted = confine._wanted

    def meanwhile(cluster_id: UUID, projects: Mapping[UUID, str]) -> dict[UUID, confine.Due]:
        found = wanted(cluster_id, projects)
        Confinement.objects.update(digest="of something else")
        return found

    monkeypatch.setattr(confine, "_wanted", meanwhile)
    confine.follow()
    assert lagging(changed) == [(stage.cluster.name, "")]
    monkeypatch.undo()
    confine.follow()
    look(stage)
    assert lagging(changed) == []


def test_on_an_accelerated_clock_a_cluster_is_looked_at_as_often_in_the_real_world(
    stage: Stage,
) -> None:
    stage.started()

    def taken(at: datetime) -> int:
        of = stage.cluster.id
        return confine.check(port=stage.port, cluster_id=of, at=lambda: at, speed=1000).taken

    assert taken(AT + 999 * confine.EVERY) == 0
    assert taken(AT + 1001 * confine.EVERY) == 1
