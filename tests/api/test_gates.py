"""Gates over the API: declared, listed, decided; tokens for them alone; bad bodies."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from clusters.models import Flavor
from scheduler.models import Gate, Workload
from tenants.models import Role, Scope, User
from tests import factories
from tests.api.test_bad_input import refused
from tests.conftest import Cast, Unchanged

type Api = Callable[[User | None], APIClient]
type Json = dict[str, Any]  # Any: JSON values

DATA = {"name": "data", "kind": "data", "owner": "vik", "within_s": 3600}


@pytest.fixture
def flavor(cast: Cast) -> Flavor:
    made = factories.flavor()
    factories.node(factories.cluster(), gpus=8)
    factories.quota(cast.detection, made)
    return made


def submitted(api: Api, cast: Cast, *gates: Json, **fields: Any) -> Json:  # Any: JSON values
    body = factories.submission(cast.detection, gates=list(gates), **fields)
    route = "arrays" if "size" in fields else "workloads"
    made = api(cast.ben).post(f"/api/v1/{route}", body, format="json")
    assert made.status_code == 201, made.content
    answer: Json = made.json()
    return answer


def decided(client: APIClient, work: str, name: str = "data", **body: str) -> tuple[int, Json]:
    made = client.post(f"/api/v1/{work}/gates/{name}", {"state": "open", **body}, format="json")
    return made.status_code, made.json()


def test_its_owner_is_told_of_it_and_opens_it(api: Api, cast: Cast, flavor: Flavor) -> None:
    work = submitted(api, cast, DATA)["id"]
    [listed] = api(cast.vik).get("/api/v1/gates").json()["items"]
    told = {"workload": work, "array": None, "work": "train", "submitted_by": "ben"}
    assert listed | told | {"name": "data", "owner": "vik", "state": "waiting"} == listed
    assert listed["deadline_at"] > listed["created_at"]
    assert [each["work"] for each in api(cast.ada).get("/api/v1/gates").json()["items"]] == [
        "train"
    ]
    assert api(cast.ben).get("/api/v1/gates").json()["items"] == []
    status, made = decided(api(cast.vik), f"workloads/{work}", note="Copied.")
    assert (status, made["state"], made["decided_by"]) == (200, "open", "vik")
    assert api(cast.vik).get("/api/v1/gates").json()["items"] == []
    shown = api(cast.ben).get(f"/api/v1/workloads/{work}").json()
    assert shown["gates"] == [made]
    status, problem = decided(api(cast.ada), f"workloads/{work}", state="refused", note="No.")
    assert (status, "by vik: Copied." in problem["detail"]) == (409, True)


def test_an_array_has_one_for_all_of_it(api: Api, cast: Cast, flavor: Flavor) -> None:
    array = submitted(api, cast, DATA, size=3)["id"]
    element = Workload.objects.get(array=array, array_index=1)
    [shown] = api(cast.ben).get(f"/api/v1/workloads/{element.id}").json()["gates"]
    assert shown["state"] == "waiting"
    assert decided(api(cast.vik), f"workloads/{element.id}")[0] == 404
    assert decided(api(cast.vik), f"arrays/{array}", state="refused", note="No.")[0] == 200
    assert set(Workload.objects.values_list("state", flat=True)) == {"CANCELLED"}


def test_a_project_gives_its_gates_to_all_that_is_submitted(
    api: Api, cast: Cast, flavor: Flavor, one_moment: None
) -> None:
    path = f"/api/v1/projects/{cast.detection.id}/gates"
    made = api(cast.oz).post(path, DATA, format="json")
    assert (made.status_code, made.json() | DATA) == (201, made.json())
    assert api(cast.ben).get(path).json()["items"] == [made.json()]
    assert api(cast.oz).post(path, DATA, format="json").status_code == 409
    work = submitted(api, cast)["id"]
    [shown] = api(cast.ben).get(f"/api/v1/workloads/{work}").json()["gates"]
    assert (shown["name"], shown["standing"]) == ("data", True)
    body = factories.submission(cast.detection)
    dry = api(cast.ben).post("/api/v1/workloads/dry-run", body, format="json").json()
    assert dry["gates"] == [DATA]
    assert dry["reason"]["code"] == "gate"
    assert api(cast.oz).delete(f"{path}/data").status_code == 204
    assert api(cast.oz).delete(f"{path}/data").status_code == 404


def test_a_token_for_gates_sees_and_decides_them_and_nothing_else(
    api: Api, cast: Cast, flavor: Flavor
) -> None:
    work = submitted(api, cast, DATA)["id"]
    token = factories.token(cast.vik, Scope.GATE)
    client = APIClient(headers=factories.bearer(token))
    for path in ("me", "workloads", f"workloads/{work}", "clusters", "tenants", "projects"):
        answer = client.get(f"/api/v1/{path}")
        assert (answer.status_code, answer.json()["detail"]) == (
            403,
            "This token sees and decides gates, and nothing else.",
        )
    assert [each["name"] for each in client.get("/api/v1/gates").json()["items"]] == ["data"]
    assert decided(client, f"workloads/{work}")[0] == 200
    operator = APIClient(headers=factories.bearer(factories.token(cast.oz, Scope.GATE)))
    assert operator.get("/metrics").status_code == 403


@pytest.mark.parametrize(
    ("gates", "pointer", "code"),
    [
        ({}, "/gates", "wrong-type"),
        ([DATA] * 11, "/gates", "too-many"),
        ([DATA, DATA], "/gates", "repeated"),
        (["data"], "/gates/0", "wrong-type"),
        ([DATA | {"name": "A b"}], "/gates/0/name", "invalid"),
        ([DATA | {"kind": "dinner"}], "/gates/0/kind", "invalid"),
        ([{"name": "data", "kind": "data"}], "/gates/0/owner", "required"),
        ([DATA | {"owner": "nobody"}], "/gates/0/owner", "unknown-owner"),
        ([DATA | {"owner": "cleo"}], "/gates/0/owner", "unknown-owner"),
        ([DATA | {"within_s": 0}], "/gates/0/within_s", "out-of-range"),
        ([DATA | {"until": "later"}], "/gates/0/until", "unknown-field"),
    ],
)
def test_a_gate_there_can_not_be_is_refused_by_field(
    api: Api,
    cast: Cast,
    flavor: Flavor,
    nothing_stored: Unchanged,
    gates: object,
    pointer: str,
    code: str,
) -> None:
    body = factories.submission(cast.detection, gates=gates)
    with nothing_stored():
        answer = api(cast.ben).post("/api/v1/workloads", body, format="json")
    assert (pointer, code) in refused(answer)


@pytest.mark.parametrize(
    ("body", "pointer", "code"),
    [
        ({"state": "ajar"}, "/state", "invalid-choice"),
        ({"state": "waiting"}, "/state", "invalid-choice"),
        ({"state": "refused"}, "/note", "required"),
        ({"state": "open", "note": "x" * 501}, "/note", "max-length"),
        ({}, "/state", "required"),
    ],
)
def test_a_decision_that_is_none_changes_nothing(
    api: Api, cast: Cast, flavor: Flavor, body: Json, pointer: str, code: str
) -> None:
    work = submitted(api, cast, DATA)["id"]
    path = f"/api/v1/workloads/{work}/gates/data"
    answer = api(cast.vik).post(path, body, format="json")
    assert (pointer, code) in refused(answer)
    assert Gate.objects.get().state == "waiting"


def test_nobody_opens_the_approval_of_their_own_work(api: Api, cast: Cast, flavor: Flavor) -> None:
    factories.member(cast.ben, Role.OWNER, at=cast.detection)
    work = submitted(api, cast, DATA | {"kind": "approval", "owner": "ben"})["id"]
    assert decided(api(cast.ben), f"workloads/{work}")[0] == 403
    assert decided(api(cast.ada), f"workloads/{work}")[0] == 200


def test_metrics_count_those_that_wait_and_their_age(api: Api, cast: Cast, flavor: Flavor) -> None:
    def told() -> dict[str, float]:
        lines = api(cast.oz).get("/metrics").content.decode().splitlines()
        pairs = (line.rsplit(" ", 1) for line in lines if line.startswith("berth_gate"))
        return {name: float(value) for name, value in pairs}

    kinds = ("data", "approval", "budget", "other")
    assert told() == {
        f'{name}{{kind="{kind}"}}': 0
        for name in ("berth_gates_waiting", "berth_gate_oldest_seconds")
        for kind in kinds
    }
    works = [factories.workload(cast.detection, cast.ben, [flavor]) for _ in range(2)]
    for hours, work in enumerate(works, start=1):
        since = timezone.now() - timedelta(hours=hours)
        factories.gate(work, cast.vik, created_at=since)
    now = told()
    assert now['berth_gates_waiting{kind="data"}'] == 2
    assert 7200 <= now['berth_gate_oldest_seconds{kind="data"}'] < 7260
    decided(api(cast.vik), f"workloads/{works[0].id}")
    api(cast.ben).post(f"/api/v1/workloads/{works[1].id}/cancel")
    assert set(told().values()) == {0}
