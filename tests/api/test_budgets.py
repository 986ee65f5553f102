"""/budgets: setting them, and what is told of their use."""

from collections.abc import Callable
from typing import Any

import pytest
from rest_framework.test import APIClient

from controlplane.audit.models import AuditEvent
from controlplane.kernel import clock
from scheduler.core.lifecycle import State
from scheduler.models import Workload
from tenants.models import Budget, PastUse, User
from tests import factories, scenes
from tests.conftest import Cast

type Api = Callable[[User | None], APIClient]

URL = "/api/v1/budgets"


def asked(cast: Cast, **fields: Any) -> dict[str, Any]:  # Any: JSON values
    return {
        "project": str(cast.detection.id), "period": "month", "limit_h": 100, "mode": "soft",
        "version": 0,
    } | fields  # fmt: skip


def test_an_operator_sets_it_and_whoever_sees_the_project_sees_what_is_used(
    api: Api, cast: Cast
) -> None:
    answer = api(cast.oz).post(URL, asked(cast), format="json")
    assert answer.status_code == 200, answer.json()
    made = Budget.objects.get()
    PastUse.objects.create(
        project=cast.detection, flavor=factories.flavor(), day=clock.now().date(),
        milli_s=90 * 3_600_000,
    )  # fmt: skip
    [row] = api(cast.ben).get(URL).json()["items"]
    now = row.pop("standing")
    assert row == {
        "id": str(made.id), "project": str(cast.detection.id), "tenant": None, "period": "month",
        "limit_h": 100, "mode": "soft", "starts_on": None, "ends_on": None, "version": 1,
    }  # fmt: skip
    assert (now["used_milli_h"], now["left_milli_h"]) == (90_000, 10_000)
    assert (now["state"], now["running_milli"], now["lasts_until"]) == ("warned", 0, None)
    assert now["starts_at"].endswith("-01T00:00:00Z")
    assert api(cast.cleo).get(URL).json()["items"] == []
    assert api(cast.cleo).get(URL, {"project": str(cast.detection.id)}).status_code == 404


def test_one_for_once_has_no_standing_before_its_days(api: Api, cast: Cast) -> None:
    days = {"period": "once", "starts_on": "2100-01-01", "ends_on": "2100-02-01"}
    body = asked(cast, project=None, tenant=str(cast.vision.id), **days)
    assert api(cast.oz).post(URL, body, format="json").status_code == 200
    [row] = api(cast.ben).get(URL, {"tenant": str(cast.vision.id)}).json()["items"]
    assert (row["tenant"], row["starts_on"], row["standing"]) == (
        str(cast.vision.id), "2100-01-01", None,
    )  # fmt: skip


def test_what_was_seen_too_long_ago_is_refused(api: Api, cast: Cast) -> None:
    api(cast.oz).post(URL, asked(cast), format="json")
    answer = api(cast.oz).post(URL, asked(cast, limit_h=7), format="json")
    assert (answer.status_code, answer.json()["code"]) == (409, "version-mismatch")
    assert Budget.objects.get().limit_h == 100


def test_one_is_removed_once_by_whoever_may_set_it(api: Api, cast: Cast) -> None:
    made = factories.budget(cast.detection)
    url = f"{URL}/{made.id}"
    assert [api(who).delete(url).status_code for who in (cast.ben, cast.cleo)] == [403, 404]
    assert Budget.objects.get() == made
    assert [api(cast.oz).delete(url).status_code for _ in range(2)] == [204, 404]
    assert not Budget.objects.exists()
    told = AuditEvent.objects.get(action="budget.remove")
    assert (told.project_id, told.before["limit_h"], told.after) == (cast.detection.id, 1000, {})


@pytest.mark.parametrize(
    ("wrong", "pointer"),
    [
        ({"limit_h": -1}, "/limit_h"),
        ({"limit_h": 1.5}, "/limit_h"),
        ({"mode": "loud"}, "/mode"),
        ({"period": "week"}, "/period"),
        ({"period": "once"}, "/starts_on"),
        ({"starts_on": "soon"}, "/starts_on"),
        ({"project": None}, "/project"),
        ({"colour": "red"}, "/colour"),
    ],
)
def test_bad_input_is_told_where_it_stands_and_changes_nothing(
    api: Api, cast: Cast, wrong: dict[str, Any], pointer: str
) -> None:
    answer = api(cast.oz).post(URL, asked(cast, **wrong), format="json")
    assert answer.status_code == 400, answer.json()
    assert [each["pointer"] for each in answer.json()["errors"]] == [pointer]
    assert not Budget.objects.exists()


def test_the_metrics_tell_used_and_limit_by_id_only(api: Api, cast: Cast) -> None:
    api(cast.oz).post(URL, asked(cast), format="json")
    PastUse.objects.create(
        project=cast.detection, flavor=factories.flavor(), day=clock.now().date(), milli_s=5000
    )
    token = factories.token(cast.oz)
    text = APIClient(headers=factories.bearer(token)).get("/metrics").content.decode()
    labels = f'{{budget="{Budget.objects.get().id}",mode="soft",of="project",period="month"}}'
    assert f"berth_budget_used_device_seconds{labels} 5.0" in text
    assert f"berth_budget_limit_device_seconds{labels} 360000.0" in text
    assert "Detection" not in text


@pytest.mark.usefixtures("one_moment")
def test_who_would_be_stopped_at_once_is_told_and_nothing_is_stored(api: Api, cast: Cast) -> None:
    scenes.halves(cast.detection, cast.ben)
    Workload.objects.filter(name="b").update(preemptible=False)
    url = f"{URL}/dry-run"
    told = api(cast.oz).post(url, asked(cast, mode="hard", limit_h=0), format="json").json()
    assert {(each["project"], each["whole"]) for each in told["victims"]} == {("Detection", True)}
    assert len(told["victims"]) == 2
    assert told["lost_s"] == sum(each["lost_s"] for each in told["victims"])
    assert told["standing"]["state"] == "used"
    for none in (asked(cast, limit_h=0), asked(cast, mode="hard", limit_h=10**6)):
        assert api(cast.oz).post(url, none, format="json").json()["victims"] == []
    assert api(cast.oz).post(url, asked(cast, version=3), format="json").status_code == 409
    assert not Budget.objects.exists()


@pytest.mark.usefixtures("one_moment")
def test_why_it_waits_is_told_with_what_would_help(api: Api, cast: Cast) -> None:
    h100 = factories.flavor()
    factories.node(factories.cluster(), gpus=8)
    factories.quota(cast.detection, h100, 8000)
    waiting = factories.workload(cast.detection, cast.ben, [h100], state=State.PENDING)
    api(cast.oz).post(URL, asked(cast, limit_h=0), format="json")
    told = api(cast.ben).get(f"/api/v1/workloads/{waiting.id}/explanation").json()
    assert told["reason"]["code"] == "budget-used"
    [option] = told["options"]
    assert [each["code"] for each in option["checks"] if each["state"] == "failed"] == ["budget"]
    assert [each["text"] for each in told["relaxations"]] == [
        "Ask for 1 GPU-hours more in the budget of Detection for this month."
    ]
