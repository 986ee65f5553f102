"""/requests/new: asking for quota."""

from typing import Any

import pytest
from django.urls import reverse

from controlplane.audit.models import AuditEvent
from tenants.models import QuotaRequest
from tenants.services import asking_bounds
from tests.conftest import Cast
from tests.web.conftest import HTMX, Browse, Shop

URL = reverse("request-new")


def form(cast: Cast, **changes: Any) -> dict[str, Any]:  # Any: form values
    return {
        "project": str(cast.detection.id), "flavor": "h100-80gb", "amount": "24",
        "reason": "A larger model, until March.",
    } | changes  # fmt: skip


def test_a_plain_post_stores_the_request(browse: Browse, cast: Cast, shop: Shop) -> None:
    answer = browse(cast.ben).post(URL, form(cast, amount="24"), follow=True)
    assert answer.redirect_chain == [(reverse("request-list"), 303)]
    made = QuotaRequest.objects.get()
    assert (made.project, made.flavor, made.nominal_milli) == (cast.detection, shop.h100, 24_000)
    assert made.requested_by == cast.ben
    assert AuditEvent.objects.filter(action="request.open", target_id=made.id).exists()
    assert "Asked for 24 h100-80gb." in answer.content.decode()


def test_who_asks_too_often_is_told_until_when(
    browse: Browse, cast: Cast, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking_bounds, "MOST", 1)
    client = browse(cast.ben)
    client.post(URL, form(cast))
    answer = client.post(URL, form(cast, amount="25"))
    page = answer.content.decode()
    assert answer.status_code == 429
    assert 3590 <= int(answer["Retry-After"]) <= 3600
    assert "At most 1 of these in 3600 s" in page
    assert 'value="25"' in page
    assert QuotaRequest.objects.count() == 1


def test_the_form_shows_what_there_is_now(browse: Browse, cast: Cast, shop: Shop) -> None:
    page = browse(cast.ben).get(URL).content.decode()
    assert "h100-80gb" in page
    assert "Dialogue" not in page


def test_a_link_fills_in_project_and_flavor(browse: Browse, cast: Cast, shop: Shop) -> None:
    query = {"project": str(cast.segmentation.id), "flavor": "h100-80gb"}
    shown = browse(cast.ada).get(URL, query).context["form"]
    assert shown["project"].value() == str(cast.segmentation.id)
    assert shown["flavor"].value() == "h100-80gb"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"amount": "-1"}, "amount"),
        ({"amount": "1e30"}, "amount"),
        ({"amount": "NaN"}, "amount"),
        ({"amount": "1.0005"}, "amount"),
        ({"amount": ""}, "amount"),
        ({"flavor": "h900"}, "flavor"),
        ({"reason": "  "}, "reason"),
        ({"reason": "a\u202eb"}, "reason"),
        ({"reason": "a\x00b"}, "reason"),
        ({"reason": "x" * 2001}, "reason"),
        ({"project": "7"}, "project"),
    ],
    ids=str,
)
def test_bad_input_is_told_and_nothing_is_stored(
    browse: Browse, cast: Cast, shop: Shop, changes: dict[str, str], field: str
) -> None:
    answer = browse(cast.ben).post(URL, form(cast, **changes))
    assert answer.status_code == 422
    assert field in answer.context["form"].errors
    assert not QuotaRequest.objects.exists()
    assert not AuditEvent.objects.exists()


def test_htmx_gets_the_form_back_with_422(browse: Browse, cast: Cast, shop: Shop) -> None:
    answer = browse(cast.ben).post(URL, form(cast, amount="x"), headers=HTMX)
    assert answer.status_code == 422
    assert answer.content.lstrip().startswith(b'<form class="card card-form" id="ask"')


def test_htmx_is_told_where_to_go(browse: Browse, cast: Cast, shop: Shop) -> None:
    answer = browse(cast.ben).post(URL, form(cast), headers=HTMX)
    assert answer.headers["HX-Redirect"] == reverse("request-list")


def test_a_foreign_project_is_no_choice(browse: Browse, cast: Cast, shop: Shop) -> None:
    assert browse(cast.cleo).post(URL, form(cast)).status_code == 404
    assert not QuotaRequest.objects.exists()


@pytest.mark.parametrize("who", ["vik", "pia", "oz"])
def test_who_may_not_ask_gets_no_form(browse: Browse, cast: Cast, shop: Shop, who: str) -> None:
    client = browse(getattr(cast, who))
    assert "No project to ask for" in client.get(URL).content.decode()
    assert client.post(URL, form(cast)).status_code == 422
    assert not QuotaRequest.objects.exists()


def test_several_are_asked_for_at_once(browse: Browse, cast: Cast, shop: Shop) -> None:
    more = {"flavor_3": shop.slice.name, "amount_3": "4"}  # a line between may stay empty
    answer = browse(cast.ben).post(URL, form(cast, **more), follow=True)
    assert f"Asked for 24 h100-80gb, 4 {shop.slice.name}." in answer.content.decode()
    whole, cut = QuotaRequest.objects.order_by("id")
    assert (cut.flavor, cut.nominal_milli, cut.reason) == (shop.slice, 4000, whole.reason)
    assert whole.together == cut.together is not None


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"flavor_2": "h100-1g.10gb"}, "amount_2"),
        ({"amount_2": "4"}, "flavor_2"),
        ({"flavor_2": "h900", "amount_2": "4"}, "flavor_2"),
        ({"flavor_3": "h100-80gb", "amount_3": "4"}, "flavor_3"),
        ({"flavor_3": "h100-1g.10gb", "amount_3": "-4"}, "amount_3"),
        ({"flavor_4": "cpu", "amount_4": "64"}, "amount_4"),  # as many are there
        ({"flavor_6": "cpu"}, "__all__"),
    ],
)
def test_the_line_at_fault_is_told_and_none_is_asked(
    browse: Browse, cast: Cast, shop: Shop, more: dict[str, str], field: str
) -> None:
    answer = browse(cast.ben).post(URL, form(cast, **more))
    assert answer.status_code == 422
    assert list(answer.context["form"].errors) == [field]
    assert '<details id="more" open>' in answer.content.decode() or field == "__all__"
    assert not QuotaRequest.objects.exists()


def test_it_says_on_which_clusters_a_flavor_is(browse: Browse, cast: Cast, shop: Shop) -> None:
    page = browse(cast.ben).get(URL).content.decode()
    assert "h100-80gb (north)" in page
    assert "h100-1g.10gb (no cluster has any)" in page
    assert '<details id="more">' in page
