"""Node pools that an operator declares: what is refused, and how their nodes are counted."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from threading import Event
from typing import Any

import pytest
from django.db import transaction

from clusters.adapters.kubernetes import node_requests
from clusters.adapters.kubernetes.checks import Malformed
from clusters.adapters.kubernetes.names import Names
from clusters.autoscaling import (
    Amounts,
    Autoscaling,
    NodeClaimReport,
    NodePoolReport,
    NodeRequestReport,
)
from clusters.models import Cluster, NodePool
from clusters.services import autoscaling, declared_pools
from clusters.services.autoscaling import Described
from clusters.services.declared_pools import Declared
from controlplane.audit.models import AuditEvent
from controlplane.kernel.errors import Conflict, Invalid, NotFound
from controlplane.kernel.ids import uuid7
from tests import factories
from tests.factories import AT
from tests.scheduler.locks import at_once, until_somebody_waits
from tests.waiting import PATIENCE_S

OF_POOL = {"cloud.google.com/gke-nodepool": "a3"}
POOL = Declared("a3", OF_POOL, "queued-provisioning.gke.io", 4, {"maxRunDurationSeconds": "60"})
SHAPE = Described("H100-80GB-HBM3", 8, 96_000, 1_000_000)
BY = {"actor": "user:oz", "actor_name": "oz"}
NAMES = Names("berth.dev", "berth")


@pytest.fixture
def north(db: None) -> Cluster:
    return factories.cluster("north")


def declare(cluster: Cluster, pool: Declared = POOL) -> NodePool:
    return declared_pools.declare(cluster=cluster, pool=pool, node=SHAPE, at=AT, **BY)


def seen(cluster: Cluster, *requests: NodeRequestReport, at: datetime = AT) -> NodePool:
    autoscaling.sync(cluster=cluster, found=Autoscaling(requests=requests), at=at)
    return NodePool.objects.get(name="a3")


def request(pool: NodePool, nodes: int = 2, **said: Any) -> NodeRequestReport:  # Any: its fields
    ask = str(uuid7())
    return NodeRequestReport(
        **{
            "name": f"nodes-{ask}",
            "uid": f"uid-{ask}",
            "template_uid": "t",
            "ask": ask,
            "pool": str(pool.pk),
            "nodes": nodes,
            "created_at": AT,
            "accepted": True,
            **said,
        }
    )


def test_a_declared_pool_counts_once_its_cluster_takes_requests(north: Cluster) -> None:
    pool = declare(north)
    assert (pool.ready, pool.room_count) == (False, 0)
    pool = seen(north)
    assert (pool.ready, pool.room_count, pool.making_count) == (True, 4, 0)
    factories.node(north, "there", gpus=8, labels=OF_POOL)
    factories.node(north, "of-another", gpus=8, labels={"cloud.google.com/gke-nodepool": "a2"})
    pool = seen(north)
    assert (pool.room_count, pool.used, str(pool.like)) == (3, {"nodes": 1}, "there")


def test_nodes_that_come_after_a_request_answer_it_in_order(north: Cluster) -> None:
    pool = declare(north)
    factories.node(north, "before", gpus=8, labels=OF_POOL)
    first, second = request(pool, 1), request(pool, 2, created_at=AT + timedelta(seconds=5))
    pool = seen(north, second, first)
    assert (pool.making_count, pool.room_count) == (3, 0)
    first, second = (replace(one, provisioned=True) for one in (first, second))
    for name in ("new-1", "new-2"):
        factories.node(north, name, gpus=8, labels=OF_POOL)
    pool = seen(north, first, second, at=AT + timedelta(seconds=60))
    claims = pool.claims.order_by("created_at", "name")
    assert [(one.node, one.ready_at is not None) for one in claims] == [
        ("new-1", True),
        ("new-2", True),
        ("", False),
    ]
    assert (pool.making_count, pool.room_count) == (1, 0)
    assert (pool.start_p50_s, pool.start_p90_s) == (55, 60)
    pool = seen(north, request(pool, 1))  # the others are gone: what came for them is theirs
    assert (pool.making_count, pool.start_count, pool.room_count) == (1, 2, 0)


def test_a_node_that_is_not_ready_is_still_being_made(north: Cluster) -> None:
    pool = declare(north)
    asked = request(pool, 1, provisioned=True)
    seen(north, asked)
    node = factories.node(north, "new", gpus=8, labels=OF_POOL, ready=False)
    pool = seen(north, asked, at=AT + timedelta(seconds=30))
    assert (pool.making_count, pool.room_count, pool.start_count) == (1, 3, 0)
    node.ready = True
    node.save()
    pool = seen(north, asked, at=AT + timedelta(seconds=90))
    assert (pool.making_count, pool.start_p50_s) == (0, 90)


def test_nodes_are_those_of_a_request_that_is_provisioned(north: Cluster) -> None:
    pool = declare(north)
    queued = request(pool)
    provisioned = request(pool, created_at=AT + timedelta(seconds=5), provisioned=True)
    for name in ("new-1", "new-2"):
        factories.node(north, name, gpus=8, labels=OF_POOL)
    pool = seen(north, queued, provisioned)
    came = {one.name: one.node for one in pool.claims.all()}
    assert came == {
        f"{queued.name}-0": "",
        f"{queued.name}-1": "",
        f"{provisioned.name}-0": "new-1",
        f"{provisioned.name}-1": "new-2",
    }
    pool = seen(north, replace(queued, ended="Failed: no room"), provisioned)
    assert (pool.making_count, pool.room_count) == (0, 2)


def test_nothing_is_expected_of_a_request_that_ended(north: Cluster) -> None:
    pool = declare(north)
    seen(north, asked := request(pool))
    pool = seen(north, replace(asked, ended="Failed: no room"))
    assert (pool.making_count, pool.room_count) == (0, 4)


def test_karpenters_pools_and_declared_ones_are_apart(north: Cluster) -> None:
    declare(north)
    theirs = (NodePoolReport("a3", limits=Amounts(nodes=9)), NodePoolReport("karpenters"))
    claim = NodeClaimReport("k-1", "uid-k-1", "a3", AT)
    found = Autoscaling(theirs, (claim,), ("odd: no sense",), ())
    autoscaling.sync(cluster=north, found=found, at=AT)
    pool = NodePool.objects.get(name="a3")
    assert (pool.limits, pool.making_count) == ({"nodes": 4}, 0)
    north.refresh_from_db()
    assert north.left_out["node_pools"] == {
        "count": 2,
        "first": [
            "odd: no sense",
            "a3: an operator declared a pool of that name, which hides Karpenter's",
        ],
    }
    with pytest.raises(Conflict, match="itself tells of a pool karpenters"):
        declare(north, replace(POOL, name="karpenters"))
    with pytest.raises(Conflict, match="itself tells of it"):
        declared_pools.forget(id=NodePool.objects.get(name="karpenters").id, at=AT, **BY)


def test_one_is_changed_forgotten_and_declared_anew(north: Cluster) -> None:
    pool = declare(north)
    assert declare(north, replace(POOL, nodes=2)).pk == pool.pk
    assert seen(north).room_count == 2
    declared_pools.forget(id=pool.id, at=AT, **BY)
    assert seen(north).gone_at == AT
    with pytest.raises(NotFound):
        declared_pools.forget(id=pool.id, at=AT, **BY)
    assert declare(north).gone_at is None
    events = AuditEvent.objects.filter(action__in=["node-pool.declare", "node-pool.forget"])
    assert [
        (one.before.get("nodes"), one.after.get("nodes")) for one in events.order_by("id")
    ] == [
        (None, 4),
        (4, 2),
        (2, None),
        (None, 4),
    ]


def test_one_declared_anew_as_it_was_is_read_anew(north: Cluster) -> None:
    pool = declare(north)
    seen(north)
    declared_pools.forget(id=pool.id, at=AT, **BY)
    north.refresh_from_db()
    before = north.inventory_rev
    again = declare(north)
    north.refresh_from_db()
    assert (again.ready, again.room_count, north.inventory_rev) == (False, 0, before + 1)
    assert seen(north).room_count == 4
    assert declare(north, replace(POOL, nodes=2)).room_count == 2


def test_one_in_place_of_karpenters_waits_for_what_its_cluster_says(north: Cluster) -> None:
    theirs = Autoscaling((NodePoolReport("a3", limits=Amounts(nodes=9)),))
    autoscaling.sync(cluster=north, found=theirs, at=AT)
    autoscaling.sync(cluster=north, found=Autoscaling(), at=AT)
    assert not declare(north).ready


@pytest.mark.django_db(transaction=True)
def test_whoever_reads_the_cluster_and_whoever_forgets_a_pool_do_not_block_each_other() -> None:
    pool = declare(factories.cluster("north"))
    held = Event()

    def read() -> None:
        with transaction.atomic():
            Cluster.objects.select_for_update(no_key=True).get()
            held.set()
            until_somebody_waits()
            NodePool.objects.update(used={"nodes": 1})

    def forget() -> None:
        assert held.wait(PATIENCE_S)
        declared_pools.forget(id=pool.id, at=AT, **BY)

    at_once(read, forget)
    pool.refresh_from_db()
    assert (pool.used, pool.gone_at) == ({"nodes": 1}, AT)


@pytest.mark.parametrize(
    ("wrong", "pointer"),
    [
        ({"name": "A 3"}, "/name"),
        ({"selector": {}}, "/selector"),
        ({"selector": {"a b": "c"}}, "/selector"),
        ({"selector": {"a" * 64: "c"}}, "/selector"),
        ({"selector": {"a..b/c": "d"}}, "/selector"),
        ({"selector": {"/c": "d"}}, "/selector"),
        ({"selector": {"a/b/c": "d"}}, "/selector"),
        ({"selector": {"a": "b c"}}, "/selector"),
        ({"selector": {"a": "b" * 64}}, "/selector"),
        ({"request_class": "Some Class"}, "/request_class"),
        ({"request_class": "check-capacity.autoscaling.x-k8s.io"}, "/request_class"),
        ({"nodes": 0}, "/nodes"),
        ({"nodes": 10_001}, "/nodes"),
        ({"parameters": {"a": "b" * 256}}, "/parameters"),
        ({"parameters": {str(n): "" for n in range(21)}}, "/parameters"),
    ],
)
def test_what_no_cluster_would_take_is_refused(
    north: Cluster, wrong: Mapping[str, Any], pointer: str
) -> None:
    with pytest.raises(Invalid) as told:
        declare(north, replace(POOL, **wrong))
    assert [problem.pointer for problem in told.value.problems] == [pointer]


LABELS = {
    NAMES.label_installation: "berth",
    NAMES.label_ask: str(uuid7()),
    NAMES.label_node_pool: str(uuid7()),
}


def body(**changed: Any) -> dict[str, Any]:  # Any: JSON
    return {
        "metadata": {"name": "a", "uid": "u", "namespace": NAMES.home, "labels": LABELS},
        "spec": {"podSets": [{"count": 2}, {"count": 1}]},
        **changed,
    }


def test_the_worst_that_a_request_says_is_its_end() -> None:
    told = [
        {"type": kind, "status": status, "message": f"of {kind}"}
        for kind, status in (
            ("Provisioned", "True"),
            ("BookingExpired", "True"),
            ("CapacityRevoked", "True"),
            ("Failed", "False"),
        )
    ]
    found = node_requests.report(body(status={"conditions": told}), names=NAMES)
    assert (found.nodes, found.provisioned) == (3, True)
    assert found.ended == "CapacityRevoked: of CapacityRevoked"


@pytest.mark.parametrize(
    "odd",
    [
        {"spec": {"podSets": [{"count": "2"}]}},
        {"spec": {"podSets": [{"count": -1}]}},
        {"spec": {"podSets": "all"}},
        {
            "metadata": {
                "name": "a",
                "uid": "u",
                "namespace": NAMES.home,
                "labels": {**LABELS, NAMES.label_ask: "nobody's"},
            }
        },
    ],
)
def test_a_request_that_makes_no_sense_is_left_out(odd: Mapping[str, Any]) -> None:
    with pytest.raises(Malformed):
        node_requests.report(body(**odd), names=NAMES)
