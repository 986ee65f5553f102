"""A delegate decides for an approver: for a while, by the approver's own roles, as one pair of
eyes with them."""

from datetime import datetime, timedelta
from uuid import UUID

import pytest

from clusters.models import Flavor
from controlplane.audit.models import AuditEvent
from controlplane.kernel.errors import Conflict, Invalid, NotAllowed, NotFound
from tenants.access import Actor, actor_for
from tenants.models import ApprovalRule, Delegation, Member, QuotaRequest, Role, Scope, User
from tenants.selectors import audit
from tenants.selectors import delegations as delegation_rows
from tenants.selectors import requests as selectors
from tenants.selectors.audit import Asked
from tenants.services import delegations, members, requests, steps
from tests import factories
from tests.conftest import Cast
from tests.tenants.test_quota_requests import ask

AT = factories.AT
DAY = timedelta(days=1)


@pytest.fixture
def h100(db: None) -> Flavor:
    return factories.flavor()


@pytest.fixture
def dep(cast: Cast) -> User:
    """Approver of Vision Lab."""
    made = factories.user("dep")
    factories.member(made, Role.APPROVER, at=cast.vision)
    return made


def actor(user: User) -> Actor:
    return actor_for(user=user)


def delegate(
    approver: User, to: User, from_at: datetime | None = None, until_at: datetime = AT + 7 * DAY
) -> Delegation:
    return delegations.make(
        actor=actor(approver), delegate=to.username, from_at=from_at, until_at=until_at, at=AT
    )


def decide(by: User, asked: QuotaRequest, at: datetime = AT) -> QuotaRequest:
    return requests.grant(actor=actor(by), request=asked, at=at)


def test_what_a_delegate_says_is_written_down_as_for_whom(
    cast: Cast, h100: Flavor, dep: User
) -> None:
    asked = ask(cast, h100)
    with pytest.raises(NotAllowed, match="does not permit: decide-request"):
        decide(cast.vik, asked)
    delegate(dep, cast.vik)
    (line,) = selectors.open_lines(actor=actor(cast.vik), at=AT, detailed=True)
    assert (line.may_decide, line.for_whom) == (True, "dep")
    assert "vik for dep" in line.steps[0].who
    assert selectors.to_decide_count(actor=actor(cast.vik), at=AT) == 1
    granted = decide(cast.vik, asked)
    assert (granted.decision, granted.decided_by) == ("granted", cast.vik)
    said = granted.taken_steps.get()
    assert (said.decided_by, said.on_behalf_of) == (cast.vik, dep)
    event = AuditEvent.objects.get(action="request.granted")
    assert (event.actor_name, event.after["on_behalf_of"]) == ("vik", str(dep.id))
    made = AuditEvent.objects.get(action="delegation.make")
    assert (made.actor_name, made.after["delegate"]) == ("dep", str(cast.vik.id))


def test_who_owns_a_place_where_the_approver_decides_reads_of_it(cast: Cast, dep: User) -> None:
    """There, whichever role it is that decides, and nowhere else."""
    factories.member(dep, Role.OWNER, at=cast.vision)
    factories.member(dep, Role.OPERATOR, at=cast.speech)
    factories.member(dep, Role.APPROVER, at=cast.dialogue)
    sees, beside = factories.user("sia"), factories.user("bea")
    for place in (cast.vision, cast.speech):
        factories.member(sees, Role.VIEWER, at=place)
    factories.member(beside, Role.OWNER, at=cast.speech)
    factories.member(cast.oz, Role.OWNER)

    def told(by: User, asked: Asked | None = None) -> list[tuple[str, UUID | None, UUID | None]]:
        rows = audit.events(actor=actor(by), asked=asked or Asked()).order_by("id")
        told = rows.filter(target_type="delegation")
        return list(told.values_list("action", "tenant_id", "project_id"))

    made = delegate(dep, sees)
    assert told(cast.ada) == [("delegation.make", cast.vision.id, None)]
    assert told(cast.ada, Asked(tenant=cast.vision.id)) == told(cast.ada)
    of_dialogue = ("delegation.make", cast.speech.id, cast.dialogue.id)
    assert told(beside) == [of_dialogue]
    assert told(beside, Asked(project=cast.dialogue.id)) == [of_dialogue]
    assert told(cast.cleo) == []  # a member of Dialogue
    delegations.withdraw(actor=actor(dep), delegation=made, at=AT + DAY)
    assert [action for action, *_ in told(cast.ada)] == ["delegation.make", "delegation.withdraw"]
    assert [action for action, *_ in told(beside)] == ["delegation.make", "delegation.withdraw"]
    assert len(told(cast.oz)) == 4


def test_who_decides_nowhere_any_more_is_told_to_the_fleet(cast: Cast, dep: User) -> None:
    made = delegate(dep, cast.vik)
    Member.objects.filter(user=dep).delete()
    delegations.withdraw(actor=actor(dep), delegation=made, at=AT)
    event = AuditEvent.objects.get(action="delegation.withdraw")
    assert (event.tenant_id, event.project_id) == (None, None)


def test_before_after_and_withdrawn_it_is_refused_with_the_reason(
    cast: Cast, h100: Flavor, dep: User
) -> None:
    asked = ask(cast, h100)
    made = delegate(dep, cast.vik, AT + DAY, AT + 7 * DAY)
    with pytest.raises(NotAllowed, match="for dep only from 2026-11-22 09:00 UTC on"):
        decide(cast.vik, asked)
    with pytest.raises(NotAllowed, match="for dep until 2026-11-28 09:00 UTC"):
        decide(cast.vik, asked, AT + 7 * DAY)
    delegations.withdraw(actor=actor(dep), delegation=made, at=AT)
    with pytest.raises(NotAllowed, match="for dep no more: they withdrew it"):
        decide(cast.vik, asked, AT + 2 * DAY)
    with pytest.raises(Conflict):
        delegations.withdraw(actor=actor(dep), delegation=made, at=AT)
    asked.refresh_from_db()
    assert (asked.decision, asked.taken_steps.count()) == ("", 0)


def test_it_goes_with_the_role_and_the_account_of_the_approver(
    cast: Cast, h100: Flavor, dep: User
) -> None:
    asked = ask(cast, h100)
    delegate(dep, cast.vik)
    User.objects.filter(id=dep.id).update(is_active=False)
    with pytest.raises(NotAllowed, match="can't sign in any more"):
        decide(cast.vik, asked)
    User.objects.filter(id=dep.id).update(is_active=True)
    User.objects.filter(id=cast.vik.id).update(is_active=False)
    assert not delegation_rows.live(at=AT)
    User.objects.filter(id=cast.vik.id).update(is_active=True)
    assert delegation_rows.live(at=AT)
    members.revoke(actor=actor(cast.ada), member=dep.memberships.get(), at=AT)
    with pytest.raises(NotAllowed):
        decide(cast.vik, asked)


def test_a_delegate_has_no_delegate(cast: Cast, h100: Flavor, dep: User) -> None:
    delegate(dep, cast.vik)
    with pytest.raises(NotAllowed, match="by a role of their own"):
        delegate(cast.vik, cast.ada)
    lea = factories.user("lea")
    factories.member(lea, Role.APPROVER, at=cast.detection)
    delegate(lea, dep)
    ApprovalRule.objects.create(level="tenant", from_milli=0)
    asked = ask(cast, h100)
    decide(dep, asked)  # by dep's own role
    with pytest.raises(NotAllowed, match="has agreed to it already"):
        decide(cast.vik, asked)  # dep has spoken; that dep stands in for lea helps vik nothing
    assert asked.taken_steps.get().on_behalf_of is None


def test_who_asks_is_on_neither_side(cast: Cast, h100: Flavor, dep: User) -> None:
    delegate(dep, cast.ada)
    with pytest.raises(NotAllowed, match="does not permit"):
        decide(cast.ada, ask(cast, h100, by=cast.ada))
    factories.member(dep, Role.MEMBER, at=cast.detection)
    delegate(dep, cast.vik)
    with pytest.raises(steps.SelfApproval, match="You stand in for dep, who asks"):
        decide(cast.vik, ask(cast, h100, 17_000, by=dep))


def test_who_asks_made_the_approver(cast: Cast, h100: Flavor) -> None:
    """Then neither they nor their delegate decides."""
    friend = factories.user("fred")
    members.grant(actor=actor(cast.ada), user=friend, role=Role.APPROVER, place=cast.vision, at=AT)
    delegate(friend, cast.vik)
    with pytest.raises(NotAllowed):
        decide(cast.vik, ask(cast, h100, by=cast.ada))
    assert decide(cast.vik, ask(cast, h100, 17_000, by=cast.ben)).decision == "granted"


def test_both_are_one_pair_of_eyes(cast: Cast, h100: Flavor, dep: User) -> None:
    ApprovalRule.objects.create(level="tenant", from_milli=0)
    delegate(dep, cast.vik)
    first = ask(cast, h100)
    decide(cast.vik, first)
    for who in (cast.vik, dep):
        with pytest.raises(NotAllowed, match="agreed to it already"):
            decide(who, first)
    second = ask(cast, h100, 17_000)
    decide(dep, second)
    with pytest.raises(NotAllowed, match="dep, for whom you stand in, has agreed"):
        decide(cast.vik, second)
    assert [asked.taken_steps.count() for asked in (first, second)] == [1, 1]


def test_a_level_that_the_approver_is_not_of_is_none_of_the_delegates(
    cast: Cast, h100: Flavor, dep: User
) -> None:
    ApprovalRule.objects.create(level="fleet", from_milli=0)
    delegate(dep, cast.vik)
    asked = ask(cast, h100)
    lea = factories.user("lea")
    factories.member(lea, Role.APPROVER, at=cast.detection)
    decide(lea, asked)
    with pytest.raises(NotAllowed):
        decide(cast.vik, asked)


@pytest.mark.parametrize(
    ("to", "from_at", "until_at", "pointer"),
    [
        ("nobody", None, AT + DAY, "/delegate"),
        ("dep", None, AT + DAY, "/delegate"),
        ("cleo", None, AT + DAY, "/delegate"),
        ("vik", None, AT, "/until_at"),
        ("vik", AT - DAY, AT + DAY, "/until_at"),
        ("vik", None, AT + 91 * DAY, "/until_at"),
        ("vik", AT + 2 * DAY, AT + DAY, "/until_at"),
    ],
    ids=str,
)
@pytest.mark.usefixtures("cast")
def test_what_can_not_be_is_told(
    dep: User, to: str, from_at: datetime | None, until_at: datetime, pointer: str
) -> None:
    with pytest.raises(Invalid) as refused:
        delegations.make(actor=actor(dep), delegate=to, from_at=from_at, until_at=until_at, at=AT)
    assert refused.value.pointer == pointer
    assert not Delegation.objects.exists()


def test_tokens_and_who_decides_nothing_name_nobody(cast: Cast, dep: User) -> None:
    by_token = actor_for(user=dep, token=factories.token(dep, *(s.value for s in Scope)))
    for who in (by_token, actor(cast.ada)):
        with pytest.raises(NotAllowed):
            delegations.make(actor=who, delegate="vik", from_at=None, until_at=AT + DAY, at=AT)
    made = delegate(dep, cast.vik)
    for other in (by_token, actor(cast.vik)):
        with pytest.raises(NotAllowed):
            delegations.withdraw(actor=other, delegation=made, at=AT)


def test_who_does_not_see_the_project_learns_nothing(cast: Cast, h100: Flavor, dep: User) -> None:
    """Not even as a delegate who saw it once."""
    delegate(dep, cast.vik)
    cast.vik.memberships.all().delete()
    with pytest.raises(NotFound):
        decide(cast.vik, ask(cast, h100))
