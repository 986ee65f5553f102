"""Quotas that are lowered: who would be preempted, and what is stored."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from rest_framework.test import APIClient

from controlplane.kernel.throttle import Throttle
from scheduler.models import Workload
from scheduler.services import asking
from tenants.models import Quota, TenantQuota, User
from tests import factories, scenes
from tests.api.test_bad_input import refused
from tests.conftest import Cast

type Api = Callable[[User | None], APIClient]

URL = "/api/v1/quotas"


def asked(cast: Cast, **fields: Any) -> dict[str, Any]:  # Any: JSON values
    return {
        "project": str(cast.detection.id), "flavor": "h100-80gb", "nominal_milli": 4000,
        "borrowing_limit_milli": 0, "lending_limit_milli": None, "version": 1,
    } | fields  # fmt: skip


@pytest.fixture
def halves(cast: Cast) -> list[Workload]:
    """Two that hold four GPUs each; the second loses less."""
    first, second = scenes.halves(cast.detection, cast.ben)
    Workload.objects.update(started_at=factories.AT, admitted_at=factories.AT)
    Workload.objects.filter(id=first.id).update(priority=first.priority + 1)
    return [first, second]


@pytest.mark.usefixtures("one_moment")
def test_it_tells_who_would_go_in_order_and_stores_nothing(
    api: Api, cast: Cast, halves: list[Workload]
) -> None:
    oz = api(cast.oz)
    told = oz.post(f"{URL}/dry-run", asked(cast, nominal_milli=0), format="json").json()
    assert [loss["workload"] for loss in told["victims"]] == [
        str(halves[1].id), str(halves[0].id),
    ]  # fmt: skip
    assert {(loss["project"], loss["whole"], loss["pods_count"]) for loss in told["victims"]} == {
        ("Detection", True, 1)
    }
    assert told["lost_s"] == sum(loss["lost_s"] for loss in told["victims"]) > 0
    assert (told["over_milli"], told["stays_milli"], told["enforce_at"]) == (8000, 0, None)
    told = oz.post(f"{URL}/dry-run", asked(cast), format="json").json()
    assert [loss["name"] for loss in told["victims"]] == ["on n2"]
    assert Quota.objects.get().nominal_milli == 16_000
    assert set(Workload.objects.values_list("state", flat=True)) == {"RUNNING"}


@pytest.mark.usefixtures("one_moment")
def test_what_may_not_be_preempted_is_told_apart(
    api: Api, cast: Cast, halves: list[Workload]
) -> None:
    Workload.objects.filter(id=halves[0].id).update(preemptible=False)
    body = asked(cast, nominal_milli=1000)
    told = api(cast.oz).post(f"{URL}/dry-run", body, format="json").json()
    assert [loss["name"] for loss in told["victims"]] == ["on n2"]
    assert (told["over_milli"], told["stays_milli"]) == (7000, 3000)


@pytest.mark.usefixtures("one_moment")
def test_of_a_tenant_all_below_it_are_looked_at(
    api: Api, cast: Cast, halves: list[Workload]
) -> None:
    Quota.objects.update(nominal_milli=0, borrowing_limit_milli=None)
    body = asked(cast, tenant=str(cast.vision.id), version=0)
    del body["project"]
    url = "/api/v1/tenant-quotas"
    told = api(cast.oz).post(f"{url}/dry-run", body, format="json").json()
    assert [loss["name"] for loss in told["victims"]] == ["on n2"]
    assert told["warnings"] == []
    more = body | {"nominal_milli": 99_000}
    [warning] = api(cast.oz).post(f"{url}/dry-run", more, format="json").json()["warnings"]
    assert "99 h100-80gb are guaranteed in the whole fleet, which has " in warning
    assert not TenantQuota.objects.exists()
    made = api(cast.oz).post(url, body | {"excess": "preempt"}, format="json").json()
    assert made["enforce_at"] is not None


def test_the_choice_is_stored_with_the_quota(api: Api, cast: Cast, halves: list[Workload]) -> None:
    oz, until = api(cast.oz), "2100-01-01T00:00:00Z"
    body = asked(cast, excess="delay", enforce_at=until)
    assert refused(oz.post(URL, body, format="json")) == [("/enforce_at", "invalid")]
    made = oz.post(URL, asked(cast, excess="preempt"), format="json").json()
    assert made["enforce_at"] is not None
    assert oz.get(URL).json()["items"][0]["enforce_at"] == made["enforce_at"]
    made = oz.post(URL, asked(cast, version=2), format="json").json()
    assert made["enforce_at"] is None


@pytest.mark.parametrize("path", ["", "/dry-run"])
@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"excess": "kill"}, ("/excess", "invalid-choice")),
        ({"excess": "delay"}, ("/enforce_at", "required")),
        ({"excess": "delay", "enforce_at": "soon"}, ("/enforce_at", "invalid")),
        ({"excess": "delay", "enforce_at": "2001-01-01T00:00:00Z"}, ("/enforce_at", "invalid")),
        ({"enforce_at": "2100-01-01T00:00:00Z"}, ("/enforce_at", "invalid")),
        ({"nominal_milli": -1}, ("/nominal_milli", "min-value")),
    ],
)
def test_what_is_wrong_is_said_field_by_field(
    api: Api,
    cast: Cast,
    halves: list[Workload],
    path: str,
    change: dict[str, object],
    fault: tuple[str, str],
) -> None:
    answer = api(cast.oz).post(URL + path, asked(cast, **change), format="json")
    assert refused(answer) == [fault]
    assert Quota.objects.get().version == 1


@pytest.mark.parametrize("path", ["", "/dry-run"])
def test_without_a_borrowing_limit_nothing_can_be_enforced(
    api: Api, cast: Cast, halves: list[Workload], path: str
) -> None:
    body = asked(cast, excess="preempt", borrowing_limit_milli=None)
    answer = api(cast.oz).post(URL + path, body, format="json")
    assert refused(answer) == [("/borrowing_limit_milli", "required")]


@pytest.mark.usefixtures("one_moment")
def test_it_may_be_asked_so_often(
    api: Api, cast: Cast, halves: list[Workload], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "ASKED", Throttle(most=1, window=timedelta(minutes=1)))
    oz = api(cast.oz)
    answers = [oz.post(f"{URL}/dry-run", asked(cast), format="json") for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 429]


@pytest.mark.usefixtures("one_moment", "halves")
def test_what_was_seen_before_another_set_it_is_not_worked_out(api: Api, cast: Cast) -> None:
    oz = api(cast.oz)
    late = oz.post(f"{URL}/dry-run", asked(cast, version=0), format="json")
    assert (late.status_code, late.json()["code"]) == (409, "version-mismatch")
    body = asked(cast, tenant=str(cast.vision.id), version=2)
    del body["project"]
    late = oz.post("/api/v1/tenant-quotas/dry-run", body, format="json")
    assert (late.status_code, late.json()["code"]) == (409, "version-mismatch")
