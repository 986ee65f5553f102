"""A request that several have to agree to, on its page and in the API; the rules that say so."""

from typing import Any

import pytest
from django.urls import reverse

from tenants.models import ApprovalRule, QuotaRequest, Role, User
from tests import factories
from tests.conftest import Cast
from tests.web.conftest import Browse, Shop


@pytest.fixture
def lea(cast: Cast) -> User:
    """Approver of Detection."""
    made = factories.user("lea")
    factories.member(made, Role.APPROVER, at=cast.detection)
    return made


@pytest.fixture
def asked(cast: Cast, shop: Shop, lea: User) -> QuotaRequest:
    """Which the platform has to agree to."""
    ApprovalRule.objects.create(level="fleet", from_milli=16_000)
    return factories.quota_request(cast.detection, shop.h100, cast.ben)


SEEN = {"version": 1, "quota_version": 1, "decision": "grant"}


def url(asked: QuotaRequest) -> str:
    return reverse("request-decide", args=[asked.id])


def steps(browse: Browse, who: User, asked: QuotaRequest) -> list[tuple[str, Any]]:
    told = browse(who).get(f"/api/v1/quota-requests/{asked.id}").json()
    assert told["step"] == 1 + sum(bool(step["decided_by"]) for step in told["steps"])
    return [(s["state"], s["decided_by"] or s["who"]) for s in told["steps"]]


def test_one_after_the_other_until_the_last_grants(
    browse: Browse, cast: Cast, lea: User, asked: QuotaRequest
) -> None:
    assert steps(browse, cast.ben, asked) == [("due", ["lea", "pia"]), ("later", ["pia"])]
    page = browse(cast.pia).get(reverse("request-list")).content.decode()
    assert "whose turn it is: lea, pia" in page
    told = browse(lea).post(url(asked), SEEN | {"amount": "16", "step": 1}, follow=True)
    assert "somebody else decides the next step." in told.content.decode()
    assert steps(browse, cast.ben, asked) == [("agreed", "lea"), ("due", ["pia"])]
    page = browse(cast.pia).get(reverse("request-list")).content.decode()
    assert "lea agreed to at most 16" in page
    late = browse(cast.pia).post(url(asked), SEEN | {"amount": "16", "step": 1})
    assert late.status_code == 409
    assert "at step 2 by now, not 1" in late.content.decode()
    more = browse(cast.pia).post(url(asked), SEEN | {"amount": "17", "step": 2})
    assert more.status_code == 422
    assert "more than the 16 that were agreed" in more.content.decode()
    done = browse(cast.pia).post(url(asked), SEEN | {"amount": "16", "step": 2}, follow=True)
    assert "Detection may hold 16 h100-80gb from now on." in done.content.decode()
    assert steps(browse, cast.ben, asked) == [("agreed", "lea"), ("agreed", "pia")]


def test_by_the_api_without_an_amount_it_is_what_was_agreed(
    browse: Browse, cast: Cast, lea: User, asked: QuotaRequest
) -> None:
    where = f"/api/v1/quota-requests/{asked.id}/grant"
    seen = {"version": 1, "quota_version": 1}

    def post(who: User, **body: object) -> Any:  # Any: JSON values
        return browse(who).post(where, seen | body, content_type="application/json").json()

    assert post(lea, granted_milli=12_000, note="Less.")["decision"] == ""
    assert post(lea, step=2)["detail"].startswith("You have agreed to it already")
    assert post(cast.pia, step=2)["granted_milli"] == 12_000


def test_who_is_of_no_level_that_is_due_is_told_whose_turn_it_is(
    browse: Browse, cast: Cast, lea: User, asked: QuotaRequest
) -> None:
    browse(lea).post(url(asked), SEEN | {"step": 1})
    lou = factories.user("lou")
    factories.member(lou, Role.APPROVER, at=cast.vision)
    answer = browse(lou).post(url(asked), SEEN | {"step": 2})
    assert answer.status_code == 403
    assert "It is the turn of an approver of the whole fleet" in answer.content.decode()


def test_operators_and_owners_say_who_agrees(browse: Browse, cast: Cast) -> None:
    where = reverse("approval-rule-list")
    sent = {"place": "everywhere", "level": "fleet", "from_gpus": "32"}
    assert browse(cast.oz).post(where, sent).status_code == 303
    assert "everywhere" in browse(cast.ben).get(where).content.decode()
    assert browse(cast.ada).post(where, sent).status_code == 422
    own = {"place": str(cast.vision.id), "level": "tenant", "from_gpus": "4"}
    assert browse(cast.ada).post(where, own).status_code == 303
    wrong = browse(cast.ada).post(where, own | {"level": "fleet"})
    assert wrong.status_code == 422
    assert "A tenant&#x27;s rule is of level tenant" in wrong.content.decode()
    assert browse(cast.oz).post(where, sent | {"from_gpus": "-1"}).status_code == 422
    kept = ApprovalRule.objects.get(tenant=cast.vision)
    remove = reverse("approval-rule-remove", args=[kept.id])
    assert browse(cast.oz).post(remove).status_code == 403
    assert browse(cast.ada).post(remove).status_code == 303
    assert list(ApprovalRule.objects.values_list("from_milli")) == [(32_000,)]
