"""Until when a project's quota has to be confirmed, and confirming it, through the API."""

from collections.abc import Callable
from datetime import timedelta

from pytest_django import Settings
from rest_framework.test import APIClient

from tenants.models import Project, User
from tests import factories
from tests.conftest import Cast

type Api = Callable[[User | None], APIClient]

AT = factories.AT


def test_a_project_tells_of_its_review_and_is_confirmed(
    api: Api, cast: Cast, settings: Settings
) -> None:
    settings.BERTH_REVIEW_DAYS = 365
    late = AT - timedelta(days=400)
    Project.objects.update(quota_confirmed_at=late, quota_frozen_at=AT)
    url = f"/api/v1/projects/{cast.detection.id}"
    told = api(cast.ben).get(url).json()
    assert told["quota_confirmed_at"].startswith(f"{late:%Y-%m-%dT%H:%M}")
    assert told["review_due_at"].startswith(f"{late + timedelta(days=365):%Y-%m-%dT%H:%M}")
    assert told["quota_frozen_at"].startswith(f"{AT:%Y-%m-%dT%H:%M}")
    assert api(cast.ben).post(f"{url}/confirm-quota").status_code == 403
    assert api(cast.ada).post(f"{url}/confirm-quota", {"x": 1}, format="json").status_code == 400
    answer = api(cast.ada).post(f"{url}/confirm-quota")
    assert (answer.status_code, answer.json()["quota_frozen_at"]) == (200, None)
    assert answer.json()["quota_confirmed_at"] > told["quota_confirmed_at"]


def test_where_nothing_is_reviewed_there_is_no_end(api: Api, cast: Cast) -> None:
    told = api(cast.ben).get(f"/api/v1/projects/{cast.detection.id}").json()
    assert (told["review_due_at"], told["quota_frozen_at"]) == (None, None)
