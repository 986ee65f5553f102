"""Idempotency-Key: the same request twice makes one object; the key belongs to one body."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

import pytest
from django.db import connection
from rest_framework.test import APIClient

from controlplane.api import idempotency
from controlplane.api.models import IdempotencyKey
from controlplane.kernel import clock
from scheduler.models import Workload
from tenants.models import User
from tests import factories
from tests.conftest import Cast

type Api = Callable[[User | None], APIClient]

URL = "/api/v1/workloads"
KEY = {"Idempotency-Key": "one"}


@pytest.fixture(autouse=True)
def fleet(cast: Cast) -> None:
    factories.node(factories.cluster())
    factories.quota(cast.detection, factories.flavor())


def submit(client: APIClient, cast: Cast, key: str = "one", **fields: Any) -> Any:  # Any: JSON
    return client.post(
        URL,
        factories.submission(cast.detection, **fields),
        format="json",
        headers={"Idempotency-Key": key},
    )


def test_the_same_request_again_gets_the_same_answer(api: Api, cast: Cast) -> None:
    first, again = submit(api(cast.ben), cast), submit(api(cast.ben), cast)
    assert first.status_code == again.status_code == 201
    assert first.json() == again.json()
    assert "Idempotency-Replayed" not in first
    assert again["Idempotency-Replayed"] == "true"
    assert Workload.objects.count() == 1


def test_a_key_without_a_body_works_for_cancel(api: Api, cast: Cast) -> None:
    made = submit(api(cast.ben), cast).json()
    url = f"{URL}/{made['id']}/cancel"
    answers = [api(cast.ben).post(url, headers=KEY) for _ in range(2)]
    assert [answer.json()["state"] for answer in answers] == ["CANCELLED", "CANCELLED"]
    assert api(cast.ben).post(url).status_code == 409


def test_another_body_under_the_same_key_is_refused(api: Api, cast: Cast) -> None:
    submit(api(cast.ben), cast)
    answer = submit(api(cast.ben), cast, name="other")
    assert answer.status_code == 422
    assert answer.json()["code"] == "key-reused"
    assert Workload.objects.count() == 1


def test_a_key_is_its_users_own_and_its_routes_own(api: Api, cast: Cast) -> None:
    one = factories.submission(cast.detection)
    del one["project"]
    batch = {"project": str(cast.detection.id), "workloads": [one]}
    submit(api(cast.ben), cast)
    assert submit(api(cast.ada), cast, name="other").status_code == 201
    answer = api(cast.ben).post(f"{URL}/batch", batch, format="json", headers=KEY)
    assert answer.status_code == 201
    assert Workload.objects.count() == 3


def test_an_error_keeps_nothing_so_the_key_can_be_used_again(api: Api, cast: Cast) -> None:
    assert submit(api(cast.ben), cast, name="").status_code == 400
    assert IdempotencyKey.objects.count() == 0
    assert submit(api(cast.ben), cast).status_code == 201


def test_a_kept_answer_ends_after_a_day(
    api: Api, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit(api(cast.ben), cast)
    later = datetime.now(UTC) + timedelta(hours=23, minutes=59)
    monkeypatch.setattr(clock, "now", lambda: later)
    submit(api(cast.ben), cast)
    assert Workload.objects.count() == 1
    later += timedelta(minutes=2)
    assert submit(api(cast.ben), cast, name="other").status_code == 201
    assert Workload.objects.count() == 2
    assert IdempotencyKey.objects.count() == 1


def test_a_keyed_request_sweeps_old_keys(
    api: Api, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(30):
        submit(api(cast.ben), cast, key=f"key {number}")
    later = datetime.now(UTC) + timedelta(hours=25)
    monkeypatch.setattr(clock, "now", lambda: later)
    submit(api(cast.ben), cast, key="new")
    submit(api(cast.ben), cast, key="newer")
    assert set(IdempotencyKey.objects.values_list("key", flat=True)) == {"new", "newer"}


@pytest.mark.parametrize("key", ["", "x" * 201, "schlüssel", "a\tb"])
def test_it_refuses_a_key_that_is_none(api: Api, cast: Cast, key: str) -> None:
    answer = submit(api(cast.ben), cast, key=key)
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["pointer"] == "#Idempotency-Key"
    assert Workload.objects.count() == 0


@pytest.mark.django_db(transaction=True)
def test_a_request_in_flight_is_told(api: Api, cast: Cast) -> None:
    """Another connection holds the key, as a first request that is still running does."""
    name = f"user:{cast.ben.id}\0POST {URL}\0one"
    number = int.from_bytes(sha256(name.encode()).digest()[:8], signed=True)
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(%s)", [number])
            answer = submit(api(cast.ben), cast)
            # A server process gives back what it holds some time after its client has gone.
            cursor.execute("SELECT pg_advisory_unlock(%s)", [number])
    finally:
        other.close()
    assert answer.status_code == 409
    assert answer.json()["code"] == "in-flight"
    assert Workload.objects.count() == 0
    assert submit(api(cast.ben), cast).status_code == 201


def test_a_tokens_secret_is_never_kept(api: Api, cast: Cast) -> None:
    body = {"name": "ci", "scopes": ["read"]}
    answer = api(cast.ben).post("/api/v1/tokens", body, format="json", headers=KEY)
    assert answer.status_code == 400
    assert not cast.ben.tokens.exists()


def test_the_header_is_the_one_the_standard_draft_names() -> None:
    assert idempotency.HEADER == "Idempotency-Key"
