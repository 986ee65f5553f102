"""/requests/decisions and its endpoint: one answer to several requests, told for each."""

from typing import Any

import pytest
from django.urls import reverse

from tenants.models import Quota, QuotaRequest
from tenants.services.answers import MOST
from tests import factories
from tests.conftest import Cast
from tests.web.conftest import Browse, Shop

URL = reverse("requests-decide")
API = "/api/v1/quota-requests/decide"


@pytest.fixture
def asked(cast: Cast, shop: Shop) -> list[QuotaRequest]:
    """One of Detection, which has a quota, one of Dialogue for what it has none of."""
    return [
        factories.quota_request(cast.detection, shop.h100, cast.ben),
        factories.quota_request(cast.dialogue, shop.slice, cast.cleo, nominal_milli=2000),
    ]


def seen(asked: list[QuotaRequest], version: int = 1) -> list[str]:
    return [f"{asked[0].id} {version} 1 1", f"{asked[1].id} 1 0 1"]


def decisions(asked: list[QuotaRequest]) -> list[str]:
    rows = QuotaRequest.objects.filter(id__in=[each.id for each in asked]).order_by("id")
    return list(rows.values_list("decision", flat=True))


def test_the_page_offers_what_may_be_decided(
    browse: Browse, cast: Cast, asked: list[QuotaRequest]
) -> None:
    page = browse(cast.pia).get(reverse("request-list")).content.decode()
    for value in seen(asked):
        assert f'name="chosen" form="answers" value="{value}"' in page
    own = browse(cast.ben).get(reverse("request-list")).content.decode()
    assert 'name="chosen"' not in own
    assert 'id="answers"' not in own


def test_all_that_are_chosen_are_granted_as_asked(
    browse: Browse, cast: Cast, shop: Shop, asked: list[QuotaRequest]
) -> None:
    answer = browse(cast.pia).post(URL, {"decision": "grant", "chosen": seen(asked)}, follow=True)
    assert answer.redirect_chain == [(reverse("request-list"), 303)]
    page = answer.content.decode()
    assert "Granted: Detection, h100-80gb; Dialogue, h100-1g.10gb." in page
    assert "20 h100-80gb are guaranteed in the whole fleet, which has 16: 4 too many." in page
    assert decisions(asked) == ["granted", "granted"]
    assert Quota.objects.get(project=cast.dialogue, flavor=shop.slice).nominal_milli == 2000


def test_one_that_was_changed_is_told_and_the_other_is_denied(
    browse: Browse, cast: Cast, asked: list[QuotaRequest]
) -> None:
    wish = {"amount": "64", "reason": "All of it.", "version": 1}
    browse(cast.ben).post(reverse("request-amend", args=[asked[0].id]), wish)
    sent = {"decision": "deny", "note": "No room.", "chosen": seen(asked)}
    page = browse(cast.pia).post(URL, sent, follow=True).content.decode()
    assert "Not decided: Detection, h100-80gb. The request is at version 2 by now, not 1." in page
    assert "Denied: Dialogue, h100-1g.10gb." in page
    assert decisions(asked) == ["", "denied"]


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({"decision": "deny"}, "Say why they are denied."),
        ({"decision": "maybe"}, "maybe is not one of the available choices."),
        ({"decision": "grant", "chosen": []}, "Choose one or more requests first."),
        ({"decision": "grant", "chosen": ["x"]}, "Choose requests of this page."),
        ({"decision": "grant", "note": "a\u202eb"}, "not accepted here"),
        ({"decision": "grant", "amount": "1"}, "There is no such field"),
    ],
    ids=str,
)
def test_bad_input_is_told_and_decides_none(
    browse: Browse,
    cast: Cast,
    asked: list[QuotaRequest],
    sent: dict[str, object],
    said: str,
) -> None:
    answer = browse(cast.pia).post(URL, {"chosen": seen(asked), **sent})
    assert answer.status_code == 422
    page = answer.content.decode()
    assert said in page
    ticked = f'value="{seen(asked)[0]}" aria-label="Choose h100-80gb for Detection" checked'
    assert (ticked in page) == ("chosen" not in sent)
    assert decisions(asked) == ["", ""]


@pytest.mark.parametrize("part", ["0 1 1", "1 x 1", "1 1", "1 1 1 1", "9999999999 1 1", "1 1 0"])
def test_what_was_seen_is_told_whole(
    browse: Browse, cast: Cast, asked: list[QuotaRequest], part: str
) -> None:
    sent = {"decision": "grant", "chosen": [f"{asked[0].id} {part}"]}
    answer = browse(cast.pia).post(URL, sent)
    assert answer.status_code == 422
    assert decisions(asked) == ["", ""]


def test_the_api_tells_what_came_of_each(
    browse: Browse, cast: Cast, shop: Shop, asked: list[QuotaRequest]
) -> None:
    these: list[dict[str, Any]] = [  # Any: JSON values
        {"id": str(asked[0].id), "version": 2, "quota_version": 1},
        {"id": str(asked[1].id), "version": 1, "quota_version": 0},
    ]
    answer = browse(cast.pia).post(
        API, {"answer": "grant", "requests": these}, content_type="application/json"
    )
    assert answer.status_code == 200
    assert answer.json() == {
        "items": [
            {
                "id": str(asked[0].id),
                "outcome": "refused",
                "code": "version-mismatch",
                "detail": "The request is at version 1 by now, not 2.",
            },
            {"id": str(asked[1].id), "outcome": "granted", "code": "", "detail": ""},
        ],
        "warnings": ["2 h100-1g.10gb are guaranteed in the whole fleet, which has 0: 2 too many."],
    }
    assert decisions(asked) == ["", "granted"]


@pytest.mark.parametrize(
    ("changed", "pointer"),
    [
        ({"requests": []}, "/requests"),
        ({"requests": "all"}, "/requests"),
        ({"requests": [{"version": 1}]}, "/requests/0/id"),
        ({"answer": "maybe"}, "/answer"),
        ({"answer": "deny"}, "/note"),
        ({"note": 5}, "/note"),
        ({"granted_milli": 5}, "/granted_milli"),
    ],
    ids=str,
)
def test_the_api_refuses_what_can_be_said_to_none(
    browse: Browse, cast: Cast, asked: list[QuotaRequest], changed: dict[str, Any], pointer: str
) -> None:
    """Any: JSON values."""
    one = {"id": str(asked[0].id), "version": 1, "quota_version": 1}
    body = {"answer": "grant", "requests": [one], **changed}
    answer = browse(cast.pia).post(API, body, content_type="application/json")
    assert answer.status_code == 400
    assert pointer in {each["pointer"] for each in answer.json()["errors"]}
    assert decisions(asked) == ["", ""]


def test_the_api_takes_so_many_at_once(
    browse: Browse, cast: Cast, asked: list[QuotaRequest]
) -> None:
    one = {"id": str(asked[0].id), "version": 1, "quota_version": 1}
    body = {"answer": "grant", "requests": [one] * (MOST + 1)}
    answer = browse(cast.pia).post(API, body, content_type="application/json")
    assert answer.status_code == 400
    assert decisions(asked) == ["", ""]
