"""Setting prices: one at a moment, never in the past, each closed where the next begins."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from rest_framework.test import APIClient

from controlplane.kernel import clock
from tenants.models import Rate, User
from tests import factories
from tests.api.test_fleet import RATES, audited, faults
from tests.conftest import Cast, Unchanged

type Api = Callable[[User | None], APIClient]
type Json = Any  # JSON values


def price(**fields: Json) -> Json:
    return {"flavor": "h100-80gb", "price_per_hour": "3.10", "currency": "EUR"} | fields


def test_a_price_ends_the_one_before_it_at_its_beginning(api: Api, cast: Cast) -> None:
    flavor = factories.flavor()
    old = factories.rate(flavor)
    there = factories.rate(flavor, "9", cluster=factories.cluster("north"))
    start = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)
    body = price(cluster=None) | {"from": start.isoformat()}
    answer = api(cast.oz).post(RATES, body, format="json")
    assert answer.status_code == 201, answer.content
    made = Rate.objects.get(id=answer.json()["id"])
    old.refresh_from_db()
    there.refresh_from_db()
    assert (old.during.upper, made.during.lower, made.during.upper) == (start, start, None)
    assert (made.price_per_hour, made.cluster, there.during.upper) == (Decimal("3.1"), None, None)
    assert answer.json() in api(cast.ben).get(RATES).json()["items"]
    [(action, by, before, after)] = audited()
    assert (action, by, before["id"], after["id"]) == ("rate.set", "oz", str(old.id), str(made.id))


def test_a_price_of_one_cluster_begins_now_by_default(api: Api, cast: Cast) -> None:
    anywhere = factories.rate(factories.flavor())
    factories.cluster("north")
    before = clock.now()
    answer = api(cast.oz).post(RATES, price(cluster="north", price_per_hour="0"), format="json")
    assert answer.status_code == 201
    made = Rate.objects.get(cluster__name="north")
    assert before <= made.during.lower <= clock.now()
    anywhere.refresh_from_db()
    assert anywhere.during.upper is None


@pytest.mark.parametrize("days", [0, 5])
def test_a_price_that_is_set_for_later_is_in_the_way(
    api: Api, cast: Cast, nothing_stored: Unchanged, days: int
) -> None:
    old = factories.rate(factories.flavor())
    soon = datetime.now(UTC) + timedelta(days=10)
    client = api(cast.oz)
    assert (
        client.post(RATES, price() | {"from": soon.isoformat()}, format="json").status_code == 201
    )
    with nothing_stored():
        again = price() | {"from": (soon - timedelta(days=days)).isoformat()}
        answer = client.post(RATES, again, format="json")
    assert answer.status_code == 409
    assert [each["pointer"] for each in answer.json()["errors"]] == ["/from"]
    old.refresh_from_db()
    assert old.during.upper == soon


@pytest.mark.parametrize(
    ("change", "pointer", "code"),
    [
        ({"from": "2020-01-01T00:00:00Z"}, "/from", "out-of-range"),
        ({"from": "2030-01-01"}, "/from", "invalid"),
        ({"from": "2030-01-01T00:00:00"}, "/from", "invalid"),
        ({"price_per_hour": 3.1}, "/price_per_hour", "wrong-type"),
        ({"price_per_hour": "-1"}, "/price_per_hour", "invalid"),
        ({"price_per_hour": "1e3"}, "/price_per_hour", "invalid"),
        ({"price_per_hour": "NaN"}, "/price_per_hour", "invalid"),
        ({"price_per_hour": "\u0661"}, "/price_per_hour", "invalid"),
        ({"price_per_hour": "1.0000001"}, "/price_per_hour", "invalid"),
        ({"price_per_hour": "1000000"}, "/price_per_hour", "invalid"),
        ({"currency": "USD"}, "/currency", "invalid"),
        ({"flavor": "h200"}, "/flavor", "unknown-flavor"),
        ({"cluster": "nowhere"}, "/cluster", "unknown-cluster"),
        ({"during": "now"}, "/during", "unknown-field"),
    ],
)
def test_it_refuses_a_bad_price(
    api: Api, cast: Cast, nothing_stored: Unchanged, change: Json, pointer: str, code: str
) -> None:
    factories.rate(factories.flavor())
    with nothing_stored():
        answer = api(cast.oz).post(RATES, price() | change, format="json")
    assert faults(answer) == [(pointer, code)]
    assert Rate.objects.get().during.upper is None
