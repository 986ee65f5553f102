"""Those are told of a request whose turn it is, each time that the turn passes on."""

from datetime import datetime, timedelta

import pytest
from django.core import mail

from clusters.models import Flavor
from tenants.access import actor_for
from tenants.models import ApprovalRule, ChannelKind, Delivery, Notice, QuotaRequest, Role, User
from tenants.services import channels, delegations, deliveries, requests, steps
from tenants.services.grants import Allotment
from tests import factories
from tests.conftest import Cast
from tests.tenants.test_quota_requests import ask

AT = factories.AT
DAY = timedelta(days=1)


@pytest.fixture
def h100(db: None) -> Flavor:
    return factories.flavor()


@pytest.fixture
def people(cast: Cast) -> dict[str, User]:
    """lea approves for Detection, dep for Vision Lab, pia for the fleet."""
    made = {name: factories.user(name) for name in ("lea", "dep")}
    factories.member(made["lea"], Role.APPROVER, at=cast.detection)
    factories.member(made["dep"], Role.APPROVER, at=cast.vision)
    return made | {"pia": cast.pia}


def told(at: datetime = AT) -> list[str]:
    """Who is mailed by then, since the last time."""
    mail.outbox.clear()
    deliveries.mail_due(at=lambda: at, goes_on=lambda: True)
    return sorted(message.to[0].partition("@")[0] for message in mail.outbox)


def agree(by: User, asked: QuotaRequest) -> None:
    requests.grant(actor=actor_for(user=by), request=asked, at=AT)


def test_of_each_step_who_may_take_it(cast: Cast, h100: Flavor, people: dict[str, User]) -> None:
    """And nobody who has taken one."""
    for level in ("tenant", "fleet"):
        ApprovalRule.objects.create(level=level, from_milli=8000)
    second = factories.user("ada2")
    factories.member(second, Role.APPROVER)
    asked = ask(cast, h100)
    assert told() == ["ada2", "dep", "lea", "pia"]
    agree(people["lea"], asked)
    assert told() == ["ada2", "dep", "pia"]
    agree(second, asked)
    assert told() == ["pia"]
    agree(cast.pia, asked)
    assert told() == ["ben"]  # that it is granted
    waited = Notice.objects.filter(event="request.opened").values_list("cause", flat=True)
    assert set(waited) == {f"request:{asked.id}:1:{position}" for position in (1, 2, 3)}


def test_of_what_went_up_for_nobody_answered(
    cast: Cast, h100: Flavor, people: dict[str, User]
) -> None:
    ApprovalRule.objects.create(level="fleet", from_milli=10**12, after_days=3)
    ask(cast, h100)
    assert told() == ["dep", "lea", "pia"]
    for _ in range(2):  # done again it tells nothing more
        steps.escalate_due(at=AT + 3 * DAY)
    assert told(AT + 3 * DAY) == ["pia"]
    assert told(AT + 4 * DAY) == []


def test_who_stands_in_while_they_do(cast: Cast, h100: Flavor, people: dict[str, User]) -> None:
    """Beside the approver, and only who sees the project still."""
    lost = factories.user("lost")
    factories.member(lost, Role.VIEWER, at=cast.vision)
    for name in ("vik", "lost"):
        delegations.make(
            actor=actor_for(user=people["dep"]), delegate=name, from_at=AT + DAY,
            until_at=AT + 3 * DAY, at=AT,
        )  # fmt: skip
    lost.memberships.all().delete()
    expected = {0: ["dep", "lea", "pia"], 2: ["dep", "lea", "pia", "vik"],
                3: ["dep", "lea", "pia"]}  # fmt: skip
    for days, who in expected.items():
        requests.open(
            actor=actor_for(user=cast.ben), project=cast.detection, flavor=h100,
            allotment=Allotment(nominal_milli=16_000), reason="More.", at=AT + days * DAY,
        )  # fmt: skip
        assert told(AT + days * DAY) == who


def test_who_asks_and_theirs_are_not(cast: Cast, h100: Flavor, people: dict[str, User]) -> None:
    dep = people["dep"]
    factories.member(dep, Role.MEMBER, at=cast.detection)
    delegations.make(
        actor=actor_for(user=dep), delegate="vik", from_at=None, until_at=AT + DAY, at=AT
    )
    ask(cast, h100, by=dep)
    assert told() == ["lea", "pia"]


def test_of_what_was_changed_once_somebody_had_agreed(
    cast: Cast, h100: Flavor, people: dict[str, User]
) -> None:
    """All begins anew, so those of the first step are asked again; else they see it anyway."""
    ApprovalRule.objects.create(level="fleet", from_milli=8000)

    def amend(asked: QuotaRequest, gpus: int) -> None:
        requests.amend(
            actor=actor_for(user=cast.ben), request=asked, version=asked.version, reason="Other.",
            allotment=Allotment(nominal_milli=gpus * 1000), at=AT,
        )  # fmt: skip

    asked = ask(cast, h100)
    told()
    amend(asked, 17)
    assert told() == []
    agree(people["lea"], asked)
    assert told() == ["pia"]
    amend(asked, 18)
    assert told() == ["dep", "lea", "pia"]


def test_channels_are_told_once_that_it_is_asked_for(
    cast: Cast, h100: Flavor, people: dict[str, User]
) -> None:
    ApprovalRule.objects.create(level="fleet", from_milli=8000)
    channels.make(
        actor=actor_for(user=cast.ada), of=cast.detection, name="Chat", kind=ChannelKind.JSON,
        url="https://hooks.example/x", events=["request.opened"], at=AT,
    )  # fmt: skip
    agree(people["lea"], ask(cast, h100))
    assert Delivery.objects.filter(channel__isnull=False).count() == 1
