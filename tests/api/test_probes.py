"""Connecting a cluster through the API: the manifest, and probes as rows that anybody may poll."""

from collections.abc import Callable
from typing import Any

import pytest
import yaml
from pytest_django import Settings
from rest_framework.test import APIClient

from clusters.models import Cluster, ClusterProbe, Exposure
from clusters.port import Verdict
from controlplane.kernel import clock
from scheduler import tasks
from tenants.models import User
from tests import factories
from tests.conftest import Cast, Unchanged
from tests.simulation import Simulator, simulator

__all__ = ["simulator"]

type Api = Callable[[User | None], APIClient]
type Json = Any  # JSON values

MANIFEST = "/api/v1/cluster-manifest"


@pytest.fixture
def north(db: None) -> Cluster:
    return factories.cluster("north")


def url(cluster: Cluster) -> str:
    return f"/api/v1/clusters/{cluster.id}/probes"


def test_the_manifest_is_what_the_command_prints(api: Api, cast: Cast) -> None:
    answer = api(cast.pia).get(MANIFEST, {"token_hours": "24"})
    assert answer["Content-Type"] == "application/yaml; charset=utf-8"
    text = answer.content.decode()
    assert "--duration 24h\n" in text
    assert "ServiceAccount" in {each["kind"] for each in yaml.safe_load_all(text)}


@pytest.mark.parametrize("accept", ["application/json", "text/yaml", "text/html,*/*;q=0.8"])
def test_the_manifest_is_yaml_whatever_is_accepted(api: Api, cast: Cast, accept: str) -> None:
    answer = api(cast.oz).get(MANIFEST, headers={"accept": accept})
    assert (answer.status_code, answer["Content-Type"].partition(";")[0]) == (
        200,
        "application/yaml",
    )
    refused = api(cast.ada).get(MANIFEST, headers={"accept": accept})
    assert (refused.status_code, refused["Content-Type"]) == (403, "application/problem+json")


def test_the_manifest_has_the_parts_that_are_asked_for(api: Api, cast: Cast) -> None:
    text = api(cast.pia).get(MANIFEST, {"parts": "mig,catch"}).content.decode()
    names = {each["metadata"]["name"] for each in yaml.safe_load_all(text)}
    assert {"berth-mig", "berth-catch"} <= names
    assert not {"berth-dra", "berth-autoscale", "berth-logs"} & names
    for wrong in ("root", "mig,", "mig,root", ","):
        answer = api(cast.pia).get(MANIFEST, {"parts": wrong})
        assert answer.status_code == 400
        [problem] = answer.json()["errors"]
        assert "mig, dra, catch, autoscale, logs" in problem["message"]


def test_a_user_stands_in_the_manifest_in_place_of_the_account(api: Api, cast: Cast) -> None:
    text = api(cast.oz).get(MANIFEST, {"user": "fleet@example.test"}).content.decode()
    objects = list(yaml.safe_load_all(text))
    kinds = {each["kind"]: each for each in objects}
    accounts = [one["metadata"]["name"] for one in objects if one["kind"] == "ServiceAccount"]
    assert accounts == ["berth-workload"]  # its pods', without rights
    assert kinds["ClusterRoleBinding"]["subjects"][0]["name"] == "fleet@example.test"


@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        ({"user": "a' || 'b"}, "?user"),
        ({"user": "a\nb"}, "?user"),
        ({"user": ""}, "?user"),
        ({"token_hours": "0"}, "?token_hours"),
        ({"token_hours": "9999999"}, "?token_hours"),
        ({"token_hours": "x"}, "?token_hours"),
        ({"token": "x"}, "?token"),
    ],
)
def test_what_is_no_user_and_no_time_is_a_problem(
    api: Api, cast: Cast, query: dict[str, str], pointer: str
) -> None:
    answer = api(cast.oz).get(MANIFEST, query)
    assert (answer.status_code, answer["Content-Type"]) == (400, "application/problem+json")
    assert [fault["pointer"] for fault in answer.json()["errors"]] == [pointer]


def test_an_installation_whose_name_is_none_has_no_manifest(
    api: Api, cast: Cast, settings: Settings
) -> None:
    settings.BERTH_INSTALLATION = "No Name"
    answer = api(cast.oz).get(MANIFEST)
    assert answer.status_code == 503
    assert "BERTH_INSTALLATION" in answer.json()["detail"]


def test_a_cluster_is_registered_with_its_server(api: Api, cast: Cast, db: None) -> None:
    body = {"name": "north", "server": "https://north.example.test:6443/"}
    made = api(cast.oz).post("/api/v1/clusters", body, format="json")
    assert made.json()["server"] == "https://north.example.test:6443"


@pytest.mark.parametrize("server", ["http://north.example.test", "north", "https://a:b@north"])
def test_a_server_that_is_none_is_refused(
    api: Api, cast: Cast, nothing_stored: Unchanged, server: str
) -> None:
    with nothing_stored():
        answer = api(cast.oz).post(
            "/api/v1/clusters", {"name": "north", "server": server}, format="json"
        )
    assert answer.status_code == 400
    assert [fault["pointer"] for fault in answer.json()["errors"]] == ["/server"]


def test_a_probe_is_asked_for_and_followed_to_its_end(
    api: Api, cast: Cast, north: Cluster, simulator: Simulator
) -> None:
    simulator.store_credential(north)
    ClusterProbe.objects.all().delete()
    answer = api(cast.oz).post(url(north))
    assert answer.status_code == 202
    asked = answer.json()
    assert (asked["asked_by"], asked["ended_at"], asked["verdict"]) == ("oz", None, "")
    assert asked["steps"] == []
    one = f"{url(north)}/{asked['id']}"
    assert api(cast.pia).get(one).json() == asked
    simulator.fault(kind="forbid", verb="delete", resource="pods", count=0)
    tasks.probe_cluster(probe_id=asked["id"])
    ended = api(cast.pia).get(one).json()
    assert (ended["verdict"], ended["credential_version"]) == ("fails", 1)
    [failed] = [step for step in ended["steps"] if step["verdict"] == "fails"]
    assert failed["name"] == "delete pods"
    assert failed["said"].startswith("may not delete pods: add the verb to the ClusterRole berth")


def test_one_that_is_under_way_is_the_answer(api: Api, cast: Cast, north: Cluster) -> None:
    first, second = (api(cast.oz).post(url(north)).json() for _ in range(2))
    assert first["id"] == second["id"]


def test_the_same_key_again_asks_for_no_second_one(api: Api, cast: Cast, north: Cluster) -> None:
    headers = {"Idempotency-Key": "one"}
    first = api(cast.oz).post(url(north), headers=headers).json()
    tasks.probe_cluster(probe_id=first["id"])
    again = api(cast.oz).post(url(north), headers=headers)
    assert (again.json(), again["Idempotency-Replayed"]) == (first, "true")
    assert ClusterProbe.objects.count() == 1


def test_the_newest_is_listed_first_and_only_its_clusters(
    api: Api, cast: Cast, north: Cluster
) -> None:
    old = factories.probe(north, Verdict.WORKS, Verdict.WARNING)
    new = factories.probe(north, Verdict.FAILS, Verdict.WORKS)
    other = factories.probe(factories.cluster("south"))
    items = api(cast.pia).get(url(north)).json()["items"]
    assert [(one["id"], one["verdict"]) for one in items] == [
        (str(new.id), "fails"),
        (str(old.id), "warning"),
    ]
    assert api(cast.pia).get(f"{url(north)}/{other.id}").status_code == 404


def test_a_body_is_refused(api: Api, cast: Cast, north: Cluster) -> None:
    assert api(cast.oz).post(url(north), {"now": True}, format="json").status_code == 400


def test_exposure_is_not_known_until_somebody_looked(
    api: Api, cast: Cast, north: Cluster, simulator: Simulator
) -> None:
    path = f"/api/v1/clusters/{north.id}/exposure"
    first = api(cast.pia).get(path).json()
    assert (first["verdict"], first["saw"], first["seen_at"]) == ("unknown", [], None)
    simulator.store_credential(north)
    assert api(cast.pia).get(path).json()["asked_at"]
    row = Exposure.objects.filter(cluster=north)
    row.update(verdict="unsafe", saw=["/dev/nvidia0"], node="n1", seen_at=clock.now())
    told = api(cast.oz).get(path).json()
    assert (told["verdict"], told["saw"], told["node"]) == ("unsafe", ["/dev/nvidia0"], "n1")
    assert api(cast.ada).get(path).status_code == 403
