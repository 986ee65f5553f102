"""/requests/<id>/impact: what a grant would do, beside the form that answers the request."""

import pytest
from django.urls import reverse

from controlplane.audit.models import AuditEvent
from tenants.models import QuotaRequest
from tests import factories
from tests.conftest import Cast
from tests.web.conftest import HTMX, Browse, Shop

pytestmark = pytest.mark.usefixtures("one_moment")


@pytest.fixture
def asked(cast: Cast, shop: Shop) -> QuotaRequest:
    return factories.quota_request(cast.detection, shop.h100, cast.ben, nominal_milli=16_000)


def url(of: QuotaRequest) -> str:
    return reverse("request-impact", args=[of.id])


def test_an_approver_is_led_to_it_and_decides_by_what_it_says(
    browse: Browse, cast: Cast, asked: QuotaRequest
) -> None:
    pia = browse(cast.pia)
    assert url(asked) in pia.get(reverse("request-list")).content.decode()
    answer = pia.get(url(asked), {"amount": "13"}, headers=HTMX)
    html = answer.content.decode()
    assert html.strip().startswith('<div class="impact"')
    assert "If 13 h100-80gb were granted now" in html
    assert "€9,000.00" in html  # 5 more at 2.50 an hour for 30 days
    assert "4 now, then \N{MINUS SIGN}1" in html  # of 16 devices, 12 of which are promised
    assert f'form="answer-{asked.id}"' in html
    assert answer.context["impact"].nominal_milli == 13_000
    form = {
        "decision": "grant", "amount": "13", "note": "For now.", "version": 1,
        "quota_version": 1, "preview": answer.context["preview"],
    }  # fmt: skip
    decided = pia.post(reverse("request-decide", args=[asked.id]), form)
    assert decided.status_code == 303
    event = AuditEvent.objects.get(action="request.granted")
    assert event.after["preview"] == answer.context["impact"].previewed.digest


def test_part_of_a_whole_has_no_preview(browse: Browse, cast: Cast, asked: QuotaRequest) -> None:
    answer = browse(cast.pia).get(url(asked), {"amount": "12.5"}, headers=HTMX)
    assert answer.status_code == 422
    assert "right would be 12000 or 13000" in answer.content.decode()


def test_a_preview_of_another_amount_decides_nothing(
    browse: Browse, cast: Cast, asked: QuotaRequest
) -> None:
    pia = browse(cast.pia)
    preview = pia.get(url(asked), headers=HTMX).context["preview"]
    form = {
        "decision": "grant", "amount": "12", "note": "For now.", "version": 1,
        "quota_version": 1, "preview": preview,
    }  # fmt: skip
    answer = pia.post(reverse("request-decide", args=[asked.id]), form)
    assert answer.status_code == 409
    assert "The preview is of another amount" in answer.content.decode()
    assert QuotaRequest.objects.get(id=asked.id).decision == ""


@pytest.mark.parametrize(
    ("amount", "said"), [("8", "adds nothing"), ("-1", "greater than or equal"), ("x", "number")]
)
def test_an_amount_that_is_none_is_told(
    browse: Browse, cast: Cast, asked: QuotaRequest, amount: str, said: str
) -> None:
    answer = browse(cast.pia).get(url(asked), {"amount": amount}, headers=HTMX)
    assert answer.status_code == 422
    assert said in answer.content.decode()
    assert "preview" not in answer.content.decode()
    assert f'hx-get="{url(asked)}"' in answer.content.decode()  # to try another


def test_it_is_a_page_without_javascript(browse: Browse, cast: Cast, asked: QuotaRequest) -> None:
    answer = browse(cast.pia).get(url(asked))
    assert "What a grant does to others</h1>" in answer.content.decode()
    assert browse(cast.ben).get(url(asked)).status_code == 403
    assert browse(cast.cleo).get(url(asked)).status_code == 404
