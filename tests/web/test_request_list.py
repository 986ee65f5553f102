"""/requests: what is open, what was answered, and buttons for those who may answer."""

from datetime import timedelta

from django.urls import reverse

from tenants.access import actor_for
from tenants.models import QuotaRequest, Role
from tenants.services import asking, requests
from tenants.services.asking import Line
from tenants.services.grants import Allotment
from tests import factories
from tests.conftest import Cast
from tests.web.conftest import HTMX, Browse, Shop

URL = reverse("request-list")


def test_an_approver_gets_a_form_for_each(browse: Browse, cast: Cast, shop: Shop) -> None:
    quota_request = factories.quota_request(cast.detection, shop.h100, cast.ben)
    page = browse(cast.pia).get(URL).content.decode()
    assert reverse("request-decide", args=[quota_request.id]) in page
    assert "1 waits for your answer." in page
    assert 'aria-label="Main"' in page
    assert "1<span" in page.partition("Requests</span>")[2]


def test_the_requester_gets_no_buttons(browse: Browse, cast: Cast, shop: Shop) -> None:
    quota_request = factories.quota_request(cast.detection, shop.h100, cast.ben)
    page = browse(cast.ben).get(URL).content.decode()
    assert "A larger model." in page
    assert reverse("request-decide", args=[quota_request.id]) not in page
    assert "Somebody else has to answer your own request." in page


def test_an_approver_gets_none_for_their_own(browse: Browse, cast: Cast, shop: Shop) -> None:
    factories.member(cast.pia, Role.MEMBER, at=cast.detection)
    quota_request = factories.quota_request(cast.detection, shop.h100, cast.pia)
    page = browse(cast.pia).get(URL).content.decode()
    assert reverse("request-decide", args=[quota_request.id]) not in page


def test_an_outsider_sees_none(browse: Browse, cast: Cast, shop: Shop) -> None:
    factories.quota_request(cast.detection, shop.h100, cast.ben)
    page = browse(cast.cleo).get(URL).content.decode()
    assert "A larger model." not in page
    assert "No open requests" in page


def test_answers_are_paged(browse: Browse, cast: Cast, shop: Shop) -> None:
    for number in range(23):
        factories.quota_request(
            cast.detection, shop.h100, cast.ben, decision="denied", decided_by=cast.pia,
            decided_at=factories.AT, note=f"no {number}",
        )  # fmt: skip
    QuotaRequest.objects.filter(note="no 1").update(decided_at=factories.AT + timedelta(hours=1))
    client = browse(cast.ben)
    first = client.get(URL)
    assert [line.note for line, _ in first.context["decided"]] == [  # the last answer first
        "no 1", *(f"no {number}" for number in range(22, 3, -1)),
    ]  # fmt: skip
    second = client.get(first.context["older_url"])
    assert [line.note for line, _ in second.context["decided"]] == ["no 3", "no 2", "no 0"]
    waiting = factories.quota_request(cast.detection, shop.h100, cast.ben)
    for wrong in ("x", str(waiting.id)):
        assert client.get(URL, {"before": wrong}).status_code == 404


def test_a_poll_is_204_until_something_changes(
    browse: Browse, cast: Cast, shop: Shop, settled: None
) -> None:
    client = browse(cast.pia)
    rev = client.get(URL).context["rev"]
    assert client.get(URL, {"rev": rev}, headers=HTMX).status_code == 204
    factories.quota_request(cast.detection, shop.h100, cast.ben)
    changed = client.get(URL, {"rev": rev}, headers=HTMX)
    assert changed.content.lstrip().startswith(b'<div id="requests"')


def test_it_rejects_post(browse: Browse, cast: Cast) -> None:
    assert browse(cast.ben).post(URL).status_code == 405


def test_what_was_asked_for_at_once_is_told_with_each(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    whole, cut = asking.open_all(
        actor=actor_for(user=cast.ben), project=cast.detection, reason="Both.", at=factories.AT,
        lines=[Line(of, Allotment(nominal_milli=12_000)) for of in (shop.h100, shop.slice)],
    )  # fmt: skip
    client = browse(cast.pia)
    page = client.get(URL).content.decode()
    assert f'<a href="#r-{cut.id}">12 {shop.slice.name}</a>' in page
    assert f'<a href="#r-{whole.id}">12 h100-80gb</a>' in page
    requests.deny(actor=actor_for(user=cast.pia), request=cut, note="No.", at=factories.AT)
    page = client.get(URL).content.decode()
    assert f'<a href="#r-{cut.id}">12 {shop.slice.name}</a> <span class="muted">denied' in page
    assert "with 12 h100-80gb" in page


def test_a_card_says_on_which_clusters_its_flavor_is(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    for flavor in (shop.h100, shop.slice):
        factories.quota_request(cast.detection, flavor, cast.ben)
    page = browse(cast.pia).get(URL).content.decode()
    assert "<dd>north <span" in page
    assert "<dd>none has any <span" in page
