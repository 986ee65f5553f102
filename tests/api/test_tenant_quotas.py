"""/tenant-quotas, and the warnings of whoever promises more than there is."""

from collections.abc import Callable
from typing import Any

import pytest
from rest_framework.test import APIClient

from clusters.models import Flavor
from tenants.models import TenantQuota, User
from tests import factories
from tests.conftest import Cast

type Api = Callable[[User | None], APIClient]

URL = "/api/v1/tenant-quotas"


@pytest.fixture
def h100(db: None) -> Flavor:
    """Eight of them."""
    made = factories.flavor()
    factories.node(factories.cluster(), gpus=8)
    return made


def asked(cast: Cast, **fields: Any) -> dict[str, Any]:  # Any: JSON values
    return {
        "tenant": str(cast.vision.id),
        "flavor": "h100-80gb",
        "nominal_milli": 6000,
        "borrowing_limit_milli": 2000,
        "lending_limit_milli": None,
        "version": 0,
    } | fields


def test_an_operator_sets_it_and_whoever_sees_the_tenant_sees_it(
    api: Api, cast: Cast, h100: Flavor
) -> None:
    answer = api(cast.oz).post(URL, asked(cast), format="json")
    assert answer.status_code == 200
    assert answer.json()["warnings"] == []
    [row] = api(cast.ben).get(URL).json()["items"]
    assert row == {
        "id": str(TenantQuota.objects.get().id),
        "tenant": str(cast.vision.id),
        "flavor": "h100-80gb",
        "nominal_milli": 6000,
        "borrowing_limit_milli": 2000,
        "lending_limit_milli": None,
        "version": 1,
        "enforce_at": None,
    }
    assert api(cast.cleo).get(URL).json()["items"] == []
    assert api(cast.cleo).get(URL, {"tenant": str(cast.vision.id)}).status_code == 404
    assert len(api(cast.oz).get(URL, {"flavor": "h100-80gb"}).json()["items"]) == 1
    assert api(cast.oz).get(URL, {"flavor": "other"}).json()["items"] == []


def test_what_was_seen_too_long_ago_is_refused(api: Api, cast: Cast, h100: Flavor) -> None:
    client = api(cast.oz)
    client.post(URL, asked(cast), format="json")
    late = client.post(URL, asked(cast, nominal_milli=1000), format="json")
    assert (late.status_code, late.json()["code"]) == (409, "version-mismatch")
    assert TenantQuota.objects.get().nominal_milli == 6000


@pytest.mark.parametrize(
    ("wrong", "pointer"),
    [
        ({"nominal_milli": -1}, "/nominal_milli"),
        ({"nominal_milli": 10**12 + 1}, "/nominal_milli"),
        ({"borrowing_limit_milli": 0.5}, "/borrowing_limit_milli"),
        ({"lending_limit_milli": 1500}, "/lending_limit_milli"),
        ({"flavor": "none"}, "/flavor"),
        ({"tenant": "x"}, "/tenant"),
        ({"shares": 3}, "/shares"),
    ],
)
def test_bad_input_says_where_and_changes_nothing(
    api: Api, cast: Cast, h100: Flavor, wrong: dict[str, Any], pointer: str
) -> None:
    answer = api(cast.oz).post(URL, asked(cast, **wrong), format="json")
    assert answer.status_code == 400
    assert [problem["pointer"] for problem in answer.json()["errors"]] == [pointer]
    assert not TenantQuota.objects.exists()


def test_more_than_there_is_is_set_and_warned_of_with_numbers(
    api: Api, cast: Cast, h100: Flavor
) -> None:
    client = api(cast.oz)
    told = client.post(URL, asked(cast, nominal_milli=9000), format="json").json()
    assert told["warnings"] == [
        "9 h100-80gb are guaranteed in the whole fleet, which has 8: 1 too many."
    ]
    body = asked(cast, nominal_milli=2000, project=str(cast.detection.id))
    del body["tenant"]
    told = client.post("/api/v1/quotas", body, format="json").json()
    assert told["warnings"] == [
        "11 h100-80gb are guaranteed in the whole fleet, which has 8: 3 too many."
    ]
