"""How long work runs before it may be evicted: who says so, and whose word holds."""

from itertools import product

import pytest
from pytest_django import Settings

from controlplane.audit.models import AuditEvent
from controlplane.kernel.errors import Invalid, NotAllowed, NotFound
from tenants.access import actor_for
from tenants.models import MAX_MIN_RUN_TIME_S, Project, Role, Tenant, User
from tenants.selectors import policies
from tenants.selectors import run_times as selectors
from tenants.selectors.run_times import HeldTime
from tenants.services import projects, run_times
from tests import factories
from tests.conftest import Cast


def of_project(cast: Cast, seconds: int | None, by: User | None = None) -> Project:
    return run_times.set_for_project(
        actor=actor_for(user=by or cast.oz),
        project=cast.detection,
        seconds=seconds,
        at=factories.AT,
    )


def of_tenant(of: Tenant, seconds: int | None, by: User) -> Tenant:
    return run_times.set_for_tenant(
        actor=actor_for(user=by), tenant=of, seconds=seconds, at=factories.AT
    )


def say(of: Project | Tenant, seconds: int | None) -> None:
    """Also what nobody may say there, but may have said before it was moved there."""
    type(of).objects.filter(id=of.id).update(min_run_time_s=seconds)


def test_the_shortest_that_it_or_any_above_it_says_holds(cast: Cast, settings: Settings) -> None:
    """The fleet's is for where nobody says anything."""
    settings.BERTH_MIN_RUN_TIME_S = 7
    robots = factories.tenant("Robots", parent=cast.vision)
    arms = factories.project(robots, "Arms")
    chain: tuple[Project | Tenant, ...] = (cast.vision, robots, arms)
    for said in product((None, 0, 60, 120), repeat=3):
        for place, seconds in zip(chain, said, strict=True):
            say(place, seconds)
        for nth, place in enumerate(chain, start=1):
            there = [each for each in said[:nth] if each is not None]
            found = selectors.in_force(of=place)
            assert found.seconds == min(there, default=7), (said, nth)
            own = dict(zip(("Vision Lab", "Robots", "Arms"), said, strict=True)).get(found.by)
            assert (own == found.seconds) if there else (found.by == ""), (said, nth)


def test_what_comes_below_a_shorter_time_has_that(cast: Cast) -> None:
    of_tenant(cast.speech, 60, cast.oz)
    of_project(cast, 600)
    factories.member(cast.ada, Role.OWNER, at=cast.speech)
    ada = actor_for(user=cast.ada)
    moved = projects.move(actor=ada, project=cast.detection, tenant=cast.speech, at=factories.AT)
    assert selectors.in_force(of=moved) == HeldTime(60, "Speech Lab")
    told = [(each.rule, each.value, each.by) for each in policies.of_running(moved)]
    assert told == [("min_run_time_s", 60, "Speech Lab")]


def test_nobody_says_more_than_any_that_is_above(cast: Cast) -> None:
    robots = factories.tenant("Robots", parent=cast.vision)
    say(cast.vision, 60)
    say(robots, 120)  # as before it was moved there
    arms = factories.project(robots, "Arms")
    with pytest.raises(Invalid, match="Vision Lab says 60 s, and who is below it"):
        run_times.set_for_project(
            actor=actor_for(user=cast.oz), project=arms, seconds=61, at=factories.AT
        )


def test_what_is_said_is_written_down(cast: Cast) -> None:
    of_project(cast, 300)
    of_project(cast, None)
    of_tenant(cast.vision, 60, cast.oz)
    events = AuditEvent.objects.order_by("id")
    assert [(e.action, e.before, e.after) for e in events] == [
        ("project.min-run-time", {"min_run_time_s": None}, {"min_run_time_s": 300}),
        ("project.min-run-time", {"min_run_time_s": 300}, {"min_run_time_s": None}),
        ("tenant.min-run-time", {"min_run_time_s": None}, {"min_run_time_s": 60}),
    ]
    assert {event.tenant_id for event in events} == {cast.vision.id}


@pytest.mark.parametrize("seconds", [-1, MAX_MIN_RUN_TIME_S + 1])
def test_a_time_out_of_range_changes_nothing(cast: Cast, seconds: int) -> None:
    for refused in (
        lambda: of_project(cast, seconds),
        lambda: of_tenant(cast.vision, seconds, cast.oz),
    ):
        with pytest.raises(Invalid, match="is not between 0 and 86400 s") as raised:
            refused()
        assert (raised.value.pointer, raised.value.code) == ("/min_run_time_s", "out-of-range")
    assert of_project(cast, MAX_MIN_RUN_TIME_S).min_run_time_s == MAX_MIN_RUN_TIME_S
    of_project(cast, None)
    assert of_tenant(cast.vision, 0, cast.oz).min_run_time_s == 0


def test_nobody_says_more_than_who_is_above(cast: Cast) -> None:
    of_tenant(cast.vision, 60, cast.oz)
    department = factories.tenant("Robots", parent=cast.vision)
    for say in (
        lambda: of_project(cast, 61),
        lambda: of_tenant(department, 61, cast.oz),
    ):
        with pytest.raises(Invalid, match="Vision Lab says 60 s, and who is below it") as raised:
            say()
        assert (raised.value.pointer, raised.value.code) == ("/min_run_time_s", "looser")
    assert of_project(cast, 60).min_run_time_s == 60
    assert of_tenant(department, 0, cast.oz).min_run_time_s == 0


def test_nobody_is_told_less_than_who_is_below_says(cast: Cast) -> None:
    of_project(cast, 60)
    with pytest.raises(Invalid, match="Detection, which is below it, says 60 s") as raised:
        of_tenant(cast.vision, 59, cast.oz)
    assert (raised.value.pointer, raised.value.code) == ("/min_run_time_s", "looser-below")
    assert of_tenant(cast.vision, 60, cast.oz).min_run_time_s == 60


def test_it_is_for_those_who_decide_about_quota(cast: Cast) -> None:
    """A project could else keep for itself what others lend it."""
    otto = factories.user("otto")
    factories.member(otto, Role.OPERATOR, at=cast.vision)
    of_project(cast, 60, by=otto)
    of_tenant(cast.vision, 60, by=otto)
    for user in (cast.ada, cast.ben, cast.vik, cast.pia):
        with pytest.raises(NotAllowed, match="edit-quota"):
            of_project(cast, 1, by=user)
        with pytest.raises(NotAllowed, match="edit-quota"):
            of_tenant(cast.vision, 1, by=user)
    with pytest.raises(NotFound):
        of_project(cast, 1, by=cast.cleo)
    with pytest.raises(NotFound):
        of_tenant(cast.vision, 1, by=cast.cleo)
