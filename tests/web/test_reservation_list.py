"""/reservations: what is kept and when, a new one, cancelling one."""

from datetime import timedelta

import pytest
from django.urls import reverse

from controlplane.kernel import clock
from tenants.models import Reservation, Role
from tests import factories
from tests.conftest import Cast
from tests.web.conftest import Browse, Shop

URL = reverse("reservation-list")


def form(cast: Cast, **changes: str) -> dict[str, str]:
    return {
        "of": str(cast.detection.id), "flavor": "h100-80gb", "amount": "2.5",
        "starts_at": "2100-01-01T10:00", "ends_at": "2100-01-01T12:00", "note": "A demo.",
    } | changes  # fmt: skip


def test_an_operator_reserves_in_their_own_time_zone(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    client = browse(cast.oz)
    client.cookies["berth_tz"] = "Europe/Berlin"
    page = client.post(URL, form(cast), follow=True).content.decode()
    assert "Reserved h100-80gb for Detection." in page
    assert "2.5 h100-80gb" in page
    made = Reservation.objects.get()
    assert (made.amount_milli, made.starts_at.isoformat()) == (2500, "2100-01-01T09:00:00+00:00")


def test_one_of_a_tenant_is_made_shown_on_both_pages_and_cancelled(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    client, tenant_page = browse(cast.oz), reverse("tenant-detail", args=[cast.vision.id])
    assert "Reserved for all of it" not in client.get(tenant_page).content.decode()
    page = client.post(URL, form(cast, of=str(cast.vision.id)), follow=True).content.decode()
    assert "Reserved h100-80gb for Vision Lab." in page
    made = Reservation.objects.get()
    assert (made.project, made.tenant) == (None, cast.vision)
    for user in (cast.oz, cast.ben):
        shown = browse(user).get(URL).content.decode()
        assert "Vision Lab, all of it" in shown
        assert (reverse("reservation-cancel", args=[made.id]) in shown) is (user == cast.oz)
        of_it = browse(user).get(tenant_page).content.decode()
        assert "Reserved for all of it" in of_it
        assert "A demo." in of_it
    assert "Vision Lab" not in browse(cast.cleo).get(URL).content.decode()
    page = client.post(reverse("reservation-cancel", args=[made.id]), follow=True).content.decode()
    assert "Nothing is kept for Vision Lab by it any more." in page


def test_a_tenant_is_offered_to_who_sets_its_quotas(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    otto = factories.user("otto")
    factories.member(otto, Role.OPERATOR, at=cast.vision)
    answer = browse(otto).post(URL, form(cast, of=str(cast.vision.id)))
    assert answer.status_code == 422
    assert "not one of the available" in " ".join(answer.context["form"].errors["of"])
    assert browse(otto).post(URL, form(cast)).status_code == 303
    assert Reservation.objects.get().project == cast.detection


def test_a_weekly_one_is_shown_by_its_next_window(browse: Browse, cast: Cast, shop: Shop) -> None:
    begun, week = clock.now() - timedelta(days=3), timedelta(weeks=1)
    made = factories.reservation(
        cast.detection, shop.h100, cast.oz, starts_at=begun, ends_at=begun + timedelta(hours=1),
        zone="UTC", last_ends_at=begun + 3 * week + timedelta(hours=1),
    )  # fmt: skip
    answer = browse(cast.ben).get(URL)
    [(_, window, _)] = answer.context["reservations"]
    assert window == (made.starts_at + week, made.ends_at + week)
    page = answer.content.decode()
    assert "by the clocks of UTC" in page
    assert "has begun" not in page


def test_one_for_each_week_goes_by_the_readers_clocks(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    client = browse(cast.oz)
    client.cookies["berth_tz"] = "Europe/Berlin"
    client.post(URL, form(cast, weekly_until="2100-01-15"))
    made = Reservation.objects.get()
    assert made.zone == "Europe/Berlin"
    assert made.last_ends_at == made.ends_at + timedelta(weeks=2)


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"weekly_until": "2099-01-01"}, "weekly_until", "is not between the day on which"),
        ({"weekly_until": "soon"}, "weekly_until", "Enter a valid date"),
        ({"amount": "13"}, "amount", "may hold 12 of h100-80gb at most, and 13 is asked"),
        ({"amount": "0"}, "amount", "greater than or equal to"),
        ({"ends_at": "2100-01-01T10:00"}, "ends_at", "has to end after it begins"),
        ({"starts_at": "soon"}, "starts_at", "Enter a valid date/time"),
        ({"flavor": "h200"}, "flavor", "not one of the available"),
        ({"flavor": "h100-1g.10gb"}, "flavor", "has no quota"),
    ],
)
def test_a_bad_one_comes_back_with_what_is_wrong(
    browse: Browse, cast: Cast, shop: Shop, changes: dict[str, str], field: str, words: str
) -> None:
    answer = browse(cast.oz).post(URL, form(cast, **changes))
    assert answer.status_code == 422
    assert words in " ".join(answer.context["form"].errors[field])
    assert not Reservation.objects.exists()


def test_members_see_theirs_and_neither_form_nor_button(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    begun = factories.reservation(cast.detection, shop.h100, cast.oz, note="A demo.")
    factories.reservation(cast.dialogue, shop.h100, cast.oz, note="Elsewhere.")
    page = browse(cast.ben).get(URL).content.decode()
    assert "A demo." in page
    assert "has begun" in page
    assert "Elsewhere." not in page
    assert 'id="new"' not in page
    assert reverse("reservation-cancel", args=[begun.id]) not in page
    assert browse(cast.ben).post(URL, form(cast)).status_code == 403


def test_it_is_cancelled_once_and_then_told_that_it_is_over(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    made = factories.reservation(cast.detection, shop.h100, cast.oz)
    cancel, client = reverse("reservation-cancel", args=[made.id]), browse(cast.oz)
    for told in ("Nothing is kept for Detection by it any more.", "is over already."):
        page = client.post(cancel, follow=True).content.decode()
        assert told in page
        assert "Nothing is reserved" in page
    made.refresh_from_db()
    assert made.cancelled_at is not None
    assert clock.now() - made.cancelled_at < timedelta(minutes=5)
    assert browse(cast.ben).post(cancel).status_code == 403
    assert browse(cast.cleo).post(cancel).status_code == 404


def test_quota_leads_to_it(browse: Browse, cast: Cast) -> None:
    assert URL in browse(cast.ben).get(reverse("quota-list")).content.decode()
