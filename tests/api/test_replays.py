"""The last week with another weight or quota, by API."""

from typing import Any

import pytest
from django.test import Client

from tests import factories
from tests.conftest import Cast

pytestmark = pytest.mark.usefixtures("one_moment")
URL = "/api/v1/replays"


def asked(cast: Cast, body: dict[str, Any]) -> tuple[int, Any]:  # Any: JSON
    client = Client()
    client.force_login(cast.oz)
    answer = client.post(URL, body, content_type="application/json")
    return answer.status_code, answer.json()


def test_a_weight_and_a_quota_are_played(cast: Cast) -> None:
    flavor = factories.flavor()
    factories.node(factories.cluster(), "n1", gpus=4)
    factories.quota(cast.detection, flavor, 4000)
    factories.workload(cast.detection, cast.ben, [flavor], submitted_at=factories.AT)
    project = str(cast.detection.id)
    for body in (
        {"project": project, "weight": 3},
        {"tenant": str(cast.vision.id), "weight": 3},
        {"project": project, "flavor": flavor.name, "nominal_milli": 0},
    ):
        status, told = asked(cast, body)
        assert status == 200, told
        assert told["step_s"] == 600


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({}, "Name one change"),
        ({"weight": 3}, "Name one change"),
        ({"project": "<project>", "tenant": "<project>", "weight": 3}, "Name one change"),
        ({"project": "<project>", "flavor": "h100"}, "Name one change"),
        ({"project": "<project>", "flavor": "none", "nominal_milli": 1}, "no such flavor"),
        ({"project": "<project>", "weight": 1001}, "1000"),
        ({"project": "<project>", "weight": 3, "wait": 1}, "wait"),
    ],
)
def test_what_is_no_change_is_refused(cast: Cast, body: dict[str, Any], told: str) -> None:
    filled = {key: str(cast.detection.id) if v == "<project>" else v for key, v in body.items()}
    status, problem = asked(cast, filled)
    assert status == 400
    assert told in str(problem)
