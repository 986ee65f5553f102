"""/: what runs, what waits, what was spent, by role."""

from django.test import Client
from django.urls import reverse

from scheduler.models import Estimate
from tests import factories
from tests.conftest import Cast
from tests.web.conftest import HTMX, Browse, Shop

URL = reverse("home")


def test_it_shows_what_runs_and_what_waits_with_its_reason(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    page = browse(cast.ben).get(URL).content.decode()
    assert "detector" in page
    assert "sweep" in page
    assert "1 asked, 0 free in one cluster." in page
    assert "nine times in ten by" in page
    assert f'as of <time datetime="{factories.AT.isoformat()}">' in page


def test_a_try_without_a_basis_says_when_it_was(browse: Browse, cast: Cast, shop: Shop) -> None:
    Estimate.objects.update(p50_s=None, p90_s=None)
    page = browse(cast.ben).get(URL).content.decode()
    told = page[page.index("no basis for an estimate") :]
    assert told.index(f'as of <time datetime="{factories.AT.isoformat()}">') < 100


def test_it_asks_to_sign_in() -> None:
    answer = Client().get(URL)
    assert answer.status_code == 302
    assert answer.headers["Location"].startswith(reverse("login"))


def test_it_rejects_post(browse: Browse, cast: Cast) -> None:
    assert browse(cast.ben).post(URL).status_code == 405


def test_an_outsider_sees_none_of_it(browse: Browse, cast: Cast, shop: Shop) -> None:
    page = browse(cast.cleo).get(URL).content.decode()
    assert "detector" not in page
    assert "sweep" not in page
    assert "Nothing runs" in page


def test_an_approver_sees_the_requests_that_wait_for_an_answer(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    factories.quota_request(cast.detection, shop.h100, cast.ben, reason="For the demo day.")
    assert "For the demo day." in browse(cast.pia).get(URL).content.decode()
    own = browse(cast.ben).get(URL).content.decode()
    assert "Waits for your answer" not in own
    assert "1 of your quota requests waits" in own


def test_a_viewer_sees_no_money(browse: Browse, cast: Cast, shop: Shop) -> None:
    assert "Spent since" not in browse(cast.vik).get(URL).content.decode()
    assert "Spent since" in browse(cast.ben).get(URL).content.decode()


def test_a_poll_is_answered_204_until_something_changes(
    browse: Browse, cast: Cast, shop: Shop, settled: None
) -> None:
    client = browse(cast.ben)
    first = client.get(URL)
    rev = first.context["rev"]
    assert client.get(URL, {"rev": rev}, headers=HTMX).status_code == 204
    factories.workload(cast.detection, cast.ben, [shop.h100], "another")
    changed = client.get(URL, {"rev": rev}, headers=HTMX)
    assert changed.status_code == 200
    assert changed.content.lstrip().startswith(b'<div id="board"')
    assert b"another" in changed.content
    assert "HX-Request" in changed.headers["Vary"]


def test_a_cluster_in_trouble_is_named(browse: Browse, cast: Cast, shop: Shop) -> None:
    factories.cluster("east", state="lost")
    page = browse(cast.ben).get(URL).content.decode()
    assert "nothing new starts there" in page


def test_made_up_time_zones_are_utc(browse: Browse, cast: Cast, shop: Shop) -> None:
    client = browse(cast.ben)
    for zone in ("../../etc/passwd", "Nowhere/Land", "Europe", "\x00"):
        client.cookies["berth_tz"] = zone
        assert client.get(URL).status_code == 200
