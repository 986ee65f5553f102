"""The last week with another weight, quota or policy, by API."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from controlplane.kernel import clock
from tenants.access import actor_for
from tenants.models import User
from tenants.policy import Rules
from tenants.services import policies
from tests import factories
from tests.conftest import Cast

pytestmark = pytest.mark.usefixtures("one_moment")
URL = "/api/v1/replays"


def asked(
    cast: Cast, body: dict[str, Any], *, by: User | None = None
) -> tuple[int, Any]:  # Any: JSON
    client = Client()
    client.force_login(by or cast.oz)
    answer = client.post(URL, body, content_type="application/json")
    return answer.status_code, answer.json()


def test_a_weight_and_a_quota_are_played(cast: Cast) -> None:
    flavor = factories.flavor()
    factories.node(factories.cluster(), "n1", gpus=4)
    factories.quota(cast.detection, flavor, 4000)
    factories.rate(flavor, "2.50")
    factories.workload(
        cast.detection, cast.ben, [flavor], submitted_at=clock.now() - timedelta(hours=1)
    )
    project = str(cast.detection.id)
    for body in (
        {"project": project, "weight": 3},
        {"tenant": str(cast.vision.id), "weight": 3},
        {"project": project, "flavor": flavor.name, "nominal_milli": 0},
        {
            "project": project,
            "flavor": flavor.name,
            "nominal_milli": 0,
            "lending_limit_milli": None,
        },
    ):
        status, told = asked(cast, body)
        assert status == 200, told
        assert (told["step_s"], told["left_count"], told["currency"]) == (600, 0, "EUR")
        [of_project] = told["projects"]
        [used] = of_project["used"]
        starts = "weight" in body  # nothing starts on a nominal of 0
        assert used["flavor"] == flavor.name
        assert 0 < used["before_milli_s"] <= 1000 * 3600
        assert used["after_milli_s"] == (used["before_milli_s"] if starts else 0)
        costs = used["before_milli_s"] * Decimal("2.5") / 3_600_000
        assert Decimal(used["before_cost"]) == round(costs, 6)
        assert used["after_cost"] == (used["before_cost"] if starts else "0.000000")
        assert of_project["borrowed"] == []


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({}, "Name one change"),
        ({"weight": 3}, "Name one change"),
        ({"project": "<project>", "tenant": "<project>", "weight": 3}, "Name one change"),
        ({"project": "<project>", "flavor": "h100"}, "Name one change"),
        ({"project": "<project>", "flavor": "none", "nominal_milli": 1}, "no such flavor"),
        ({"project": "<project>", "weight": 3, "lending_limit_milli": 1}, "Name one change"),
        ({"project": "<project>", "weight": 1001}, "1000"),
        ({"project": "<project>", "weight": 3, "wait": 1}, "wait"),
    ],
)
def test_what_is_no_change_is_refused(cast: Cast, body: dict[str, Any], told: str) -> None:
    filled = {key: str(cast.detection.id) if v == "<project>" else v for key, v in body.items()}
    status, problem = asked(cast, filled)
    assert status == 400
    assert told in str(problem)


def test_a_policy_is_played_of_a_project_a_tenant_and_the_fleet(cast: Cast) -> None:
    flavor = factories.flavor()
    factories.workload(
        cast.detection, cast.ben, [flavor], submitted_at=clock.now() - timedelta(hours=1)
    )
    for place in ({"project": str(cast.detection.id)}, {"tenant": str(cast.vision.id)}, {}):
        status, told = asked(cast, {**place, "policy": {"images": ["other/*"]}})
        assert status == 200, told
        [project] = told["projects"]
        assert (project["arrivals_count"], project["refused_count"]) == (1, 1)
        assert project["refused_by"] == [{"rule": "images", "count": 1}]


@pytest.mark.parametrize(
    ("body", "pointer", "told"),
    [
        ({"project": "<none>", "policy": {"max_pods": 1}}, "", "no such project"),
        ({"project": "<project>", "policy": {"max_pods": 9}}, "/policy/max_pods", "more than"),
        ({"project": "<project>", "policy": {"images": ["a*"]}}, "/policy/images", "no image"),
        ({"project": "<project>", "policy": {"max_pods": "1"}}, "/policy/max_pods", "whole"),
        ({"project": "<project>", "policy": {"most": 1}}, "/policy/most", "no such field"),
        ({"project": "<project>", "policy": 3}, "/policy", "object is wanted"),
        ({"project": "<project>", "weight": 3, "policy": {}}, "", "Name one change"),
    ],
)
def test_a_policy_that_can_not_be_is_refused_where_it_is_wrong(
    cast: Cast, body: dict[str, Any], pointer: str, told: str
) -> None:
    policies.set_policy(
        actor=actor_for(user=cast.oz),
        of=cast.vision,
        rules=Rules(max_pods=8),
        version=0,
        at=factories.AT,
    )
    stands_for = {"<project>": str(cast.detection.id), "<none>": str(cast.oz.id)}
    filled = {key: stands_for.get(str(v), v) for key, v in body.items()}
    status, problem = asked(cast, filled)
    assert status == (404 if not pointer and "weight" not in body else 400)
    assert told in str(problem)
    assert pointer in str(problem)


def test_who_may_say_a_policy_may_play_it(cast: Cast) -> None:
    body = {"project": str(cast.detection.id), "policy": {"max_pods": 1}}
    for user, status in ((cast.ada, 200), (cast.ben, 403), (cast.pia, 403), (cast.cleo, 404)):
        assert asked(cast, body, by=user)[0] == status
    assert asked(cast, {"policy": {"max_pods": 1}}, by=cast.ada)[0] == 403
