"""Which flavors a project prefers, over the API: said, shown, refused, and gone by."""

from collections.abc import Callable
from typing import Any

import pytest
from rest_framework.test import APIClient

from clusters.models import FlavorKind
from controlplane.audit.models import AuditEvent
from scheduler.models import PodSet
from tenants.models import PreferredFlavor, User
from tests import factories
from tests.api.test_bad_input import refused
from tests.conftest import Cast, Unchanged

type Api = Callable[[User | None], APIClient]
type Json = dict[str, Any]  # Any: JSON values

A100 = "NVIDIA-A100-SXM4-80GB"


@pytest.fixture
def flavors(cast: Cast) -> None:
    """An H100 and an A100 with a node each, and quota of both for Detection; and a slice."""
    north = factories.cluster()
    for name, model in (("h100", "NVIDIA-H100-80GB-HBM3"), ("a100", A100)):
        factories.quota(cast.detection, factories.flavor(name, model=model), 8000)
        factories.node(north, name, gpus=8, model=model)
    factories.mig_flavor("slice")
    factories.flavor("a100.sevenths", FlavorKind.MODEL, model=A100)


def of(cast: Cast) -> str:
    return f"/api/v1/projects/{cast.detection.id}"


def prefer(client: APIClient, cast: Cast, *names: str) -> Any:  # Any: a test client's answer
    said = {"preferred_flavors": list(names)}
    return client.post(f"{of(cast)}/preferred-flavors", said, format="json")


def body(cast: Cast, **of_pods: object) -> Json:
    pods = {"name": "main", "cpu_milli": 100, "memory_mib": 64, "gpu_count": 1, "image": "x"}
    return {"project": str(cast.detection.id), "name": "train", "pod_sets": [pods | of_pods]}


@pytest.mark.usefixtures("flavors")
def test_an_owner_says_what_is_preferred_and_that_is_audited_once(api: Api, cast: Cast) -> None:
    assert api(cast.ben).get(of(cast)).json()["preferred_flavors"] == []
    for _ in range(2):
        answer = prefer(api(cast.ada), cast, "h100", "a100")
        assert (answer.status_code, answer.json()) == (
            200,
            {"preferred_flavors": ["h100", "a100"]},
        )
    event = AuditEvent.objects.get(action="project.preferred-flavors")
    assert (event.before, event.after) == (
        {"preferred_flavors": []},
        {"preferred_flavors": ["h100", "a100"]},
    )
    assert prefer(api(cast.ada), cast, "a100").status_code == 200
    assert api(cast.ben).get(of(cast)).json()["preferred_flavors"] == ["a100"]
    assert prefer(api(cast.ada), cast).json() == {"preferred_flavors": []}
    assert not PreferredFlavor.objects.exists()


@pytest.mark.usefixtures("flavors")
@pytest.mark.parametrize(
    ("names", "faults"),
    [
        (["h100", "v100"], [("/preferred_flavors/1", "unknown-flavor")]),
        (["h100", "a100", "h100"], [("/preferred_flavors/2", "repeated")]),
        (["slice", "h100"], [("/preferred_flavors/0", "wrong-flavor")]),
        (["a100.sevenths"], [("/preferred_flavors/0", "wrong-flavor")]),
        (
            ["v100", "slice"],
            [("/preferred_flavors/0", "unknown-flavor"), ("/preferred_flavors/1", "wrong-flavor")],
        ),
    ],
)
def test_each_name_that_can_not_be_preferred_is_told_and_nothing_changes(
    api: Api, cast: Cast, names: list[str], faults: list[tuple[str, str]]
) -> None:
    prefer(api(cast.ada), cast, "a100")
    assert refused(prefer(api(cast.ada), cast, *names)) == faults
    assert api(cast.ada).get(of(cast)).json()["preferred_flavors"] == ["a100"]


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"preferred_flavors": None},
        {"preferred_flavors": "h100"},
        {"preferred_flavors": ["x"] * 17},
    ],
)
def test_what_is_no_list_of_flavors_changes_nothing(
    api: Api, cast: Cast, nothing_stored: Unchanged, said: Json
) -> None:
    with nothing_stored():
        answer = api(cast.ada).post(f"{of(cast)}/preferred-flavors", said, format="json")
    assert [pointer for pointer, _ in refused(answer)] == ["/preferred_flavors"]


@pytest.mark.usefixtures("flavors")
def test_work_may_leave_it_to_its_project(api: Api, cast: Cast) -> None:
    assert refused(api(cast.ben).post("/api/v1/workloads", body(cast), format="json")) == [
        ("/pod_sets/0/flavors", "required")
    ]
    prefer(api(cast.ada), cast, "a100", "h100")
    made = api(cast.ben).post("/api/v1/workloads", body(cast), format="json")
    assert made.status_code == 201
    shown = api(cast.ben).get(f"/api/v1/workloads/{made.json()['id']}").json()
    [pod_set] = shown["pod_sets"]
    assert (pod_set["flavors"], pod_set["as_preferred"]) == (["a100", "h100"], True)
    assert PodSet.objects.get().accepted.filter(wished=True).count() == 2


@pytest.mark.usefixtures("flavors")
def test_of_a_batch_each_that_has_to_name_one_is_told(api: Api, cast: Cast) -> None:
    works = [body(cast, flavors=["h100"]), body(cast)]
    for each in works:
        del each["project"]
    sent = {"project": str(cast.detection.id), "workloads": works}
    answer = api(cast.ben).post("/api/v1/workloads/batch", sent, format="json")
    assert refused(answer) == [("/workloads/1/pod_sets/0/flavors", "required")]


@pytest.mark.usefixtures("flavors", "one_moment")
def test_modes_and_dry_runs_are_of_what_is_preferred_first(api: Api, cast: Cast) -> None:
    prefer(api(cast.ada), cast, "a100", "h100")
    told = api(cast.ben).post("/api/v1/workloads/modes", body(cast), format="json").json()
    [firm] = [each for each in told["modes"] if each["mode"] == "non-preemptible"]
    assert [need["flavor"] for need in firm["needs"]] == ["a100"]
    told = api(cast.ben).post("/api/v1/workloads/dry-run", body(cast), format="json").json()
    assert told["start"]["flavors"] == ["a100"]
