"""POST /workloads and /workloads/batch: what is stored, and what a refusal says."""

from collections.abc import Callable

import pytest
from rest_framework.test import APIClient

from scheduler.models import Workload
from tests import factories
from tests.conftest import Cast

type Api = Callable[..., APIClient]


@pytest.fixture(autouse=True)
def fleet(cast: Cast) -> None:
    """One node with eight H100s, all of them Detection's."""
    factories.node(factories.cluster())
    factories.quota(cast.detection, factories.flavor())


def test_it_stores_a_pending_workload(api: Api, cast: Cast) -> None:
    answer = api(cast.ben).post(
        "/api/v1/workloads", factories.submission(cast.detection), format="json"
    )
    assert answer.status_code == 201, answer.content
    row = Workload.objects.get()
    assert answer.json() == {"id": str(row.id), "name": "train", "state": "PENDING"}
    assert row.submitted_by == cast.ben
