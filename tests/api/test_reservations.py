"""Reservations over the API: made, listed, cancelled; what a bad body is told."""

from collections.abc import Callable
from typing import Any

import pytest
from rest_framework.test import APIClient

from tenants.models import Reservation, User
from tests import factories
from tests.api.access_table import reserved
from tests.api.test_bad_input import refused
from tests.conftest import Cast, Unchanged

type Api = Callable[[User | None], APIClient]

URL = "/api/v1/reservations"


@pytest.fixture(autouse=True)
def quota(cast: Cast) -> None:
    factories.quota(cast.detection, factories.flavor(), 4000, borrowing_limit_milli=0)
    factories.node(factories.cluster(), gpus=3)


def test_one_is_made_listed_and_cancelled(api: Api, cast: Cast) -> None:
    oz = api(cast.oz)
    answer = oz.post(URL, reserved(cast.detection) | {"note": "A demo."}, format="json")
    assert answer.status_code == 201
    made = answer.json()
    assert (made["amount_milli"], made["flavor"], made["made_by"]) == (1000, "h100-80gb", "oz")
    assert made["starts_at"] == "2100-01-01T00:00:00Z"
    for user, query in ((cast.oz, ""), (cast.ben, f"?project={cast.detection.id}")):
        assert api(user).get(URL + query).json()["items"] == [made]
    assert api(cast.cleo).get(URL).json()["items"] == []
    assert [oz.delete(f"{URL}/{made['id']}").status_code for _ in range(2)] == [204, 409]
    assert oz.get(URL).json()["items"] == []


def test_one_of_a_tenant_is_made_listed_and_cancelled(api: Api, cast: Cast) -> None:
    oz, body = api(cast.oz), reserved(cast.detection) | {"project": None}
    answer = oz.post(URL, body | {"tenant": str(cast.vision.id)}, format="json")
    assert answer.status_code == 201, answer.json()
    made = answer.json()
    assert (made["project"], made["tenant"]) == (None, str(cast.vision.id))
    assert api(cast.ben).get(URL, {"tenant": str(cast.vision.id)}).json()["items"] == [made]
    assert api(cast.ben).get(URL).json()["items"] == [made]
    assert api(cast.ben).get(URL, {"project": str(cast.detection.id)}).json()["items"] == []
    assert api(cast.cleo).get(URL).json()["items"] == []
    assert api(cast.cleo).get(URL, {"tenant": str(cast.vision.id)}).status_code == 404
    assert api(cast.ben).delete(f"{URL}/{made['id']}").status_code == 403
    assert oz.delete(f"{URL}/{made['id']}").status_code == 204


def test_a_weekly_one_tells_its_zone_and_its_end(api: Api, cast: Cast) -> None:
    body = reserved(cast.detection) | {"weekly_until": "2100-01-20", "zone": "Europe/Berlin"}
    made = api(cast.oz).post(URL, body, format="json").json()
    assert (made["zone"], made["last_ends_at"]) == ("Europe/Berlin", "2100-01-16T00:00:00Z")
    assert made["ends_at"] == "2100-01-02T00:00:00Z"


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"amount_milli": 4001}, ("/amount_milli", "out-of-range")),
        ({"amount_milli": 0}, ("/amount_milli", "min-value")),
        ({"ends_at": "2100-01-01T00:00:00Z"}, ("/ends_at", "invalid")),
        ({"starts_at": "2000-01-01T00:00:00Z", "ends_at": "2000-01-02T00:00:00Z"},
         ("/ends_at", "invalid")),
        ({"starts_at": "tomorrow"}, ("/starts_at", "invalid")),
        ({"flavor": "h200"}, ("/flavor", "unknown-flavor")),
        ({"every": "week"}, ("/every", "unknown-field")),
        ({"amount_milli": 3001}, ("/amount_milli", "out-of-range")),
        ({"zone": "Europe/Berlin"}, ("/weekly_until", "required")),
        ({"weekly_until": "2100-02-01"}, ("/zone", "required")),
        ({"weekly_until": "soon", "zone": "UTC"}, ("/weekly_until", "invalid")),
        ({"weekly_until": "2099-12-31", "zone": "UTC"}, ("/weekly_until", "out-of-range")),
        ({"weekly_until": "2100-02-01", "zone": "Mars"}, ("/zone", "invalid")),
    ],
)  # fmt: skip
def test_a_bad_body_is_told_where_it_is_wrong(
    api: Api, cast: Cast, nothing_stored: Unchanged,
    change: dict[str, Any], fault: tuple[str, str],
) -> None:  # fmt: skip
    with nothing_stored():
        answer = api(cast.oz).post(URL, reserved(cast.detection) | change, format="json")
    assert fault in refused(answer)
    assert not Reservation.objects.exists()
