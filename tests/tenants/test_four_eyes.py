"""Who decides a request is independent of who asks: it is not them, nor of their making."""

from dataclasses import dataclass

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from clusters.models import Flavor
from controlplane.kernel.errors import NotAllowed
from controlplane.settings.oidc import OpenIDConnect
from tenants.access import Actor, actor_for
from tenants.models import Member, Project, QuotaRequest, Role, Tenant, User
from tenants.selectors import requests as selectors
from tenants.services import arrivals, group_roles, members, requests, steps
from tests import factories
from tests.conftest import Cast
from tests.tenants.test_quota_requests import ask


@pytest.fixture
def h100(db: None) -> Flavor:
    return factories.flavor()


def actor(user: User) -> Actor:
    return actor_for(user=user)


@dataclass(frozen=True)
class Giving:
    """`by` makes `user` that at `place`, None for the whole fleet."""

    by: User
    user: User
    role: Role
    place: Project | Tenant | None


def given(*steps: Giving) -> list[Member]:
    return [
        members.grant(
            actor=actor(step.by), user=step.user, role=step.role, place=step.place, at=factories.AT
        )
        for step in steps
    ]


def decide(by: User, asked: QuotaRequest) -> None:
    requests.grant(actor=actor(by), request=asked, at=factories.AT)


def refused(by: User, asked: QuotaRequest) -> str:
    """Grant and denial are, with the same words; the request stays open."""
    with pytest.raises(steps.SelfApproval) as granting:
        decide(by, asked)
    with pytest.raises(steps.SelfApproval) as denying:
        requests.deny(actor=actor(by), request=asked, note="No.", at=factories.AT)
    asked.refresh_from_db()
    assert asked.decision == ""
    assert granting.value.message == denying.value.message
    assert granting.value.code == "self-approval"
    return granting.value.message


def test_a_role_says_who_gave_it_and_when(cast: Cast) -> None:
    (first,) = given(Giving(cast.ada, cast.ben, Role.APPROVER, cast.vision))
    assert (first.granted_by, first.granted_at, first.givers) == (
        cast.ada, factories.AT, [cast.ada.id],
    )  # fmt: skip
    assert cast.ada.memberships.get().givers == []


def test_who_asks_is_not_decided_for_by_whom_they_made_an_approver(
    cast: Cast, h100: Flavor
) -> None:
    given(Giving(cast.ada, cast.cleo, Role.APPROVER, cast.vision))
    assert "ada, who asks, gave to you" in refused(cast.cleo, ask(cast, h100, by=cast.ada))
    decide(cast.cleo, ask(cast, h100, by=cast.ben))


def test_it_does_not_help_that_the_role_was_given_after_asking(cast: Cast, h100: Flavor) -> None:
    asked = ask(cast, h100, by=cast.ada)
    given(Giving(cast.ada, cast.cleo, Role.APPROVER, cast.detection))
    refused(cast.cleo, asked)


def test_a_role_that_somebody_independent_gave_after_asking_counts(
    cast: Cast, h100: Flavor
) -> None:
    fay = factories.user("fay")
    factories.member(fay, Role.OWNER)
    asked = ask(cast, h100, by=cast.ada)
    given(Giving(fay, cast.cleo, Role.APPROVER, cast.vision))
    decide(cast.cleo, asked)


def test_an_owner_in_between_makes_nobody_independent(cast: Cast, h100: Flavor) -> None:
    """Not even once they are owner no more."""
    between, friend = factories.user("bo"), factories.user("fred")
    made, _ = given(
        Giving(cast.ada, between, Role.OWNER, cast.detection),
        Giving(between, friend, Role.APPROVER, cast.detection),
    )
    asked = ask(cast, h100, by=cast.ada)
    refused(friend, asked)
    members.revoke(actor=actor(cast.ada), member=made, at=factories.AT)
    refused(friend, asked)


def test_of_two_roles_by_which_one_gives_the_more_independent_is_told(
    cast: Cast, h100: Flavor
) -> None:
    """bo owns the tenant by nobody's gift, and a project of it by ada's."""
    bo, friend = factories.user("bo"), factories.user("fred")
    factories.member(bo, Role.OWNER, at=cast.vision)
    _, made = given(
        Giving(cast.ada, bo, Role.OWNER, cast.detection),
        Giving(bo, friend, Role.APPROVER, cast.detection),
    )
    assert made.givers == [bo.id]
    refused(friend, ask(cast, h100, by=bo))
    decide(friend, ask(cast, h100, by=cast.ada))


def test_one_independent_role_is_enough(cast: Cast, h100: Flavor) -> None:
    given(Giving(cast.ada, cast.pia, Role.APPROVER, cast.detection))
    decide(cast.pia, ask(cast, h100, by=cast.ada))


def test_two_owners_who_make_each_other_are_bounded(cast: Cast) -> None:
    bo = factories.user("bo")
    made = given(
        Giving(cast.ada, bo, Role.OWNER, cast.vision),
        Giving(bo, cast.ada, Role.OWNER, cast.detection),
        Giving(bo, cast.cleo, Role.APPROVER, cast.detection),
    )
    assert [row.givers for row in made] == [
        [cast.ada.id], [bo.id, cast.ada.id], [bo.id, cast.ada.id],
    ]  # fmt: skip


def test_giving_again_what_was_given_changes_not_through_whom(cast: Cast, h100: Flavor) -> None:
    fay = factories.user("fay")
    factories.member(fay, Role.OWNER)
    again = Giving(fay, cast.cleo, Role.APPROVER, cast.vision)
    made, same = given(Giving(cast.ada, cast.cleo, Role.APPROVER, cast.vision), again)
    assert (same.id, same.granted_by) == (made.id, cast.ada)
    asked = ask(cast, h100, by=cast.ada)
    refused(cast.cleo, asked)
    members.revoke(actor=actor(fay), member=made, at=factories.AT)
    given(again)
    decide(cast.cleo, asked)


def test_the_inbox_tells_of_nothing_that_would_be_refused(cast: Cast, h100: Flavor) -> None:
    given(Giving(cast.ada, cast.cleo, Role.APPROVER, cast.vision))
    ask(cast, h100, by=cast.ada)
    own = ask(cast, h100, by=cast.ben)
    by = actor(cast.cleo)
    assert selectors.to_decide_count(actor=by, at=factories.AT) == 1
    assert [
        line.id
        for line in selectors.open_lines(actor=by, at=factories.AT, detailed=True)
        if line.may_decide
    ] == [own.id]


def test_page_and_api_refuse_it_in_words(cast: Cast, h100: Flavor, client: Client) -> None:
    given(Giving(cast.ada, cast.cleo, Role.APPROVER, cast.vision))
    asked = ask(cast, h100, by=cast.ada)
    client.force_login(cast.cleo)
    body = {"version": 1, "quota_version": 0}
    told = client.post(
        f"/api/v1/quota-requests/{asked.id}/grant", body, content_type="application/json"
    )
    assert (told.status_code, told.json()["code"]) == (403, "self-approval")
    page = client.post(
        reverse("request-decide", args=[asked.id]), body | {"decision": "grant", "amount": "16"}
    )
    assert page.status_code == 403
    for text in (told.json()["detail"], page.content.decode()):
        assert "whose role does not come from ada" in text


def test_who_may_not_decide_at_all_is_told_that(cast: Cast, h100: Flavor) -> None:
    with pytest.raises(NotAllowed, match="does not permit: decide-request"):
        decide(cast.ada, ask(cast, h100, by=cast.ada))


def test_a_role_by_a_group_came_through_who_said_it_of_the_group(
    cast: Cast, h100: Flavor, settings: Settings
) -> None:
    """Else an owner would make the group of a friend approvers."""
    settings.BERTH_PROVIDERS = {
        "acme": OpenIDConnect(
            name="acme", label="Acme", issuer="https://id.example", client_id="b",
            client_secret="s", groups_claim="groups",
        )
    }  # fmt: skip
    given(Giving(cast.ada, cast.ben, Role.OWNER, cast.vision))
    group_roles.add(
        actor=actor(cast.ben), provider="acme", group="friends", role=Role.APPROVER,
        place=cast.vision, at=factories.AT,
    )  # fmt: skip
    arrival = arrivals.Arrival(
        provider="acme", subject="1", names=("fay",), groups=frozenset({"friends"})
    )
    friend = arrivals.arrive(arrival, at=factories.AT)
    assert friend.memberships.get().givers == [cast.ben.id, cast.ada.id]
    for asker in (cast.ada, cast.ben):
        assert asker.username in refused(friend, ask(cast, h100, by=asker))
