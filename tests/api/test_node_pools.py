"""Nodes that can come, as people and programs are told, and what an operator says of one."""

from collections.abc import Callable

import pytest
from django.test import Client
from rest_framework.test import APIClient

from clusters.models import Cluster, NodePool
from controlplane.audit.models import AuditEvent
from scheduler.models import NodeAsk
from tenants.models import User
from tests import factories
from tests.conftest import Cast

type Api = Callable[[User | None], APIClient]
NODE = {"model": "H100-80GB-HBM3", "gpus": 8, "cpu_milli": 96_000, "memory_mib": 1_000_000}


@pytest.fixture
def pool(db: None) -> NodePool:
    return factories.node_pool(factories.cluster(), accelerator="h100", making_count=1)


def test_an_operator_says_what_a_node_has_and_everybody_reads_it(
    api: Api, cast: Cast, pool: NodePool
) -> None:
    url = f"/api/v1/clusters/{pool.cluster_id}/node-pools"
    [shown] = api(cast.ben).get(url).json()
    assert (shown["node"], shown["accelerator"], shown["making_count"]) == (None, "h100", 1)
    put = api(cast.oz).put(f"/api/v1/node-pools/{pool.id}/node", NODE, format="json")
    assert (put.status_code, put.json()["node"]) == (200, {**NODE, "learnt": False})
    [shown] = api(cast.ben).get(url).json()
    assert shown == put.json()


def test_the_clusters_page_shows_what_can_come_and_when(cast: Cast, pool: NodePool) -> None:
    NodePool.objects.update(
        node_model="H100-80GB-HBM3", node_gpus=8, node_cpu_milli=1, node_memory_mib=1,
        start_count=20, start_p50_s=360, start_p90_s=540,
    )  # fmt: skip
    page = signed_in(cast.ben).get(f"/clusters/{Cluster.objects.get().name}").content.decode()
    assert "Capacity that can come" in page
    assert "8 × H100-80GB-HBM3" in page
    assert "6 min, 9 in 10 within 9 min" in page


def test_an_operator_says_it_on_a_page_where_what_is_wrong_is_told(
    cast: Cast, pool: NodePool
) -> None:
    client = signed_in(cast.oz)
    url = f"/clusters/{pool.cluster.name}/node-pools"
    assert "Its template says of its GPUs: h100." in client.get(url).content.decode()
    refused = client.post(url, {**NODE, "pool": pool.id, "gpus": 129})
    assert refused.status_code == 422
    assert "1 to 128 are wanted, not 129." in refused.content.decode()
    assert client.post(url, {**NODE, "pool": pool.id}).status_code == 303
    pool.refresh_from_db()
    assert pool.node_gpus == 8


def test_a_cluster_is_asked_for_nodes_once_an_operator_says_so(
    api: Api, cast: Cast, pool: NodePool
) -> None:
    client, url = signed_in(cast.oz), f"/clusters/{pool.cluster.name}/node-pools"
    assert "Nobody asks the cluster for nodes" in client.get(url).content.decode()
    assert client.post(url, {"ask": "perhaps"}).status_code == 422
    assert client.post(url, {"ask": "yes"}).status_code == 303
    assert "Do not ask" in client.get(url).content.decode()
    cluster = f"/api/v1/clusters/{pool.cluster_id}"
    assert api(cast.ben).get(cluster).json()["asks_for_nodes"] is True
    answer = api(cast.oz).post(f"{cluster}/asking", {"ask": False}, format="json")
    assert (answer.status_code, answer.json()["asks_for_nodes"]) == (200, False)
    events = AuditEvent.objects.filter(action="cluster.ask-for-nodes").order_by("id")
    assert [event.after["asks_for_nodes"] for event in events] == [True, False]


def test_who_waits_is_told_since_when_nodes_are_asked_for(cast: Cast, pool: NodePool) -> None:
    NodePool.objects.update(start_p50_s=600, start_count=3)
    reason = {"code": "waiting-for-node", "numbers": {"nodes_count": 2, "node_pools": pool.name}}
    flavor = factories.flavor()
    work = factories.workload(cast.detection, cast.ben, [flavor], reason=reason)
    NodeAsk.objects.create(
        workload=work, pool=pool, nodes=[{}, {}], came=["n-1"], asked_at=factories.AT
    )
    page = signed_in(cast.ben).get(f"/workloads/{work.id}").content.decode()
    assert f"was asked for 2 nodes of {pool.name}" in page
    assert "1 came. As a rule they are there" in page


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client
