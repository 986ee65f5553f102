"""Isolation between neighbours over the API: what a project accepts, what work asks, what is
refused; and shares that are asked for by memory."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from rest_framework.test import APIClient

from clusters.models import Flavor, FlavorKind, Isolation
from controlplane.audit.models import AuditEvent
from controlplane.kernel.errors import Problem
from scheduler.models import PodSet
from scheduler.services import admissibility
from tenants.models import Project, Quota, User
from tests import factories
from tests.api.test_bad_input import refused
from tests.conftest import Cast, Unchanged

type Api = Callable[[User | None], APIClient]
type Json = dict[str, Any]  # Any: JSON values

T4 = "Tesla-T4"


@pytest.fixture
def shares(cast: Cast) -> None:
    """A node whose T4 is shared by time-slicing, and one by MPS; quota of both for Detection."""
    north = factories.cluster()
    for name, isolation in (("slot", Isolation.NONE), ("mps", Isolation.MEMORY)):
        flavor = factories.flavor(
            f"t4.{name}", FlavorKind.SHARE, model=T4, isolation=isolation, memory_mib=15_360
        )
        factories.quota(cast.detection, flavor)
        factories.node(north, name, gpus=1, model=T4, share_isolation=isolation, share_replicas=4)


def body(cast: Cast, *flavors: str, **of_pods: object) -> Json:
    pods = {"name": "main", "cpu_milli": 100, "memory_mib": 64, "gpu_count": 1, "image": "x"}
    pods |= {"flavors": list(flavors), "gpu_milli": 250} | of_pods
    return {"project": str(cast.detection.id), "name": "train", "pod_sets": [pods]}


def test_an_owner_says_what_the_project_accepts_and_that_is_audited(api: Api, cast: Cast) -> None:
    url = f"/api/v1/projects/{cast.detection.id}"
    said = {"least_isolation": "memory"}
    made = api(cast.ada).post(f"{url}/least-isolation", said, format="json")
    assert (made.status_code, made.json()["least_isolation"]) == (200, "memory")
    assert api(cast.ben).get(url).json()["least_isolation"] == "memory"
    event = AuditEvent.objects.get(action="project.least-isolation")
    assert (event.before, event.after) == ({"least_isolation": "none"}, said)


@pytest.mark.parametrize("said", [{}, {"least_isolation": None}, {"least_isolation": "glass"}])
def test_what_is_no_isolation_changes_nothing(
    api: Api, cast: Cast, nothing_stored: Unchanged, said: Json
) -> None:
    url = f"/api/v1/projects/{cast.detection.id}/least-isolation"
    with nothing_stored():
        answer = api(cast.ada).post(url, said, format="json")
    assert [pointer for pointer, _ in refused(answer)] == ["/least_isolation"]


def test_a_new_project_accepts_no_shares(api: Api, cast: Cast) -> None:
    said = {"tenant": str(cast.vision.id), "name": "Tracking", "slug": "tracking"}
    made = api(cast.ada).post("/api/v1/projects", said, format="json")
    assert (made.status_code, made.json()["least_isolation"]) == (201, "hardware")


@pytest.mark.usefixtures("shares")
def test_work_is_refused_whose_flavors_isolate_less_than_its_project_accepts(
    api: Api, cast: Cast, nothing_stored: Unchanged
) -> None:
    Project.objects.filter(id=cast.detection.id).update(least_isolation="memory")
    with nothing_stored():
        answer = api(cast.ben).post("/api/v1/workloads", body(cast, "t4.slot"), format="json")
    assert refused(answer) == [("/pod_sets/0/flavors/0", "isolation")]
    assert "the project accepts no less than memory limits alone" in answer.json()["detail"]
    either = body(cast, "t4.slot", "t4.mps")
    assert api(cast.ben).post("/api/v1/workloads", either, format="json").status_code == 201


@pytest.mark.usefixtures("shares")
def test_pods_ask_for_more_than_their_project_does(api: Api, cast: Cast) -> None:
    asked = body(cast, "t4.mps", least_isolation="hardware")
    answer = api(cast.ben).post("/api/v1/workloads", asked, format="json")
    assert refused(answer) == [("/pod_sets/0/flavors/0", "isolation")]
    asked = body(cast, "t4.mps", least_isolation="memory")
    made = api(cast.ben).post("/api/v1/workloads", asked, format="json")
    assert made.status_code == 201
    shown = api(cast.ben).get(f"/api/v1/workloads/{made.json()['id']}").json()
    assert shown["pod_sets"][0]["least_isolation"] == "memory"


@pytest.mark.usefixtures("one_moment", "shares")
def test_a_dry_run_shows_the_check_and_what_would_help(api: Api, cast: Cast) -> None:
    made = api(cast.ben).post("/api/v1/workloads", body(cast, "t4.slot"), format="json")
    Project.objects.filter(id=cast.detection.id).update(least_isolation="hardware")
    told = api(cast.ben).get(f"/api/v1/workloads/{made.json()['id']}/explanation").json()
    assert told["reason"]["code"] == "isolation"
    (option,) = told["options"]
    assert (option["flavors"], option["checks"][0]["code"]) == (["t4.slot"], "isolation")
    assert option["checks"][0]["state"] == "failed"
    assert [each["change"] for each in told["relaxations"]] == ["isolation"]


@pytest.mark.usefixtures("shares")
def test_memory_of_a_device_is_asked_for_and_shown(api: Api, cast: Cast) -> None:
    asked = body(cast, "t4.mps", gpu_memory_mib=5_000, gpu_milli=1000)
    made = api(cast.ben).post("/api/v1/workloads", asked, format="json")
    assert made.status_code == 201
    assert PodSet.objects.get().gpu_memory_mib == 5_000
    shown = api(cast.ben).get(f"/api/v1/workloads/{made.json()['id']}").json()
    assert shown["pod_sets"][0]["gpu_memory_mib"] == 5_000


@pytest.mark.usefixtures("shares")
def test_more_memory_than_any_device_has_is_refused_with_the_largest(
    api: Api, cast: Cast, nothing_stored: Unchanged
) -> None:
    asked = body(cast, "t4.slot", "t4.mps", gpu_memory_mib=20_000, gpu_milli=1000)
    with nothing_stored():
        answer = api(cast.ben).post("/api/v1/workloads", asked, format="json")
    assert refused(answer) == [("/pod_sets/0/gpu_memory_mib", "exceeds-capacity")]
    assert "one GPU of t4.slot has 15 GiB" in answer.json()["detail"]


@pytest.mark.usefixtures("shares")
def test_a_share_by_memory_beyond_the_quota_is_refused_at_the_memory(
    api: Api, cast: Cast, nothing_stored: Unchanged
) -> None:
    Quota.objects.update(nominal_milli=300, borrowing_limit_milli=0)
    asked = body(cast, "t4.mps", gpu_memory_mib=5_000, gpu_milli=1000)
    with nothing_stored():
        answer = api(cast.ben).post("/api/v1/workloads", asked, format="json")
    assert refused(answer) == [("/pod_sets/0/gpu_memory_mib", "never-admissible")]


@pytest.mark.usefixtures("shares", "one_moment")
@pytest.mark.parametrize("of_pods", [{}, {"gpu_memory_mib": 3_840, "gpu_milli": 1000}])
def test_what_a_mode_costs_is_of_the_share_that_is_given(
    api: Api, cast: Cast, of_pods: Json
) -> None:
    Project.objects.filter(id=cast.detection.id).update(least_isolation="memory")
    for name, price in (("t4.slot", "1.00"), ("t4.mps", "4.00")):
        factories.rate(Flavor.objects.get(name=name), price)
    asked = body(cast, "t4.slot", "t4.mps", **of_pods)
    answer = api(cast.ben).post("/api/v1/workloads/modes", asked, format="json")
    assert answer.status_code == 200, answer.json()
    [firm] = [each for each in answer.json()["modes"] if each["mode"] == "non-preemptible"]
    assert Decimal(firm["most_per_hour"]) == 1
    [need] = firm["needs"]
    assert (need["flavor"], need["asked_milli"]) == ("t4.mps", 250)


@pytest.mark.usefixtures("shares", "one_moment")
def test_modes_are_compared_while_the_project_changes_what_it_accepts(
    api: Api, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two queries of one request, both ways."""
    asked = body(cast, "t4.slot")
    strict = Project.objects.filter(id=cast.detection.id)
    real = admissibility.problems

    def as_before(**told: Any) -> list[Problem]:  # Any: as `problems` is asked
        strict.update(least_isolation="none")
        found = real(**told)
        strict.update(least_isolation="hardware")
        return found

    monkeypatch.setattr(admissibility, "problems", as_before)
    strict.update(least_isolation="hardware")
    answer = api(cast.ben).post("/api/v1/workloads/modes", asked, format="json")
    assert answer.status_code == 200, answer.json()
    firm = next(each for each in answer.json()["modes"] if each["mode"] == "non-preemptible")
    assert (firm["most_per_hour"], firm["needs"]) == (None, [])
    assert firm["reason"]["code"] == "isolation"
