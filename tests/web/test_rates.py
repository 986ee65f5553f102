"""The page of prices: what holds, what comes, what is over, and who may set one."""

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from controlplane.audit.models import AuditEvent
from tenants.models import Rate
from tests import factories
from tests.conftest import Cast
from tests.factories import AT
from tests.web.conftest import Browse, Shop

URL = reverse("rate-list")
pytestmark = pytest.mark.usefixtures("settled")


def form(shop: Shop, **fields: str) -> dict[str, str]:
    return {
        "flavor": shop.h100.name,
        "cluster": "",
        "price_per_hour": "3.25",
        "starts_at": "",
    } | fields


def test_everybody_sees_prices_and_who_operates_the_fleet_sets_them(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    assert "A new price" not in browse(cast.ben).get(URL).content.decode()
    oz = browse(cast.oz)
    assert "A new price" in oz.get(URL).content.decode()
    was = shop.rate
    assert oz.post(URL, form(shop, price_per_hour="3.250001"))["Location"] == URL
    was.refresh_from_db()
    assert was.during.upper == AT  # ended, not changed
    page = browse(cast.ben).get(URL).content.decode()
    assert "3.250001" in page
    assert [rate.id for rate in browse(cast.ben).get(URL).context["over"]] == [was.id]
    assert AuditEvent.objects.filter(action="rate.set").count() == 1


def test_a_price_of_a_cluster_to_come_is_told(browse: Browse, cast: Cast, shop: Shop) -> None:
    later = timezone.localtime(AT + timedelta(days=3)).strftime("%Y-%m-%dT%H:%M")
    oz = browse(cast.oz)
    oz.post(URL, form(shop, cluster=shop.north.name, starts_at=later))
    answer = oz.get(URL)
    [rate] = answer.context["to_come"]
    assert (rate.cluster, rate.during.lower) == (shop.north, AT + timedelta(days=3))
    assert [each.id for each in answer.context["in_force"]] == [shop.rate.id]


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"price_per_hour": "-1"}, "greater than or equal to 0"),
        ({"price_per_hour": "0.0000001"}, "no more than 6 decimal places"),
        ({"price_per_hour": "1000000"}, "no more than 6 digits before"),
        ({"price_per_hour": "much"}, "Enter a number"),
        ({"flavor": "none"}, "none is not one of the available choices"),
        ({"cluster": "none"}, "none is not one of the available choices"),
        ({"starts_at": "2020-01-01T00:00"}, "A price begins now or later"),
        ({"currency": "USD"}, "currency"),
    ],
)
def test_what_is_no_price_is_told_beside_its_field(
    browse: Browse, cast: Cast, shop: Shop, fields: dict[str, str], told: str
) -> None:
    answer = browse(cast.oz).post(URL, form(shop, **fields))
    assert answer.status_code in {400, 422}
    assert told in answer.content.decode()
    assert Rate.objects.count() == 1


def test_a_second_price_from_the_same_moment_is_a_conflict(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    oz = browse(cast.oz)
    for expected in (303, 409):
        assert oz.post(URL, form(shop)).status_code == expected


def test_what_was_charged_keeps_its_price(browse: Browse, cast: Cast, shop: Shop) -> None:
    charge = factories.charge(factories.usage(shop.placed), shop.rate)
    browse(cast.oz).post(URL, form(shop, price_per_hour="9"))
    before = charge.amount, charge.rate_id
    charge.refresh_from_db()
    assert (charge.amount, charge.rate_id) == before
