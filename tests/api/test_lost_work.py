"""Checkpoints and least run times over the API, and what a bad body is told."""

from collections.abc import Callable
from typing import Any

import pytest
from rest_framework.test import APIClient

from controlplane.audit.models import AuditEvent
from scheduler.core.lifecycle import State
from scheduler.models import Workload
from tenants.models import Project, Scope, User
from tests import factories
from tests.api.test_bad_input import refused
from tests.conftest import Cast, Unchanged

type Api = Callable[[User | None], APIClient]
type Json = dict[str, Any]  # Any: JSON values


def workload(cast: Cast, state: State = State.RUNNING) -> Workload:
    flavor = factories.flavor()
    return factories.workload(cast.detection, cast.ben, [flavor], state=state)


def told(row: Workload) -> str:
    return f"/api/v1/workloads/{row.id}/checkpoint"


def test_a_running_workload_tells_that_its_work_is_saved(api: Api, cast: Cast) -> None:
    row = workload(cast)
    shown = f"/api/v1/workloads/{row.id}"
    assert api(cast.ben).get(shown).json()["checkpointed_at"] is None
    answer = api(cast.ben).post(told(row))
    assert answer.status_code == 200
    assert answer.json()["id"] == str(row.id)
    assert api(cast.ben).get(shown).json()["checkpointed_at"] == answer.json()["checkpointed_at"]
    again = api(cast.ben).post(told(row))
    assert again.json()["checkpointed_at"] >= answer.json()["checkpointed_at"]


def test_a_key_counts_one_checkpoint(api: Api, cast: Cast) -> None:
    row = workload(cast)
    first, second = (
        api(cast.ben).post(told(row), headers={"Idempotency-Key": "k" * 16}) for _ in range(2)
    )
    assert first.json() == second.json()
    assert AuditEvent.objects.filter(action="workload.checkpoint").count() == 1


def test_a_token_of_the_work_itself_tells(cast: Cast) -> None:
    row = workload(cast)
    token = factories.token(cast.ben, Scope.SUBMIT, project=cast.detection)
    client = APIClient(headers=factories.bearer(token))
    assert client.post(told(row)).status_code == 200


def test_work_that_waits_is_told_why_there_is_nothing_to_save(api: Api, cast: Cast) -> None:
    row = workload(cast, State.PENDING)
    answer = api(cast.ben).post(told(row))
    assert answer.status_code == 409
    assert "is PENDING; only work that is RUNNING" in answer.json()["detail"]
    assert api(cast.ben).post(told(row), {"at": "now"}, format="json").status_code == 400


def test_a_least_run_time_is_set_and_inherited(api: Api, cast: Cast) -> None:
    project, tenant = f"/api/v1/projects/{cast.detection.id}", f"/api/v1/tenants/{cast.vision.id}"

    def seen() -> tuple[int | None, int]:
        found = api(cast.ben).get(project).json()
        return found["min_run_time_s"], found["min_run_time_in_force_s"]

    assert seen() == (None, 0)
    made = api(cast.oz).post(f"{tenant}/min-run-time", {"min_run_time_s": 600}, format="json")
    assert (made.status_code, made.json()["min_run_time_s"]) == (200, 600)
    assert api(cast.ben).get(tenant).json()["min_run_time_s"] == 600
    assert seen() == (None, 600)
    made = api(cast.oz).post(f"{project}/min-run-time", {"min_run_time_s": 0}, format="json")
    assert (made.status_code, made.json()["min_run_time_s"]) == (200, 0)
    assert seen() == (0, 0)
    api(cast.oz).post(f"{project}/min-run-time", {"min_run_time_s": None}, format="json")
    assert seen() == (None, 600)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "required"),
        ({"min_run_time_s": -1}, "min-value"),
        ({"min_run_time_s": 86_401}, "max-value"),
        ({"min_run_time_s": 1.0}, "wrong-type"),
        ({"min_run_time_s": "60"}, "wrong-type"),
    ],
)
def test_a_least_run_time_that_is_none_changes_nothing(
    api: Api, cast: Cast, nothing_stored: Unchanged, body: Json, code: str
) -> None:
    for url in (f"projects/{cast.detection.id}", f"tenants/{cast.vision.id}"):
        with nothing_stored():
            answer = api(cast.oz).post(f"/api/v1/{url}/min-run-time", body, format="json")
        assert ("/min_run_time_s", code) in refused(answer)
    assert Project.objects.get(id=cast.detection.id).min_run_time_s is None
