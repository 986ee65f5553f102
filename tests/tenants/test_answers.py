"""One answer to several requests: each by its own rules, and none stopped by another."""

from collections.abc import Callable

import pytest

from clusters.models import Flavor
from controlplane.audit.models import AuditEvent
from controlplane.kernel.errors import Invalid
from tenants.access import actor_for
from tenants.models import ApprovalRule, Quota, QuotaRequest, RequestStep, Role, User
from tenants.services import answers, members, requests
from tenants.services.answers import MOST, Answer, Chosen
from tenants.services.grants import Allotment
from tenants.services.requests import Seen
from tests import factories
from tests.conftest import Cast
from tests.tenants.test_quota_requests import ask

AT = factories.AT


@pytest.fixture
def h100(db: None) -> Flavor:
    return factories.flavor()


def chosen(*asked: QuotaRequest, version: int = 1, step: int = 1) -> list[Chosen]:
    return [Chosen(each.id, Seen(request=version, quota=0, step=step)) for each in asked]


def grant(by: User, these: list[Chosen]) -> tuple[Answer, ...]:
    return answers.grant(actor=actor_for(user=by), chosen=these, at=AT)


def said(found: tuple[Answer, ...]) -> list[str]:
    """How each came out: why not, where it was refused."""
    return [each.refusal.message if each.refusal else each.outcome for each in found]


def amended(cast: Cast, asked: QuotaRequest) -> QuotaRequest:
    return requests.amend(
        actor=actor_for(user=cast.ben), request=asked, allotment=Allotment(nominal_milli=64_000),
        reason="All.", version=1, at=AT,
    )  # fmt: skip


def held(flavor: Flavor) -> int:
    return sum(Quota.objects.filter(flavor=flavor).values_list("nominal_milli", flat=True))


def test_each_is_granted_as_it_was_asked_and_is_audited(cast: Cast, h100: Flavor) -> None:
    asked = [ask(cast, flavor) for flavor in (h100, factories.mig_flavor())]
    assert said(grant(cast.pia, chosen(*asked))) == ["granted", "granted"]
    assert set(Quota.objects.values_list("nominal_milli", flat=True)) == {16_000}
    events = AuditEvent.objects.filter(action="request.granted")
    assert {(event.target_id, event.actor_name) for event in events} == {
        (each.id, "pia") for each in asked
    }


def test_what_can_not_be_decided_is_told_and_stops_no_other(cast: Cast, h100: Flavor) -> None:
    """Changed since, decided since, one's own, of no project that one sees, and a good one."""
    reader = factories.user("lia")
    factories.member(reader, Role.APPROVER, at=cast.vision)
    factories.member(reader, Role.MEMBER, at=cast.detection)
    changed, decided, own, good = (
        ask(cast, factories.flavor(name, model=name), by=by)
        for name, by in (("a", None), ("b", None), ("c", reader), ("d", None))
    )
    amended(cast, changed)
    requests.deny(actor=actor_for(user=cast.pia), request=decided, note="No.", at=AT)
    foreign = factories.quota_request(cast.dialogue, h100, cast.cleo)
    before = set(AuditEvent.objects.values_list("id", flat=True))
    found = grant(reader, chosen(changed, decided, own, foreign, good))
    assert said(found) == [
        "The request is at version 2 by now, not 1.",
        "This request has been decided already: it is denied.",
        "Somebody else has to decide your own request.",
        "There is no such quota request.",
        "granted",
    ]
    assert [each.outcome for each in found] == ["refused"] * 4 + ["granted"]
    assert found[3].request is None
    assert [q.flavor.name for q in Quota.objects.all()] == ["d"]
    assert RequestStep.objects.filter(request__in=(changed, own, foreign)).count() == 0
    told = AuditEvent.objects.exclude(id__in=before).filter(action__startswith="request.")
    assert [(event.action, event.target_id) for event in told] == [("request.granted", good.id)]


def test_who_may_decide_none_changes_nothing(cast: Cast, h100: Flavor) -> None:
    asked = ask(cast, h100)
    for who in (cast.ada, cast.oz, cast.vik):
        (told,) = said(grant(who, chosen(asked)))
        assert "does not permit: decide-request" in told
    assert held(h100) == 0


def test_four_eyes_hold_for_each(cast: Cast, h100: Flavor) -> None:
    """A role that came through who asked decides theirs no more than alone."""
    friend = factories.user("fay")
    members.grant(
        actor=actor_for(user=cast.ada), user=friend, role=Role.APPROVER, place=cast.vision, at=AT
    )
    of_ada, of_ben = ask(cast, h100, by=cast.ada), ask(cast, factories.mig_flavor())
    refused, granted = said(grant(friend, chosen(of_ada, of_ben)))
    assert "through a role that ada, who asks, gave to you" in refused
    assert granted == "granted"
    assert held(h100) == 0


def test_a_step_that_is_not_the_last_is_agreed_to(cast: Cast, h100: Flavor) -> None:
    ApprovalRule.objects.create(level="tenant", from_milli=8000)
    lea = factories.user("lea")
    factories.member(lea, Role.APPROVER, at=cast.detection)
    asked = ask(cast, h100)
    assert said(grant(lea, chosen(asked))) == ["agreed"]
    assert said(grant(cast.pia, chosen(asked))) == [
        "The request is at step 2 by now, not 1: look at it again."
    ]
    assert said(grant(cast.pia, chosen(asked, step=2))) == ["granted"]


def test_of_two_over_one_quota_the_second_is_refused(cast: Cast, h100: Flavor) -> None:
    """It was seen before the first changed the quota."""
    both = [ask(cast, h100, 16_000), ask(cast, h100, 32_000)]
    first, second = said(grant(cast.pia, chosen(*both)))
    assert first == "granted"
    assert "version" in second
    assert held(h100) == 16_000


def test_a_denial_has_one_note_for_all(cast: Cast, h100: Flavor) -> None:
    asked = [ask(cast, h100), ask(cast, h100, 17_000)]
    pia = actor_for(user=cast.pia)
    found = answers.deny(actor=pia, chosen=chosen(*asked), note="No room.", at=AT)
    assert [each.outcome for each in found] == ["denied", "denied"]
    assert set(QuotaRequest.objects.values_list("decision", "note")) == {("denied", "No room.")}


@pytest.mark.parametrize(
    ("note", "of", "fault"),
    [
        ("", lambda one: chosen(one), ("/note", "required")),
        ("a\u202eb", lambda one: chosen(one), ("/note", "bad-character")),
        ("x" * 2001, lambda one: chosen(one), ("/note", "too-long")),
        ("No.", lambda one: chosen(one, one), ("/requests", "repeated")),
        ("No.", lambda one: [], ("/requests", "out-of-range")),
        ("No.", lambda one: chosen(one) * (MOST + 1), ("/requests", "out-of-range")),
    ],
    ids=["no note", "odd note", "long note", "twice", "none", "too many"],
)
def test_what_can_not_be_said_to_any_is_refused_for_all(
    cast: Cast,
    h100: Flavor,
    note: str,
    of: Callable[[QuotaRequest], list[Chosen]],
    fault: tuple[str, str],
) -> None:
    asked = ask(cast, h100)
    with pytest.raises(Invalid) as refused:
        answers.deny(actor=actor_for(user=cast.pia), chosen=of(asked), note=note, at=AT)
    assert (refused.value.pointer, refused.value.code) == fault
    asked.refresh_from_db()
    assert asked.decision == ""
