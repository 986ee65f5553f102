"""A large request is agreed to by one level after the other, each time by another person."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest

from clusters.models import Flavor
from controlplane.audit.models import AuditEvent
from controlplane.kernel.errors import Invalid, NotAllowed, NotFound
from tenants.access import Actor, actor_for
from tenants.approval import Level
from tenants.models import (
    ApprovalRule,
    Project,
    Quota,
    QuotaRequest,
    RequestStep,
    Role,
    Scope,
    Tenant,
    User,
)
from tenants.selectors import requests as selectors
from tenants.services import approval_rules, requests, steps
from tenants.services.grants import Allotment
from tenants.services.quotas import VersionMismatch
from tenants.services.requests import Given, Seen
from tests import factories
from tests.conftest import Cast
from tests.tenants.test_quota_requests import ask

AT = factories.AT


@pytest.fixture
def h100(db: None) -> Flavor:
    return factories.flavor()


@pytest.fixture
def people(cast: Cast) -> dict[str, User]:
    """lea approves for Detection, dep for Vision Lab, pia for the fleet; all by nobody's gift."""
    places: dict[str, Tenant | Project] = {"lea": cast.detection, "dep": cast.vision}
    made = {name: factories.user(name) for name in places}
    for name, place in places.items():
        factories.member(made[name], Role.APPROVER, at=place)
    return made | {"pia": cast.pia}


def actor(user: User) -> Actor:
    return actor_for(user=user)


def rule(by: User, level: Level, gpus: int, tenant: Tenant | None = None) -> None:
    approval_rules.set_rule(
        actor=actor(by), tenant=tenant, level=level, from_milli=gpus * 1000, at=AT
    )


@pytest.fixture
def rules(cast: Cast) -> None:
    """From 8 on the department agrees too, from 32 the platform."""
    rule(cast.oz, Level.TENANT, 8)
    rule(cast.oz, Level.FLEET, 32)


def agree(
    by: User, asked: QuotaRequest, nominal_milli: int | None = None, note: str = ""
) -> QuotaRequest:
    given = None
    if nominal_milli is not None:
        given = Given(nominal_milli=nominal_milli, until_at=asked.until_at)
    return requests.grant(actor=actor(by), request=asked, given=given, note=note, at=AT)


def held(project: Project) -> int:
    quota = Quota.objects.filter(project=project).first()
    return quota.nominal_milli if quota else 0


@contextmanager
def nothing_said(asked: QuotaRequest) -> Iterator[None]:
    """And nothing changed."""
    before = RequestStep.objects.filter(request=asked).count()
    yield
    assert RequestStep.objects.filter(request=asked).count() == before
    asked.refresh_from_db()
    assert asked.decision == ""


@pytest.mark.usefixtures("rules")
def test_the_last_of_them_changes_the_quota(
    cast: Cast, h100: Flavor, people: dict[str, User]
) -> None:
    asked = ask(cast, h100, 32_000)
    for name in ("lea", "dep"):
        assert agree(people[name], asked).decision == ""
        assert held(cast.detection) == 0
    assert agree(people["pia"], asked).decision == "granted"
    assert held(cast.detection) == 32_000
    said = asked.taken_steps.order_by("position").values_list("level", "decided_by__username")
    assert list(said) == [("project", "lea"), ("tenant", "dep"), ("fleet", "pia")]
    events = AuditEvent.objects.filter(action__startswith="request.").order_by("id")
    assert [(event.action, event.actor_name) for event in events] == [
        ("request.open", "ben"),
        ("request.agreed", "lea"),
        ("request.agreed", "dep"),
        ("request.granted", "pia"),
    ]
    assert (events[2].after["level"], events[2].after["position"]) == ("tenant", 2)


@pytest.mark.usefixtures("rules")
def test_a_small_one_takes_one_step(cast: Cast, h100: Flavor, people: dict[str, User]) -> None:
    assert agree(people["lea"], ask(cast, h100, 7000)).decision == "granted"


@pytest.mark.usefixtures("rules")
def test_in_parts_it_is_no_smaller(cast: Cast, h100: Flavor, people: dict[str, User]) -> None:
    """What counts is what the project would have in all."""
    agree(people["lea"], ask(cast, h100, 7000))
    assert agree(people["lea"], ask(cast, h100, 8000)).decision == ""


@pytest.mark.usefixtures("rules")
def test_slices_count_as_the_part_of_a_device_that_they_are(
    cast: Cast, people: dict[str, User]
) -> None:
    sevenths = factories.mig_flavor()
    assert agree(people["lea"], ask(cast, sevenths, 55_000)).decision == "granted"
    assert agree(people["lea"], ask(cast, sevenths, 56_000)).decision == ""


@pytest.mark.usefixtures("rules")
def test_who_agrees_to_more_than_was_asked_brings_the_next_step_about(
    cast: Cast, h100: Flavor, people: dict[str, User]
) -> None:
    asked = ask(cast, h100, 7000)
    assert agree(people["lea"], asked, 9000).decision == ""
    assert held(cast.detection) == 0
    assert agree(people["dep"], asked).granted_milli == 9000


@pytest.mark.usefixtures("rules")
def test_nobody_takes_a_step_of_a_level_that_is_not_theirs(
    cast: Cast, h100: Flavor, people: dict[str, User]
) -> None:
    asked = ask(cast, h100, 32_000)
    agree(people["lea"], asked)
    second = factories.user("lou")
    factories.member(second, Role.APPROVER, at=cast.detection)
    with nothing_said(asked), pytest.raises(NotAllowed, match="an approver of a tenant above"):
        agree(second, asked)
    agree(people["dep"], asked)
    third = factories.user("del")
    factories.member(third, Role.APPROVER, at=cast.vision)
    with nothing_said(asked), pytest.raises(NotAllowed, match="of the whole fleet"):
        requests.deny(actor=actor(third), request=asked, note="No.", at=AT)


@pytest.mark.usefixtures("rules")
def test_nobody_takes_two(cast: Cast, h100: Flavor) -> None:
    """Not even who might take each."""
    asked = ask(cast, h100, 32_000)
    agree(cast.pia, asked)
    with nothing_said(asked), pytest.raises(NotAllowed, match="agreed to it already"):
        agree(cast.pia, asked)


@pytest.mark.usefixtures("rules")
def test_who_asked_takes_none_and_neither_do_theirs(cast: Cast, h100: Flavor) -> None:
    asked = ask(cast, h100, 32_000)
    factories.member(cast.ben, Role.APPROVER, at=cast.vision)
    with nothing_said(asked), pytest.raises(steps.SelfApproval):
        agree(cast.ben, asked)


@pytest.mark.usefixtures("rules")
def test_a_later_step_only_trims(cast: Cast, h100: Flavor, people: dict[str, User]) -> None:
    asked = ask(cast, h100, 32_000, until_at=AT + timedelta(days=30))
    agree(people["lea"], asked, 16_000, "Half.")
    with nothing_said(asked), pytest.raises(Invalid, match="more than the 16 that were agreed"):
        agree(people["dep"], asked, 17_000)
    longer = Given(nominal_milli=16_000, until_at=None)
    with nothing_said(asked), pytest.raises(Invalid, match="longer than until 2026-12-21"):
        requests.grant(actor=actor(people["dep"]), request=asked, given=longer, at=AT)
    with nothing_said(asked), pytest.raises(Invalid, match="Say why it is less"):
        agree(people["dep"], asked, 8000)
    agree(people["dep"], asked, 8000, "A quarter.")
    assert agree(people["pia"], asked).granted_milli == 8000
    assert asked.grant.until_at == AT + timedelta(days=30)


@pytest.mark.usefixtures("rules")
def test_a_denial_at_any_step_ends_it(cast: Cast, h100: Flavor, people: dict[str, User]) -> None:
    asked = ask(cast, h100, 32_000)
    agree(people["lea"], asked)
    requests.deny(actor=actor(people["dep"]), request=asked, note="No room.", at=AT)
    asked.refresh_from_db()
    assert (asked.decision, asked.decided_by) == ("denied", people["dep"])
    assert asked.taken_steps.get(position=2).note == "No room."


@pytest.mark.usefixtures("rules")
def test_what_was_agreed_to_is_void_once_something_else_is_asked(
    cast: Cast, h100: Flavor, people: dict[str, User]
) -> None:
    asked = ask(cast, h100, 16_000)
    agree(people["lea"], asked)
    requests.amend(
        actor=actor(cast.ben), request=asked, allotment=Allotment(nominal_milli=64_000),
        reason="All.", version=1, at=AT,
    )  # fmt: skip
    with pytest.raises(VersionMismatch):
        requests.grant(
            actor=actor(people["dep"]), request=asked, seen=Seen(request=1, quota=0, step=2),
            at=AT,
        )  # fmt: skip
    assert [agree(people[name], asked).decision for name in ("lea", "dep", "pia")] == [
        "", "", "granted",
    ]  # fmt: skip


@pytest.mark.usefixtures("rules")
def test_an_answer_is_to_the_step_that_was_seen(
    cast: Cast, h100: Flavor, people: dict[str, User]
) -> None:
    asked = ask(cast, h100, 16_000)
    agree(people["lea"], asked)
    with nothing_said(asked), pytest.raises(VersionMismatch, match="at step 2 by now, not 1"):
        requests.grant(
            actor=actor(people["dep"]), request=asked, seen=Seen(request=1, quota=0), at=AT
        )


def test_a_rule_that_goes_leaves_the_last_step_to_somebody_else(
    cast: Cast, h100: Flavor, people: dict[str, User]
) -> None:
    rule(cast.oz, Level.TENANT, 8)
    asked = ask(cast, h100, 16_000)
    agree(people["lea"], asked)
    kept = ApprovalRule.objects.get()
    approval_rules.remove(actor=actor(cast.oz), rule=kept, at=AT)
    with nothing_said(asked), pytest.raises(NotAllowed, match="agreed to it already"):
        agree(people["lea"], asked)
    assert agree(people["dep"], asked).decision == "granted"


def test_an_owner_only_adds_steps_below_their_tenant(cast: Cast, h100: Flavor) -> None:
    rule(cast.ada, Level.TENANT, 4, cast.vision)
    for tenant, level in ((None, Level.TENANT), (cast.vision, Level.FLEET)):
        with pytest.raises((NotAllowed, Invalid)):
            rule(cast.ada, level, 100, tenant)
    with pytest.raises(NotFound):
        rule(cast.ada, Level.TENANT, 4, cast.speech)
    with pytest.raises(NotAllowed):
        rule(cast.vik, Level.TENANT, 100, cast.vision)
    rule(cast.oz, Level.TENANT, 2)
    rule(cast.ada, Level.TENANT, 100, cast.vision)  # does not loosen what holds everywhere
    assert agree(cast.pia, ask(cast, h100, 4000)).decision == ""


@pytest.mark.usefixtures("rules")
def test_the_inbox_says_whose_turn_it_is(
    cast: Cast, h100: Flavor, people: dict[str, User]
) -> None:
    asked = ask(cast, h100, 32_000)
    agree(people["lea"], asked)
    told = {}
    for name, user in (people | {"ben": cast.ben}).items():
        (line,) = selectors.open_lines(actor=actor(user), at=AT, detailed=True)
        told[name] = (line.may_decide, line.is_coming)
        assert selectors.to_decide_count(actor=actor(user), at=AT) == line.may_decide
    assert told == {
        "lea": (False, False), "dep": (True, False), "pia": (True, False), "ben": (False, False),
    }  # fmt: skip
    assert [(s.state, s.place, s.decided_by, s.who) for s in line.steps] == [
        ("agreed", "the project", "lea", ()),
        ("due", "Vision Lab", "", ("dep", "pia")),
        ("later", "the whole fleet", "", ("pia",)),
    ]
    assert (line.step, line.is_last_step, line.most_milli) == (2, False, 32_000)


@pytest.mark.usefixtures("rules")
def test_what_comes_to_an_approver_later_is_told_apart(
    cast: Cast, h100: Flavor, people: dict[str, User]
) -> None:
    asked = ask(cast, h100, 16_000)
    agree(people["dep"], asked)
    (line,) = selectors.open_lines(actor=actor(people["lea"]), at=AT, detailed=True)
    assert (line.may_decide, line.is_coming) == (False, False)


def late(by: User, tenant: Tenant | None, level: Level, after_days: int) -> None:
    approval_rules.set_rule(
        actor=actor(by), tenant=tenant, level=level, from_milli=10**12, after_days=after_days,
        at=AT,
    )  # fmt: skip


def states(asked: QuotaRequest, who: User, days: float) -> list[tuple[str, str]]:
    at = AT + timedelta(days=days)
    (line,) = selectors.open_lines(actor=actor(who), at=at, detailed=True)
    assert selectors.to_decide_count(actor=actor(who), at=at) == line.may_decide
    return [(step.state, step.place) for step in line.steps]


def test_what_nobody_answers_goes_up_and_is_overdue_at_the_top(
    cast: Cast, h100: Flavor, people: dict[str, User]
) -> None:
    late(cast.oz, None, Level.TENANT, 3)
    late(cast.oz, None, Level.FLEET, 5)
    asked = ask(cast, h100)
    told = []
    for days in (2.9, 3, 3, 7.9, 8, 20):
        count = steps.escalate_due(at=AT + timedelta(days=days))
        told.append((count, states(asked, people["dep"], days)[-1]))
    assert told == [
        (0, ("due", "the project")),
        (1, ("due", "Vision Lab")),
        (0, ("due", "Vision Lab")),
        (0, ("due", "Vision Lab")),
        (1, ("due", "the whole fleet")),
        (0, ("overdue", "the whole fleet")),
    ]
    events = AuditEvent.objects.filter(action="request.lapsed").order_by("id")
    assert [(e.actor_name, e.after["level"]) for e in events] == [
        ("time", "project"), ("time", "tenant"),
    ]  # fmt: skip
    with nothing_said(asked), pytest.raises(NotAllowed, match="of the whole fleet"):
        agree(people["dep"], asked)
    assert agree(people["pia"], asked).granted_milli == 16_000


def test_an_answer_begins_the_time_of_the_next_and_without_a_time_nothing_goes_up(
    cast: Cast, h100: Flavor, people: dict[str, User]
) -> None:
    rule(cast.oz, Level.TENANT, 8)
    asked = ask(cast, h100)
    assert steps.escalate_due(at=AT + timedelta(days=300)) == 0
    late(cast.oz, None, Level.FLEET, 5)
    requests.grant(actor=actor(people["lea"]), request=asked, at=AT + timedelta(days=4))
    assert steps.escalate_due(at=AT + timedelta(days=8)) == 0
    assert steps.escalate_due(at=AT + timedelta(days=9)) == 1
    assert states(asked, cast.ben, 9) == [
        ("agreed", "the project"), ("lapsed", "Vision Lab"), ("due", "the whole fleet"),
    ]  # fmt: skip


def test_who_asks_changes_no_step_of_their_own_request(cast: Cast, h100: Flavor) -> None:
    rule(cast.ada, Level.TENANT, 4, cast.vision)
    kept = ApprovalRule.objects.get()
    asked = requests.open(
        actor=actor(cast.ada), project=cast.detection, flavor=h100,
        allotment=Allotment(nominal_milli=16_000), reason="More.", at=AT,
    )  # fmt: skip
    with pytest.raises(NotAllowed, match="You ask for quota there yourself"):
        rule(cast.ada, Level.TENANT, 100, cast.vision)
    with pytest.raises(NotAllowed, match="You ask for quota there yourself"):
        approval_rules.remove(actor=actor(cast.ada), rule=kept, at=AT)
    requests.withdraw(actor=actor(cast.ada), request=asked, at=AT)
    approval_rules.remove(actor=actor(cast.ada), rule=kept, at=AT)


def test_no_token_changes_who_agrees(cast: Cast, h100: Flavor) -> None:
    rule(cast.oz, Level.FLEET, 8)
    by_token = actor_for(user=cast.oz, token=factories.token(cast.oz, *Scope))
    with pytest.raises(NotAllowed, match="A token can't say who has to agree"):
        approval_rules.remove(actor=by_token, rule=ApprovalRule.objects.get(), at=AT)
    assert ApprovalRule.objects.exists()
