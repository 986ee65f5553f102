"""Pools that an operator declares, over the API and on the page, and what is told of their
requests."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from rest_framework.test import APIClient

from clusters.models import Cluster, NodePool
from controlplane.kernel.clock import now
from scheduler.models import AskState, NodeAsk
from tenants.models import User
from tests import factories
from tests.api.test_node_pools import NODE, signed_in
from tests.conftest import Cast
from tests.declared import declared_pool

type Api = Callable[[User | None], APIClient]
SELECTOR = {"cloud.google.com/gke-nodepool": "a3"}
DECLARED = {
    "name": "a3",
    "selector": SELECTOR,
    "request_class": "queued-provisioning.gke.io",
    "parameters": {"maxRunDurationSeconds": "604800"},
    "nodes": 4,
}


@pytest.fixture
def cluster(db: None) -> Cluster:
    return factories.cluster()


def test_one_is_declared_read_and_forgotten(api: Api, cast: Cast, cluster: Cluster) -> None:
    url = f"/api/v1/clusters/{cluster.id}/node-pools"
    made = api(cast.oz).post(url, {**DECLARED, "node": NODE}, format="json")
    assert made.status_code == 200
    [shown] = api(cast.ben).get(url).json()
    assert shown == made.json()
    assert shown["node"] == {**NODE, "learnt": False}
    for name in ("name", "selector", "request_class", "parameters"):
        assert shown[name] == DECLARED[name]
    assert api(cast.oz).delete(f"/api/v1/node-pools/{shown['id']}").status_code == 204
    assert api(cast.ben).get(url).json() == []


def test_what_is_wrong_is_told_by_the_api(api: Api, cast: Cast, cluster: Cluster) -> None:
    url = f"/api/v1/clusters/{cluster.id}/node-pools"
    wrong = {**DECLARED, "nodes": 0, "node": NODE}
    answer = api(cast.oz).post(url, wrong, format="json")
    assert answer.status_code == 400
    assert "1 to 10000 are wanted, not 0." in answer.content.decode()
    wrong = {**DECLARED, "node": {**NODE, "gpus": 0}}
    answer = api(cast.oz).post(url, wrong, format="json")
    assert [one["pointer"] for one in answer.json()["errors"]] == ["/node/gpus"]


def test_one_is_declared_and_forgotten_on_the_page(cast: Cast, cluster: Cluster) -> None:
    client, url = signed_in(cast.oz), f"/clusters/{cluster.name}/node-pools"
    assert url in client.get(f"/clusters/{cluster.name}").content.decode()
    form = {
        **DECLARED,
        **NODE,
        "declare": "yes",
        "selector": "cloud.google.com/gke-nodepool=a3\n",
        "parameters": "maxRunDurationSeconds = 604800",
    }
    refused = client.post(url, {**form, "selector": "a3"})
    assert refused.status_code == 422
    assert "Lines of name=value are wanted." in refused.content.decode()
    refused = client.post(url, {**form, "gpus": 129})
    assert refused.context["declaring"].errors == {"gpus": ["1 to 128 are wanted, not 129."]}
    assert client.post(url, form).status_code == 303
    pool = NodePool.objects.get()
    assert (pool.selector, pool.parameters) == (SELECTOR, DECLARED["parameters"])
    assert pool.limits == {"nodes": 4}
    page = client.get(url).content.decode()
    assert "Up to 4 nodes with <code>cloud.google.com/gke-nodepool=a3</code>" in page
    assert "takes no such requests" in page
    elsewhere = f"/clusters/{factories.cluster('south').name}/node-pools"
    for posted in ({"forget": pool.id}, {"pool": pool.id, **NODE}):
        assert client.post(elsewhere, posted).status_code == 404
    assert client.post(url, {"forget": pool.id}).status_code == 303
    assert "Up to 4 nodes" not in client.get(url).content.decode()


def test_a_request_that_failed_is_told_with_the_work_and_with_the_pool(
    cast: Cast, cluster: Cluster
) -> None:
    pool = declared_pool(cluster)
    reason = {"code": "waiting-for-node", "numbers": {"nodes_count": 2, "node_pools": pool.name}}
    work = factories.workload(cast.detection, cast.ben, [factories.flavor()], reason=reason)
    ended = {"state": AskState.FAILED, "outcome": AskState.FAILED}
    ask = NodeAsk.objects.create(
        workload=work,
        pool=pool,
        nodes=[{}, {}],
        error="Failed: no capacity in any zone",
        asked_at=now(),
        ended_at=now(),
        **ended,
    )
    client = signed_in(cast.oz)
    page = signed_in(cast.ben).get(f"/workloads/{work.id}").content.decode()
    assert "for 2 nodes of a3 came to nothing" in page
    assert "Failed: no capacity in any zone" in page
    url = f"/clusters/{cluster.name}/node-pools"
    assert "came to nothing" in client.get(url).content.decode()
    ask.ended_at = now() - timedelta(hours=2)
    ask.save()
    assert "came to nothing" not in client.get(url).content.decode()


def test_the_page_tells_what_is_accepted_and_how_many_wait_of_others(
    cast: Cast, cluster: Cluster
) -> None:
    pool = declared_pool(cluster)
    work = factories.workload(cast.detection, cast.ben, [factories.flavor()])
    NodeAsk.objects.create(
        workload=work, pool=pool, nodes=[{}, {}], queued=True, asked_at=factories.AT
    )
    Cluster.objects.update(foreign_requests_count=3)
    page = signed_in(cast.oz).get(f"/clusters/{cluster.name}/node-pools").content.decode()
    assert "2 nodes asked for" in page
    assert ", accepted" in page
    assert "Others wait there for 3 requests that were accepted." in page
