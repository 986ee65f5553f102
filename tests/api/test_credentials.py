"""Storing how a cluster is reached: written once, shown never."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from rest_framework.test import APIClient

from clusters import registry
from clusters.models import Cluster, ClusterCredential
from controlplane.api.models import IdempotencyKey
from tenants.models import User
from tests import factories
from tests.conftest import Cast, Unchanged

type Api = Callable[[User | None], APIClient]
type Json = Any  # JSON values

TOKEN = "canary-token-0123456789"
KUBECONFIGS = Path(__file__).parents[1] / "clusters/kubeconfigs"
PLAIN = {"server": "https://north.example.test:6443", "token": TOKEN}
METRICS = {"server": "https://prometheus.example.test", "token": TOKEN}


@pytest.fixture
def north(db: None) -> Cluster:
    return factories.cluster("north")


def put(client: APIClient, cluster: Cluster, body: Json, **headers: str) -> Json:
    url = f"/api/v1/clusters/{cluster.id}/credential"
    answer = client.put(url, body, format="json", headers=headers)
    assert "canary" not in answer.content.decode()
    return answer


def kept() -> Json:
    """What is sealed."""
    return orjson.loads(registry.opened(ClusterCredential.objects.get()))


def test_it_is_stored_and_only_its_outside_is_shown(api: Api, cast: Cast, north: Cluster) -> None:
    before = api(cast.vik).get(f"/api/v1/clusters/{north.id}").json()
    assert before["credential"] is None
    answer = put(api(cast.oz), north, {**PLAIN, "metrics": METRICS})
    assert answer.status_code == 200
    shown = answer.json()
    assert set(shown) == {
        "host", "key_id", "expires_at", "metrics_server", "version", "set_at", "set_by",
    }  # fmt: skip
    assert (shown["host"], shown["version"], shown["set_by"]) == (
        "north.example.test:6443",
        1,
        "oz",
    )
    assert api(cast.vik).get(f"/api/v1/clusters/{north.id}").json()["credential"] == shown
    [listed] = api(cast.vik).get("/api/v1/clusters").json()["items"]
    assert listed["credential"] == shown
    assert shown["metrics_server"] == METRICS["server"]
    assert kept() == {**PLAIN, "metrics": METRICS}


def test_what_measures_a_cluster_is_not_dropped_without_a_word(
    api: Api, cast: Cast, north: Cluster, nothing_stored: Unchanged
) -> None:
    client = api(cast.oz)
    assert put(client, north, PLAIN).json()["metrics_server"] == ""
    assert put(client, north, {**PLAIN, "metrics": METRICS}).status_code == 200
    with nothing_stored():
        refused = put(client, north, PLAIN)
    assert refused.status_code == 400
    [fault] = refused.json()["errors"]
    assert fault["pointer"] == "/metrics"
    assert f"{METRICS['server']} measures the cluster by now" in fault["message"]
    assert put(client, north, {**PLAIN, "metrics": None}).json()["metrics_server"] == ""
    assert kept() == PLAIN
    assert put(client, north, PLAIN).status_code == 200


def test_nor_where_nobody_knows_whether_something_does(
    api: Api, cast: Cast, north: Cluster, nothing_stored: Unchanged
) -> None:
    put(api(cast.oz), north, {**PLAIN, "metrics": METRICS})
    ClusterCredential.objects.update(metrics_server=None)  # as one that was stored before
    shown = api(cast.vik).get(f"/api/v1/clusters/{north.id}").json()["credential"]
    assert shown["metrics_server"] is None
    text = (KUBECONFIGS / "accepted/k3s.yaml").read_text()
    with nothing_stored():
        refused = put(api(cast.oz), north, {"kubeconfig": text})
    assert "not known here" in refused.json()["errors"][0]["message"]
    assert put(api(cast.oz), north, {"kubeconfig": text, "metrics": None}).status_code == 200


@pytest.mark.parametrize("name", ["kind", "k3s", "eks-bound-token"])
def test_a_kubeconfig_is_taken_apart(api: Api, cast: Cast, north: Cluster, name: str) -> None:
    text = (KUBECONFIGS / f"accepted/{name}.yaml").read_text()
    answer = put(api(cast.oz), north, {"kubeconfig": text, "metrics": METRICS})
    assert answer.status_code == 200
    assert answer.json()["expires_at"] is not None
    assert set(kept()) - {"certificate", "key", "token"} == {"server", "ca", "metrics"}


@pytest.mark.parametrize(
    ("body", "pointer", "said"),
    [
        ({}, "/server", "an https URL"),
        ({**PLAIN, "server": "http://north.example.test"}, "/server", "only https"),
        ({**PLAIN, "token": "canary"}, "/token", "at least 16 characters"),
        ({**PLAIN, "token": 7}, "/token", "A string is wanted"),
        ({**PLAIN, "token": f"{TOKEN}\r\nX: y"}, "/token", "not accepted here"),
        ({**PLAIN, "exec": {"command": TOKEN}}, "/exec", "no such field"),
        ({**PLAIN, "metrics": {**METRICS, "server": "x"}}, "/metrics/server", "an https URL"),
        ({**PLAIN, "metrics": {}}, "/metrics/server", "required"),
        ({**PLAIN, "kubeconfig": "x"}, "/kubeconfig", "not both"),
        ({"kubeconfig": f"users: [{TOKEN}"}, "/kubeconfig", "not YAML"),
        ({"kubeconfig": 7}, "/kubeconfig", "A string is wanted"),
        ({"kubeconfig": "x" * 70_000}, "/kubeconfig", "more than 64 KiB"),
    ],
)
def test_what_is_none_is_refused_by_its_place_and_not_quoted(
    api: Api, cast: Cast, north: Cluster, nothing_stored: Unchanged,
    body: Json, pointer: str, said: str,
) -> None:  # fmt: skip
    with nothing_stored():
        answer = put(api(cast.oz), north, body)
    assert answer.status_code == 400
    assert (pointer, True) in [
        (fault["pointer"], said in fault["message"]) for fault in answer.json()["errors"]
    ]


def test_no_hostile_kubeconfig_comes_in(
    api: Api, cast: Cast, north: Cluster, nothing_stored: Unchanged
) -> None:
    client = api(cast.oz)
    files = set((KUBECONFIGS / "hostile").glob("*.yaml"))
    for file in files - {KUBECONFIGS / "hostile/no-utf-8.yaml"}:  # which no JSON can carry
        text = file.read_text()
        with nothing_stored():
            answer = put(client, north, {"kubeconfig": text})
        assert answer.status_code == 400, file.stem


def test_the_same_key_again_stores_no_second_version(api: Api, cast: Cast, north: Cluster) -> None:
    key = {"Idempotency-Key": "one"}
    first, again = (put(api(cast.oz), north, PLAIN, **key) for _ in range(2))
    assert first.json() == again.json()
    assert again["Idempotency-Replayed"] == "true"
    assert ClusterCredential.objects.get().version == 1
    assert TOKEN not in str(IdempotencyKey.objects.values_list().get())
    other = put(api(cast.oz), north, {**PLAIN, "token": f"{TOKEN}-2"}, **key)
    assert other.status_code == 422


def test_a_cluster_that_is_not_there_has_none(api: Api, cast: Cast, db: None) -> None:
    assert put(api(cast.oz), Cluster(name="gone"), PLAIN).status_code == 404
