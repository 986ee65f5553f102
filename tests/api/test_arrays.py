"""Arrays and dependencies by the API: submitted, shown as one, cancelled, refused by field."""

from collections.abc import Callable
from typing import Any

import pytest
from rest_framework.test import APIClient

from clusters.models import Flavor
from controlplane.kernel.ids import uuid7
from scheduler.core.lifecycle import State
from scheduler.loop.preparing import dependencies
from scheduler.models import Dependency, Workload, WorkloadArray
from tenants.models import User
from tests import factories
from tests.conftest import Cast

type Api = Callable[[User | None], APIClient]
type Json = Any  # JSON values

URL, WORKLOADS = "/api/v1/arrays", "/api/v1/workloads"


@pytest.fixture
def h100(cast: Cast) -> Flavor:
    flavor = factories.flavor()
    factories.node(factories.cluster())
    factories.quota(cast.detection, flavor)
    return flavor


def faults(answer: Any) -> list[tuple[str, str, str]]:  # Any: a response
    assert answer.status_code == 400, answer.content
    return [(e["pointer"], e["code"], e["message"]) for e in answer.json()["errors"]]


def test_it_is_made_and_shown_as_one(api: Api, cast: Cast, h100: Flavor) -> None:
    client = api(cast.ben)
    body = factories.submission(cast.detection, size=5, most_at_once=2)
    made = client.post(URL, body, format="json")
    assert made.status_code == 201
    array = WorkloadArray.objects.get()
    whole = {
        "id": str(array.id), "name": "train", "size": 5, "most_at_once": 2,
        "states": {state.value: 5 if state == State.PENDING else 0 for state in State},
    }  # fmt: skip
    beside = {
        "project": str(cast.detection.id), "submitted_by": "ben",
        "submitted_at": made.json()["submitted_at"],
    }  # fmt: skip
    assert made.json() == whole | beside
    assert client.get(f"{URL}/{array.id}").json() == whole | beside

    [row] = client.get(WORKLOADS).json()["items"]
    assert (row["name"], row["array_index"], row["array"]) == ("train[0]", 0, whole)
    elements = client.get(WORKLOADS, {"array": str(array.id)}).json()["items"]
    assert [each["array_index"] for each in elements] == [4, 3, 2, 1, 0]
    shown = client.get(f"{WORKLOADS}/{elements[0]['id']}").json()
    assert (shown["array"], shown["depends_on"]) == (whole, [])


def test_the_list_has_it_for_each_state_that_any_of_it_is_in(
    api: Api, cast: Cast, h100: Flavor
) -> None:
    array = factories.array(cast.detection, cast.ben, [h100], 3)
    alone = factories.workload(cast.detection, cast.ben, [h100], "alone", state=State.RUNNING)
    last = array.elements.get(array_index=2)
    Workload.objects.filter(id=last.id).update(state="RUNNING", version=2)
    client = api(cast.ben)

    def listed(**query: str) -> list[str]:
        return [row["name"] for row in client.get(WORKLOADS, query).json()["items"]]

    assert listed() == ["alone", "sweep[0]"]
    assert listed(state="RUNNING") == ["alone", "sweep[0]"]
    assert listed(state="PENDING") == ["sweep[0]"]
    assert listed(state="FAILED") == []
    assert listed(name="sweep") == ["sweep[0]"]
    assert listed(array=str(array.id), state="RUNNING") == [last.name]
    assert listed(name=alone.name) == ["alone"]


def test_others_elements_are_as_if_they_were_not(api: Api, cast: Cast, h100: Flavor) -> None:
    array = factories.array(cast.detection, cast.ben, [h100])
    for url in (f"{URL}/{array.id}", f"{WORKLOADS}?array={array.id}"):
        assert api(cast.cleo).get(url).status_code == 404
    assert api(cast.ben).get(f"{WORKLOADS}?array={uuid7()}").status_code == 404


def test_all_of_it_is_cancelled(api: Api, cast: Cast, h100: Flavor) -> None:
    array = factories.array(cast.detection, cast.ben, [h100], 3)
    answer = api(cast.ben).post(f"{URL}/{array.id}/cancel")
    assert answer.status_code == 200
    assert answer.json()["states"]["CANCELLED"] == 3
    assert api(cast.ben).post(f"{URL}/{array.id}/cancel").status_code == 409


def test_a_key_makes_one_array_however_often_it_is_sent(
    api: Api, cast: Cast, h100: Flavor
) -> None:
    body = factories.submission(cast.detection, size=2)
    sent = [
        api(cast.ben).post(URL, body, format="json", headers={"Idempotency-Key": "once"}).json()
        for _ in range(2)
    ]
    assert sent[0] == sent[1]
    assert WorkloadArray.objects.count() == 1


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"size": 0}, [("/size", "out-of-range", "0 is not between 1 and 10000.")]),
        (
            {"size": 10_000_000},
            [("/size", "out-of-range", "10000000 is not between 1 and 10000.")],
        ),
        ({"size": "5"}, [("/size", "wrong-type", "A whole number is wanted.")]),
        ({}, [("/size", "required", "This field is required.")]),
        (
            {"size": 3, "most_at_once": 4},
            [("/most_at_once", "out-of-range", "4 is not between 1 and 3.")],
        ),
        (
            {"size": 3, "most_at_once": 0},
            [("/most_at_once", "out-of-range", "0 is not between 1 and 3.")],
        ),
        (
            {"size": 3, "name": "n" * 98},
            [("/name", "invalid",
              "The elements' names get a number behind it: at most 97 characters.")],
        ),
    ],
)  # fmt: skip
def test_it_says_what_would_be_right(
    api: Api, cast: Cast, h100: Flavor, fields: dict[str, Json], told: list[tuple[str, str, str]]
) -> None:
    body = factories.submission(cast.detection, **fields)
    assert faults(api(cast.ben).post(URL, body, format="json")) == told
    assert not WorkloadArray.objects.exists()
    assert not Workload.objects.exists()


def test_a_variable_that_tells_the_index_is_not_given_by_the_submitter(
    api: Api, cast: Cast, h100: Flavor
) -> None:
    pod_set = {"env": {"BERTH_ARRAY_INDEX": "7"}}
    body = factories.submission(cast.detection, size=2, pod_set=pod_set)
    [(pointer, code, _)] = faults(api(cast.ben).post(URL, body, format="json"))
    assert (pointer, code) == ("/pod_sets/0/env/BERTH_ARRAY_INDEX", "reserved-env")


class TestDependsOn:
    def test_it_is_stored_and_shown(self, api: Api, cast: Cast, h100: Flavor) -> None:
        first = factories.workload(cast.detection, cast.ben, [h100], "first")
        array = factories.array(cast.detection, cast.ben, [h100])
        body = factories.submission(
            cast.detection,
            depends_on=[
                {"workload": str(first.id)}, {"array": str(array.id), "kind": "after-end"},
            ],
        )  # fmt: skip
        made = api(cast.ben).post(WORKLOADS, body, format="json")
        assert made.status_code == 201, made.content
        shown = api(cast.ben).get(f"{WORKLOADS}/{made.json()['id']}").json()["depends_on"]
        assert shown == [
            {"workload": str(first.id), "array": None, "kind": "after-success",
             "on_unmet": "cancel", "unmet_at": None, "settled_at": None},
            {"workload": None, "array": str(array.id), "kind": "after-end",
             "on_unmet": "cancel", "unmet_at": None, "settled_at": None},
        ]  # fmt: skip

    def test_each_element_waits_for_the_one_of_its_index(
        self, api: Api, cast: Cast, h100: Flavor
    ) -> None:
        array = factories.array(cast.detection, cast.ben, [h100], 3)
        needs = [{"array": str(array.id), "by_index": True, "on_unmet": "hold"}]
        body = factories.submission(cast.detection, size=2, depends_on=needs)
        made = api(cast.ben).post(URL, body, format="json")
        assert made.status_code == 201, made.content
        rows = Dependency.objects.order_by("id").values_list(
            "workload__array_index", "on_workload__array_index", "on_unmet"
        )
        assert list(rows) == [(0, 0, "hold"), (1, 1, "hold")]
        assert set(Dependency.objects.values_list("on_workload__array_id", flat=True)) == {
            array.id
        }

    def test_what_is_held_in_vain_is_released(self, api: Api, cast: Cast, h100: Flavor) -> None:
        client = api(cast.ben)
        first = factories.workload(cast.detection, cast.ben, [h100], "first")
        needs = [{"workload": str(first.id), "on_unmet": "hold"}]
        body = factories.submission(cast.detection, depends_on=needs)
        id = client.post(WORKLOADS, body, format="json").json()["id"]
        early = client.post(f"{WORKLOADS}/{id}/release")
        assert early.status_code == 409
        assert "waits for nothing in vain" in early.json()["detail"]
        client.post(f"{WORKLOADS}/{first.id}/cancel")
        dependencies.settle(at=factories.AT)
        [told] = client.get(f"{WORKLOADS}/{id}").json()["depends_on"]
        assert (told["unmet_at"] is not None, told["settled_at"]) == (True, None)
        assert client.post(f"{WORKLOADS}/{id}/release").json()["state"] == "PENDING"
        [told] = client.get(f"{WORKLOADS}/{id}").json()["depends_on"]
        assert told["settled_at"] is not None

    def test_an_array_waits_as_one(self, api: Api, cast: Cast, h100: Flavor) -> None:
        first = factories.workload(cast.detection, cast.ben, [h100], "first")
        needs = [{"workload": str(first.id), "kind": "after-failure"}]
        body = factories.submission(cast.detection, size=3, depends_on=needs)
        assert api(cast.ben).post(URL, body, format="json").status_code == 201
        row = Dependency.objects.get()
        assert (row.array, row.workload) == (WorkloadArray.objects.get(), None)
        element = Workload.objects.get(array_index=1)
        shown = api(cast.ben).get(f"{WORKLOADS}/{element.id}").json()["depends_on"]
        assert [each["workload"] for each in shown] == [str(first.id)]

    @pytest.mark.parametrize(
        ("depends_on", "pointer", "code"),
        [
            ("x", "/depends_on", "wrong-type"),
            (None, "/depends_on", "wrong-type"),
            (["x"], "/depends_on/0", "wrong-type"),
            ([{}], "/depends_on/0", "invalid"),
            ([{"kind": "after-end"}], "/depends_on/0", "invalid"),
            ([{"workload": "x", "array": "y"}], "/depends_on/0", "invalid"),
            ([{"workload": "train"}], "/depends_on/0/workload", "wrong-type"),
            ([{"array": 5}], "/depends_on/0/array", "wrong-type"),
            ([{"workload": "0" * 36}], "/depends_on/0/workload", "wrong-type"),
            ([{"workload": str(uuid7()), "kind": "afterok"}], "/depends_on/0/kind", "invalid"),
            ([{"workload": str(uuid7()), "kind": []}], "/depends_on/0/kind", "invalid"),
            ([{"workload": str(uuid7()), "x": 1}], "/depends_on/0/x", "unknown-field"),
            ([{"workload": str(uuid7())}], "/depends_on/0/workload", "unknown-workload"),
            ([{"array": str(uuid7())}], "/depends_on/0/array", "unknown-array"),
            ([{"workload": str(uuid7())}] * 21, "/depends_on", "too-many"),
            ([{"workload": "01900000-0000-7000-8000-000000000000"}] * 2, "/depends_on",
             "repeated"),
        ],
    )  # fmt: skip
    def test_it_says_where_it_is_wrong(
        self, api: Api, cast: Cast, h100: Flavor, depends_on: Json, pointer: str, code: str
    ) -> None:
        body = factories.submission(cast.detection, depends_on=depends_on)
        found = faults(api(cast.ben).post(WORKLOADS, body, format="json"))
        assert [each[:2] for each in found] == [(pointer, code)]
        assert not Workload.objects.exists()

    def test_another_tenants_work_is_as_if_it_were_not(
        self, api: Api, cast: Cast, h100: Flavor
    ) -> None:
        foreign = factories.project(factories.tenant("other"))
        theirs = factories.workload(foreign, cast.cleo, [h100])
        body = factories.submission(cast.detection, depends_on=[{"workload": str(theirs.id)}])
        found = faults(api(cast.ben).post(WORKLOADS, body, format="json"))
        assert found == [
            (
                "/depends_on/0/workload",
                "unknown-workload",
                f"There is no workload {theirs.id} that you see.",
            )
        ]

    def test_in_a_batch_the_fault_is_told_of_its_workload(
        self, api: Api, cast: Cast, h100: Flavor
    ) -> None:
        plain = factories.submission(cast.detection)
        project = plain.pop("project")
        waits = plain | {"depends_on": [{"workload": str(uuid7())}]}
        body = {"project": project, "workloads": [plain, waits]}
        found = faults(api(cast.ben).post(f"{WORKLOADS}/batch", body, format="json"))
        assert [each[0] for each in found] == ["/workloads/1/depends_on/0/workload"]
