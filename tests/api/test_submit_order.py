"""What a submission does before its transaction, and what in it: planning, counting a queue."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from rest_framework.test import APIClient

from controlplane.api.models import IdempotencyKey
from scheduler.models import Workload
from scheduler.services import admissibility, workloads
from tenants.access import actor_for
from tenants.models import Project, User
from tests import factories
from tests.conftest import Cast
from tests.flows.world import spec
from tests.scheduler.meanwhile import meanwhile

type Api = Callable[[User | None], APIClient]

URL = "/api/v1/workloads"
KEY = {"Idempotency-Key": "one"}
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def fleet(transactional_db: None, cast: Cast) -> None:
    factories.node(factories.cluster())
    factories.quota(cast.detection, factories.flavor())


@pytest.fixture
def planned_in(fleet: None, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each time that a submission was planned, whether a transaction was open."""
    seen: list[bool] = []
    problems = admissibility.problems

    def noted(**asked: Any) -> Any:  # Any: as the original
        seen.append(connection.in_atomic_block)
        return problems(**asked)

    monkeypatch.setattr(admissibility, "problems", noted)
    return seen


def post(client: APIClient, cast: Cast, *, key: bool = False, **fields: Any) -> Any:  # Any: JSON
    body = factories.submission(cast.detection, **fields)
    return client.post(URL, body, format="json", headers=KEY if key else {})


@pytest.mark.parametrize("key", [True, False])
def test_it_plans_before_any_transaction(
    api: Api, cast: Cast, planned_in: list[bool], key: bool
) -> None:
    client = api(cast.ben)
    assert post(client, cast, key=key).status_code == 201
    one = factories.submission(cast.detection)
    del one["project"]
    batch = {"project": str(cast.detection.id), "workloads": [one]}
    made = client.post(f"{URL}/batch", batch, format="json", headers=KEY if key else {})
    assert made.status_code == 201
    assert planned_in == [False, False]


def test_a_kept_answer_is_given_without_planning_again(
    api: Api, cast: Cast, planned_in: list[bool]
) -> None:
    """Also when the same request could not start any more."""
    first = post(api(cast.ben), cast, key=True)
    cast.detection.quotas.all().delete()
    again = post(api(cast.ben), cast, key=True)
    assert (again.status_code, again.json()) == (201, first.json())
    assert len(planned_in) == 1
    assert post(api(cast.ben), cast, key=True, name="other").json()["code"] == "key-reused"


def test_what_was_made_while_it_planned_is_not_made_twice(
    api: Api, cast: Cast, fleet: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    problems = admissibility.problems

    def late(**asked: Any) -> Any:  # Any: as the original
        monkeypatch.setattr(admissibility, "problems", problems)
        assert post(api(cast.ben), cast, key=True).status_code == 201
        return problems(**asked)

    monkeypatch.setattr(admissibility, "problems", late)
    answer = post(api(cast.ben), cast, key=True)
    assert (answer.status_code, answer["Idempotency-Replayed"]) == (201, "true")
    assert (Workload.objects.count(), IdempotencyKey.objects.count()) == (1, 1)


def test_a_project_has_a_bounded_number_of_pending_workloads(
    api: Api, cast: Cast, fleet: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workloads, "MAX_PENDING", 2)
    client = api(cast.ben)
    made = [post(client, cast).json()["id"] for _ in range(2)]
    refused = post(client, cast)
    assert (refused.status_code, refused.json()["code"]) == (400, "queue-full")
    assert "Detection has 2 pending workloads" in refused.json()["detail"]
    client.post(f"{URL}/{made[0]}/cancel")
    assert post(client, cast).status_code == 201


def test_two_who_submit_at_once_share_the_last_place(
    cast: Cast, fleet: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workloads, "MAX_PENDING", 1)

    def submit() -> None:
        workloads.submit(
            actor=actor_for(user=cast.ben),
            project=cast.detection,
            specs=[spec("h100-80gb")],
            at=factories.AT,
        )

    late = meanwhile(submit, submit)
    assert isinstance(late.exception(), workloads.QueueFull)
    assert Workload.objects.count() == 1


def test_the_caps_of_a_project_bound_what_waits_of_it_and_of_each_submitter(
    api: Api, cast: Cast, fleet: None
) -> None:
    Project.objects.update(max_pending=3, user_max_pending=2)
    ben = api(cast.ben)
    assert [post(ben, cast).status_code for _ in range(3)] == [201, 201, 400]
    refused = post(ben, cast).json()
    assert refused["code"] == "queue-full"
    assert refused["detail"] == (
        "ben in Detection has 2 pending workloads; with 1 more it would pass the limit of 2."
    )
    ada = api(cast.ada)
    assert [post(ada, cast).status_code for _ in range(2)] == [201, 400]
    assert "Detection has 3 pending workloads" in post(ada, cast).json()["detail"]


def test_a_project_s_cap_does_not_lift_that_of_all(
    api: Api, cast: Cast, fleet: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workloads, "MAX_PENDING", 1)
    Project.objects.update(max_pending=5)
    assert [post(api(cast.ben), cast).status_code for _ in range(2)] == [201, 400]


@pytest.mark.parametrize("cap", ["max_pending", "user_max_pending"])
def test_two_who_submit_at_once_share_the_last_place_below_a_cap(
    cast: Cast, fleet: None, cap: str
) -> None:
    Project.objects.update(**{cap: 1})

    def submit() -> None:
        workloads.submit(
            actor=actor_for(user=cast.ben),
            project=cast.detection,
            specs=[spec("h100-80gb")],
            at=factories.AT,
        )

    late = meanwhile(submit, submit)
    assert isinstance(late.exception(), workloads.QueueFull)
    assert Workload.objects.count() == 1
