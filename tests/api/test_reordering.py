"""Reordering over the API, and what a bad body is told."""

from collections.abc import Callable
from typing import Any

import pytest
from rest_framework.test import APIClient

from clusters.models import Flavor
from controlplane.audit.models import AuditEvent
from scheduler.models import Workload
from tenants.models import User
from tests import factories
from tests.api.test_bad_input import refused
from tests.conftest import Cast

type Api = Callable[[User | None], APIClient]
type Json = dict[str, Any]  # Any: JSON values


@pytest.fixture
def works(cast: Cast) -> list[Workload]:
    flavor: Flavor = factories.flavor()
    return [factories.workload(cast.detection, cast.ben, [flavor], name) for name in "ab"]


def path(work: Workload) -> str:
    return f"/api/v1/workloads/{work.id}/priority"


def test_it_answers_with_what_is_there_now_and_where_it_stands(
    api: Api, cast: Cast, works: list[Workload]
) -> None:
    answer = api(cast.ben).post(path(works[1]), {"to": "first", "version": 1}, format="json")
    assert answer.json() == {
        "id": str(works[1].id),
        "name": "b",
        "state": "PENDING",
        "version": 2,
        "priority_class": "normal",
        "position": 1,
    }
    queue = f"/api/v1/queues/{cast.detection.id}"
    first = api(cast.ben).get(queue, {"limit": 1}).json()
    assert [row["name"] for row in first["items"]] == ["b"]
    rest = api(cast.ben).get(queue, {"limit": 1, "cursor": first["next"]}).json()
    assert [(row["position"], row["name"]) for row in rest["items"]] == [(2, "a")]


def test_a_key_reorders_once(api: Api, cast: Cast, works: list[Workload]) -> None:
    for _ in range(2):
        answer = api(cast.ben).post(
            path(works[1]),
            {"priority_class": "high", "version": 1},
            format="json",
            headers={"Idempotency-Key": "k" * 16},
        )
        assert answer.status_code == 200
    assert AuditEvent.objects.filter(action="workload.reorder").count() == 1


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"to": "up"}, ("/to", "invalid-choice")),
        ({"priority_class": "utmost"}, ("/priority_class", "invalid-choice")),
        ({"priority_class": "high", "priority": 7}, ("/priority", "unknown-field")),
        ({"to": "first", "version": 0}, ("/version", "min-value")),
    ],
)
def test_a_bad_body_changes_nothing(
    api: Api, cast: Cast, works: list[Workload], body: Json, told: tuple[str, str]
) -> None:
    answer = api(cast.ben).post(path(works[1]), body, format="json")
    assert told in refused(answer)
    assert Workload.objects.filter(version=1, priority_class="normal").count() == 2


@pytest.mark.parametrize(
    ("body", "status", "code", "told"),
    [
        ({"priority_class": "low", "version": 3}, 409, "version-mismatch", "at version 1 by now"),
        ({}, 400, "invalid", "Say what changes: a priority_class, or first or last, or both."),
    ],
)
def test_what_is_stale_or_says_nothing_is_refused(
    api: Api, cast: Cast, works: list[Workload], body: Json, status: int, code: str, told: str
) -> None:
    answer = api(cast.ben).post(path(works[0]), body, format="json")
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert told in answer.json()["detail"]
