"""Who may look at what a grant would do: whose turn it is, and nobody else; by page and API."""

from datetime import timedelta

import pytest
from django.urls import reverse

from controlplane.kernel import clock
from controlplane.kernel.throttle import Throttle
from scheduler.services import asking
from tenants.access import actor_for
from tenants.models import ApprovalRule, Delegation, Project, QuotaRequest, Role, Tenant, User
from tenants.services import members, requests
from tests import factories
from tests.conftest import Cast
from tests.web.conftest import Browse, Shop

pytestmark = pytest.mark.usefixtures("one_moment")
DAY = timedelta(days=1)


@pytest.fixture
def asked(cast: Cast, shop: Shop) -> QuotaRequest:
    return factories.quota_request(cast.detection, shop.h100, cast.ben, nominal_milli=16_000)


def approver(name: str, at: Tenant | Project) -> User:
    made = factories.user(name)
    factories.member(made, Role.APPROVER, at=at)
    return made


def delegate(approver: User, to: User, *, days: int = 1) -> Delegation:
    """Since a day ago, until so many days from now."""
    at = clock.now()
    return Delegation.objects.create(
        approver=approver, delegate=to, from_at=at - 2 * DAY, until_at=at + days * DAY
    )


def statuses(browse: Browse, who: User, asked: QuotaRequest) -> tuple[int, int]:
    client = browse(who)
    page = client.get(reverse("request-impact", args=[asked.id]))
    return page.status_code, client.get(f"/api/v1/quota-requests/{asked.id}/impact").status_code


def test_a_delegate_sees_what_the_approver_would(
    browse: Browse, cast: Cast, shop: Shop, asked: QuotaRequest
) -> None:
    """By name, so far as they see the projects; of a project that they don't see, none."""
    factories.workload(cast.dialogue, cast.cleo, [shop.h100], gpus=4)
    assert statuses(browse, cast.vik, asked) == (403, 403)
    delegate(cast.pia, cast.vik)
    assert statuses(browse, cast.vik, asked) == (200, 200)
    told = browse(cast.vik).get(f"/api/v1/quota-requests/{asked.id}/impact").json()
    assert {each["project"] for each in told["effects"]} == {"Detection", ""}
    page = browse(cast.vik).get(reverse("request-impact", args=[asked.id]))
    sent = {
        "decision": "grant", "version": 1, "quota_version": 1, "amount": "16",
        "preview": page.context["preview"],
    }  # fmt: skip
    decided = browse(cast.vik).post(reverse("request-decide", args=[asked.id]), sent)
    assert decided.status_code == 303


def test_one_that_is_over_shows_nothing(browse: Browse, cast: Cast, asked: QuotaRequest) -> None:
    delegate(cast.pia, cast.vik, days=-1)
    assert statuses(browse, cast.vik, asked) == (403, 403)
    assert statuses(browse, cast.cleo, asked) == (404, 404)


def test_it_is_of_whose_turn_it_is(browse: Browse, cast: Cast, asked: QuotaRequest) -> None:
    ApprovalRule.objects.create(level="fleet", from_milli=8000)
    lea, lou = approver("lea", cast.detection), approver("lou", cast.vision)
    assert {statuses(browse, who, asked) for who in (lea, lou, cast.pia)} == {(200, 200)}
    requests.grant(actor=actor_for(user=lea), request=asked, at=clock.now())
    assert {statuses(browse, who, asked) for who in (lea, lou)} == {(403, 403)}
    assert statuses(browse, cast.pia, asked) == (200, 200)


def test_who_asks_and_theirs_do_not_look(browse: Browse, cast: Cast, shop: Shop) -> None:
    friend = factories.user("fay")
    members.grant(
        actor=actor_for(user=cast.ada), user=friend, role=Role.APPROVER, place=cast.vision,
        at=clock.now(),
    )  # fmt: skip
    of_ada = factories.quota_request(cast.detection, shop.h100, cast.ada)
    of_pia = factories.quota_request(cast.detection, shop.h100, cast.pia)
    assert statuses(browse, friend, of_ada) == (403, 403)
    assert statuses(browse, cast.pia, of_pia) == (403, 403)


def test_page_and_api_say_when_to_ask_again(
    browse: Browse, cast: Cast, asked: QuotaRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "ASKED", Throttle(most=1, window=timedelta(minutes=1)))
    pia, where = browse(cast.pia), reverse("request-impact", args=[asked.id])
    assert "Retry-After" not in pia.get(where).headers
    for url in (where, f"/api/v1/quota-requests/{asked.id}/impact"):
        answer = pia.get(url)
        assert answer.status_code == 429
        assert 1 <= int(answer.headers["Retry-After"]) <= 60
