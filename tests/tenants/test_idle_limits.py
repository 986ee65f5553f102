"""For how long work may be idle: who says so, and whose word holds."""

from itertools import product
from math import inf

import pytest
from pytest_django import Settings

from controlplane.audit.models import AuditEvent
from controlplane.kernel.errors import Invalid, NotAllowed, NotFound
from tenants.access import actor_for
from tenants.models import MAX_IDLE_TIMEOUT_S, Project, Role, Tenant, User
from tenants.selectors import idle_limits as selectors
from tenants.selectors import policies
from tenants.selectors.idle_limits import HeldLimit, IdleLimit
from tenants.services import idle_limits, projects
from tests import factories
from tests.conftest import Cast

HOUR = IdleLimit(3600, 600)


def of_project(cast: Cast, limit: IdleLimit | None, by: User | None = None) -> Project:
    return idle_limits.set_for_project(
        actor=actor_for(user=by or cast.oz), project=cast.detection, limit=limit, at=factories.AT
    )


def of_tenant(of: Tenant, limit: IdleLimit | None, by: User) -> Tenant:
    return idle_limits.set_for_tenant(
        actor=actor_for(user=by), tenant=of, limit=limit, at=factories.AT
    )


@pytest.fixture
def arms(cast: Cast) -> Project:
    """Below Robots, which is a department of Vision Lab."""
    return factories.project(factories.tenant("Robots", parent=cast.vision), "Arms")


def say(of: Project | Tenant, seconds: int | None, warning_s: int = 0) -> None:
    """Also what nobody may say there, but may have said before it was moved there."""
    warned = None if seconds is None else min(warning_s, seconds)
    type(of).objects.filter(id=of.id).update(idle_timeout_s=seconds, idle_warning_s=warned)


def test_the_shortest_that_it_or_any_above_it_says_holds(
    cast: Cast, arms: Project, settings: Settings
) -> None:
    """Never is the longest, and the fleet's is for where nobody says anything."""
    settings.BERTH_IDLE_TIMEOUT_S, settings.BERTH_IDLE_WARNING_S = 7, 1
    chain: tuple[Project | Tenant, ...] = (cast.vision, arms.tenant, arms)
    for said in product((None, 0, 60, 120), repeat=3):
        for place, seconds in zip(chain, said, strict=True):
            say(place, seconds)
        for nth, place in enumerate(chain, start=1):
            there = [each or inf for each in said[:nth] if each is not None]
            least = min(there, default=7)
            found = selectors.in_force(of=place)
            assert found.limit.timeout_s == (0 if least == inf else least), (said, nth)
            own = dict(zip(("Vision Lab", "Robots", "Arms"), said, strict=True)).get(found.by)
            assert (own == found.limit.timeout_s) if there else (found.by == ""), (said, nth)


def test_of_two_alike_the_nearer_says_how_long_before_it_is_told(
    cast: Cast, arms: Project
) -> None:
    say(cast.vision, 3600, 600)
    assert selectors.in_force(of=arms) == HeldLimit(HOUR, "Vision Lab")
    say(arms, 3600, 60)
    assert selectors.in_force(of=arms) == HeldLimit(IdleLimit(3600, 60), "Arms")
    say(arms, 3601, 60)
    assert selectors.in_force(of=arms) == HeldLimit(HOUR, "Vision Lab")


def test_what_comes_below_a_shorter_limit_has_that(cast: Cast, arms: Project) -> None:
    of_tenant(cast.speech, HOUR, cast.oz)
    say(arms, 0)
    factories.member(cast.ada, Role.OWNER, at=cast.speech)
    ada = actor_for(user=cast.ada)
    moved = projects.move(actor=ada, project=arms, tenant=cast.speech, at=factories.AT)
    assert selectors.in_force(of=moved) == HeldLimit(HOUR, "Speech Lab")
    told = [(each.rule, each.value, each.by) for each in policies.of_running(moved)]
    assert told == [("idle_timeout_s", 3600, "Speech Lab")]


def test_nobody_says_longer_than_any_that_is_above(cast: Cast, arms: Project) -> None:
    say(cast.vision, 60)
    say(arms.tenant, 120)  # as before it was moved there
    with pytest.raises(Invalid, match="Vision Lab says 60 s, and who is below it"):
        idle_limits.set_for_project(
            actor=actor_for(user=cast.oz), project=arms, limit=IdleLimit(61, 0), at=factories.AT
        )


def test_nobody_says_longer_than_who_is_above(cast: Cast) -> None:
    """Never is the longest."""
    of_tenant(cast.vision, HOUR, cast.oz)
    department = factories.tenant("Robots", parent=cast.vision)
    for longer in (IdleLimit(3601, 0), IdleLimit(0, 0)):
        with pytest.raises(Invalid, match="Vision Lab says 3,600 s, and who is below") as raised:
            of_project(cast, longer)
        assert (raised.value.pointer, raised.value.code) == ("/idle_timeout_s", "looser")
        with pytest.raises(Invalid, match="Vision Lab says 3,600 s"):
            of_tenant(department, longer, cast.oz)
    assert of_project(cast, HOUR).idle_timeout_s == 3600


def test_where_who_is_above_says_never_anything_is_shorter(cast: Cast) -> None:
    of_tenant(cast.vision, IdleLimit(0, 0), cast.oz)
    assert of_project(cast, HOUR).idle_timeout_s == 3600
    of_tenant(cast.vision, IdleLimit(0, 0), cast.oz)  # and it may say so again


@pytest.mark.parametrize("said", [HOUR, IdleLimit(0, 0)])
def test_nobody_is_told_shorter_than_who_is_below_says(cast: Cast, said: IdleLimit) -> None:
    of_project(cast, said)
    with pytest.raises(Invalid, match="Detection, which is below it, says") as raised:
        of_tenant(cast.vision, IdleLimit(60, 0), cast.oz)
    assert raised.value.code == "looser-below"
    of_project(cast, None)
    assert of_tenant(cast.vision, IdleLimit(60, 0), cast.oz).idle_timeout_s == 60


def test_what_is_said_is_written_down(cast: Cast) -> None:
    of_project(cast, HOUR)
    of_project(cast, None)
    of_tenant(cast.vision, HOUR, cast.oz)
    said = {"idle_timeout_s": 3600, "idle_warning_s": 600}
    nothing = dict.fromkeys(said)
    events = AuditEvent.objects.order_by("id")
    assert [(e.action, e.before, e.after) for e in events] == [
        ("project.idle-limit", nothing, said),
        ("project.idle-limit", said, nothing),
        ("tenant.idle-limit", nothing, said),
    ]
    assert {event.tenant_id for event in events} == {cast.vision.id}


@pytest.mark.parametrize(
    ("limit", "field", "told"),
    [
        (IdleLimit(-1, 0), "timeout", "is not between 0, which is never, and 2592000 s"),
        (IdleLimit(MAX_IDLE_TIMEOUT_S + 1, 0), "timeout", "is not between 0, which is never"),
        (IdleLimit(60, -1), "warning", "-1 s is not between 0 and the time-out, 60 s"),
        (IdleLimit(60, 61), "warning", "61 s is not between 0 and the time-out, 60 s"),
    ],
)
def test_a_limit_that_cannot_be_changes_nothing(
    cast: Cast, limit: IdleLimit, field: str, told: str
) -> None:
    for refused in (
        lambda: of_project(cast, limit),
        lambda: of_tenant(cast.vision, limit, cast.oz),
    ):
        with pytest.raises(Invalid, match=told) as raised:
            refused()
        assert (raised.value.pointer, raised.value.code) == (f"/idle_{field}_s", "out-of-range")
    assert Project.objects.get(id=cast.detection.id).idle_timeout_s is None
    assert Tenant.objects.get(id=cast.vision.id).idle_timeout_s is None


def test_it_is_for_those_who_decide_about_quota(cast: Cast) -> None:
    otto = factories.user("otto")
    factories.member(otto, Role.OPERATOR, at=cast.vision)
    of_project(cast, HOUR, by=otto)
    of_tenant(cast.vision, HOUR, by=otto)
    for user in (cast.ada, cast.ben, cast.vik, cast.pia):
        with pytest.raises(NotAllowed, match="edit-quota"):
            of_project(cast, None, by=user)
        with pytest.raises(NotAllowed, match="edit-quota"):
            of_tenant(cast.vision, None, by=user)
    with pytest.raises(NotFound):
        of_project(cast, None, by=cast.cleo)
    with pytest.raises(NotFound):
        of_tenant(cast.vision, None, by=cast.cleo)
