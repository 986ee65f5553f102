"""Defragmentation over the API: shown, planned, called off; what a bad body is told."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from rest_framework.test import APIClient

from clusters.models import Cluster
from controlplane.kernel.throttle import Throttle
from scheduler.models import Defragmentation
from scheduler.services import asking
from tenants.models import User
from tests import factories, scenes
from tests.api.test_bad_input import refused
from tests.conftest import Cast

type Api = Callable[[User | None], APIClient]

WINDOW = {
    "budget_s": 60,
    "starts_at": "2100-01-01T10:00:00Z",
    "ends_at": "2100-01-01T11:00:00Z",
}


def url() -> str:
    return f"/api/v1/clusters/{Cluster.objects.get().id}/defragmentation"


@pytest.mark.usefixtures("one_moment")
def test_it_shows_plans_and_calls_off(api: Api, cast: Cast) -> None:
    scenes.halves(cast.detection, cast.ben)
    oz = api(cast.oz)
    shown = oz.get(url(), {"budget_s": 1_000_000_000}).json()
    [move] = shown["moves"]
    assert sorted(move) == ["frees", "lands_on", "lost_s", "name", "workload"]
    other = {"on n1": "n2", "on n2": "n1"}[move["name"]]
    assert (f"on {move['frees']}", move["lands_on"]) == (move["name"], [other])
    assert shown["before"] == {"free_nodes": 0, "slices": 0}
    assert shown["after"] == {"free_nodes": 1, "slices": 0}
    assert shown["planned"] is None
    planned = oz.post(url(), WINDOW, format="json")
    assert planned.status_code == 201
    assert oz.get(url()).json()["planned"] == planned.json()
    assert planned.json()["planned_by"] == "oz"
    assert oz.post(url(), WINDOW, format="json").status_code == 409
    assert [oz.delete(url()).status_code for _ in range(2)] == [204, 409]


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"budget_s": 0}, ("/budget_s", "min-value")),
        ({"budget_s": "60"}, ("/budget_s", "wrong-type")),
        ({"starts_at": "soon"}, ("/starts_at", "invalid")),
        ({"hours": 1}, ("/hours", "unknown-field")),
        ({"ends_at": "2100-01-01T10:00:00Z"}, ("/ends_at", "invalid")),
        ({"ends_at": "2100-02-01T10:00:00Z"}, ("/ends_at", "invalid")),
    ],
)
def test_what_is_wrong_is_said_field_by_field(
    api: Api, cast: Cast, change: dict[str, object], fault: tuple[str, str]
) -> None:
    factories.cluster()
    answer = api(cast.oz).post(url(), WINDOW | change, format="json")
    assert refused(answer) == [fault]
    assert not Defragmentation.objects.exists()


def test_of_a_cluster_that_there_is_not_there_is_none(api: Api, cast: Cast) -> None:
    missing = "/api/v1/clusters/00000000-0000-7000-8000-000000000000/defragmentation"
    assert api(cast.oz).get(missing).status_code == 404


@pytest.mark.usefixtures("one_moment")
def test_who_asks_too_often_is_told_when_to_ask_again(
    api: Api, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    factories.cluster()
    monkeypatch.setattr(asking, "ASKED", Throttle(most=1, window=timedelta(minutes=1)))
    oz = api(cast.oz)
    assert oz.get(url()).status_code == 200
    for address in (url(), "/api/v1/layouts/advice"):
        answer = oz.get(address)
        assert (answer.status_code, answer.json()["code"]) == (429, "too-often")
        assert 1 <= int(answer.headers["Retry-After"]) <= 60
