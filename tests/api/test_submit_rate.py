"""Caps on what is submitted in a minute, of a project and of each submitter in it."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from rest_framework.test import APIClient

from scheduler.models import Workload
from scheduler.services import workloads
from scheduler.services.submit_rate import RateReached
from tenants.access import actor_for
from tenants.models import Project, User
from tests import factories
from tests.conftest import Cast
from tests.flows.world import spec

type Api = Callable[[User | None], APIClient]

URL = "/api/v1/workloads"
S = timedelta(seconds=1)
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def fleet(transactional_db: None, cast: Cast) -> None:
    factories.node(factories.cluster())
    factories.quota(cast.detection, factories.flavor())


def post(client: APIClient, cast: Cast, *, key: str = "") -> Any:  # Any: DRF's answer
    body = factories.submission(cast.detection)
    return client.post(URL, body, format="json", headers={"Idempotency-Key": key} if key else {})


def submit(cast: Cast, *, by: User | None = None, after_s: float = 0, count: int = 1) -> None:
    workloads.submit(
        actor=actor_for(user=by or cast.ben),
        project=cast.detection,
        specs=[spec("h100-80gb")] * count,
        at=factories.AT + after_s * S,
    )


def test_what_is_beyond_is_refused_with_the_cap_the_count_and_until_when(
    api: Api, cast: Cast
) -> None:
    Project.objects.update(user_max_submits_a_minute=2, max_submits_a_minute=3)
    ben, ada = api(cast.ben), api(cast.ada)
    assert [post(ben, cast).status_code for _ in range(2)] == [201, 201]
    refused = post(ben, cast)
    wait = int(refused.headers["Retry-After"])
    assert (refused.status_code, refused.json()["code"]) == (429, "too-often")
    assert 50 <= wait <= 60
    assert refused.json()["detail"] == (
        "ben in Detection has submitted 2 workloads in the last minute; with 1 more it would pass"
        f" the cap of 2. That many may be submitted in {wait} s."
    )
    assert post(ada, cast).status_code == 201
    assert post(ada, cast).json()["detail"].startswith("Detection has submitted 3 workloads")
    assert Workload.objects.count() == 3


def test_an_answer_that_is_repeated_does_not_count(api: Api, cast: Cast) -> None:
    Project.objects.update(max_submits_a_minute=2)
    ben = api(cast.ben)
    assert [post(ben, cast, key="one").status_code for _ in range(5)] == [201] * 5
    assert [post(ben, cast, key=key).status_code for key in ("two", "three", "three")] == [
        201, 429, 429,
    ]  # fmt: skip


def test_it_is_possible_again_when_it_says(cast: Cast) -> None:
    Project.objects.update(max_submits_a_minute=3)
    for after_s in (0, 10, 20):
        submit(cast, after_s=after_s)
    for count, wait in ((1, 30), (2, 40), (3, 50)):
        with pytest.raises(RateReached) as refused:
            submit(cast, after_s=30, count=count)
        assert refused.value.wait == wait
    with pytest.raises(RateReached):
        submit(cast, after_s=59.9)
    submit(cast, after_s=60)
    with pytest.raises(RateReached):
        submit(cast, after_s=61)


def test_a_batch_counts_each_and_an_array_one(api: Api, cast: Cast) -> None:
    Project.objects.update(max_submits_a_minute=2)
    ben, one = api(cast.ben), factories.submission(cast.detection)
    project = one.pop("project")
    answer = ben.post(f"{URL}/batch", {"project": project, "workloads": [one] * 3}, format="json")
    assert (answer.status_code, answer.json()["code"]) == (400, "queue-full")
    assert "may submit 2 workloads a minute, and these are 3 at once" in answer.json()["detail"]
    array = {"project": project, **one, "size": 40}
    assert ben.post("/api/v1/arrays", array, format="json").status_code == 201
    assert [post(ben, cast).status_code for _ in range(2)] == [201, 429]
    assert ben.post("/api/v1/arrays", array, format="json").status_code == 429
    assert Workload.objects.count() == 41


@pytest.mark.parametrize("cap", ["max_submits_a_minute", "user_max_submits_a_minute"])
def test_of_many_who_submit_at_once_no_more_get_in_than_may(cast: Cast, cap: str) -> None:
    Project.objects.update(**{cap: 3})

    def try_it(_: int) -> bool:
        try:
            submit(cast)
        except RateReached:
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(8) as threads:
        assert sorted(threads.map(try_it, range(12))) == [False] * 9 + [True] * 3
    assert Workload.objects.count() == 3
