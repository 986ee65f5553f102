"""Node pools as rows: what a node has, how many can come, and how long one takes."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from clusters import selectors
from clusters.autoscaling import Amounts, Autoscaling, NodeClaimReport, NodePoolReport
from clusters.models import Cluster, NodeClaim, NodePool
from clusters.selectors import NodeShape
from clusters.services import autoscaling
from clusters.services.autoscaling import Described
from controlplane.audit.models import AuditEvent
from controlplane.kernel.errors import Conflict, Invalid, NotFound
from tests import factories
from tests.factories import AT

pytestmark = pytest.mark.django_db

POOL = NodePoolReport("h100s", limits=Amounts(devices=32), used=Amounts(devices=8))
OF_POOL = {"karpenter.sh/nodepool": "h100s"}
SHAPE = Described("H100-80GB-HBM3", 8, 96_000, 1_000_000)


@pytest.fixture
def north() -> Cluster:
    return factories.cluster("north")


def claim(name: str, *, made_at: datetime = AT, took_s: int | None = None) -> NodeClaimReport:
    """Of a node called the same; launched, and there after so many seconds."""
    there = None if took_s is None else made_at + timedelta(seconds=took_s)
    return NodeClaimReport(
        name, f"uid-{name}", "h100s", made_at, launched=True, node=name, initialized_at=there
    )


def seen(
    cluster: Cluster, *claims: NodeClaimReport, pool: NodePoolReport = POOL, at: datetime = AT
) -> NodePool:
    autoscaling.sync(cluster=cluster, found=Autoscaling((pool,), claims), at=at)
    return NodePool.objects.get(name=pool.name)


def describe(pool: NodePool, node: Described = SHAPE) -> NodePool:
    return autoscaling.describe_node(
        id=pool.id, node=node, actor="user:oz", actor_name="oz", at=AT
    )


def test_nobody_guesses_what_a_node_has(north: Cluster) -> None:
    pool = seen(north, pool=replace(POOL, model="H100-80GB-HBM3", accelerator="h100"))
    [one] = selectors.coming_nodes(cluster_id=north.id)
    assert (one.node, pool.room_count, pool.start_p50_s) == (None, None, None)


def test_an_operator_says_what_a_node_has_until_the_pool_has_had_one(north: Cluster) -> None:
    pool = describe(seen(north))
    assert pool.room_count == 3
    [one] = selectors.coming_nodes(cluster_id=north.id)
    assert one.node == NodeShape("H100-80GB-HBM3", 8, 96_000, 1_000_000, learnt=False)
    [event] = AuditEvent.objects.all()
    assert (event.action, event.after["node_gpus"]) == ("node-pool.describe-node", 8)

    factories.node(north, "first", gpus=4, labels=OF_POOL)
    assert seen(north).room_count == 6
    [one] = selectors.coming_nodes(cluster_id=north.id)
    assert one.node is not None
    assert (one.node.gpus, one.node.learnt) == (4, True)


def test_a_node_that_has_gone_still_says_what_the_next_will_have(north: Cluster) -> None:
    old = factories.node(north, "old", gpus=8, labels=OF_POOL)
    old.gone_at = AT
    old.save()
    factories.node(north, "another-pool", gpus=2, labels={"karpenter.sh/nodepool": "l4s"})
    factories.node(north, "by-hand", gpus=2)
    assert seen(north).like == old
    new = factories.node(north, "new", gpus=4, labels=OF_POOL)
    assert seen(north).like == new


def test_a_node_that_is_being_made_counts_until_the_inventory_has_it_too(north: Cluster) -> None:
    describe(seen(north))
    assert seen(north, claim("n-1")).making_count == 1
    ready = claim("n-1", took_s=400)
    assert seen(north, ready).making_count == 1
    node = factories.node(north, "n-1", gpus=8, labels=OF_POOL, ready=False)
    assert seen(north, ready).making_count == 1
    node.ready = True
    node.save()
    pool = seen(north, ready)
    assert (pool.making_count, pool.start_p50_s) == (0, 400)
    node.ready = False  # ill, not new
    node.save()
    assert seen(north, ready).making_count == 0


def test_what_no_cloud_has_agreed_to_is_taken_off_the_room(north: Cluster) -> None:
    describe(seen(north))
    assert seen(north, claim("n-1")).room_count == 3
    assert seen(north, replace(claim("n-2"), launched=False)).room_count == 2


def test_a_claim_that_was_missing_from_a_list_is_the_same_when_it_is_back(north: Cluster) -> None:
    seen(north, claim("n-1"))
    assert seen(north).making_count == 0
    assert seen(north, claim("n-1")).making_count == 1
    assert NodeClaim.objects.count() == 1


def test_nobody_counts_for_ever_on_a_node_that_was_ordered(north: Cluster) -> None:
    seen(north, claim("n-1"))
    late = AT + timedelta(hours=1, seconds=1)
    assert seen(north, claim("n-1"), at=late).making_count == 0


def test_of_a_pool_that_is_not_ready_nothing_can_come(north: Cluster) -> None:
    describe(seen(north))
    assert seen(north, pool=replace(POOL, ready=False)).room_count == 0


def test_how_long_a_node_takes_is_learnt_from_the_last_twenty(north: Cluster) -> None:
    claims = []
    for n in range(25):
        factories.node(north, f"n-{n}", gpus=8, labels=OF_POOL)
        made_at = AT + timedelta(minutes=n)
        took_s = 100 + n
        if n < 5:  # long ago, and slow
            made_at, took_s = AT - timedelta(hours=2), 1000
        claims.append(claim(f"n-{n}", made_at=made_at, took_s=took_s))
    pool = seen(north, *claims, at=AT + timedelta(hours=1))
    assert (pool.start_count, pool.start_p50_s, pool.start_p90_s) == (20, 114, 122)
    # What is gone has been all the same.
    assert seen(north, at=AT + timedelta(hours=2)).start_count == 20
    assert NodeClaim.objects.filter(gone_at=None).count() == 0


def test_a_pool_that_is_gone_is_not_shown_and_keeps_what_was_said(north: Cluster) -> None:
    describe(seen(north))
    assert autoscaling.sync(cluster=north, found=Autoscaling(), at=AT)
    assert selectors.coming_nodes(cluster_id=north.id) == ()
    seen(north)
    [one] = selectors.coming_nodes(cluster_id=north.id)
    assert one.node is not None


def test_nothing_is_written_where_nothing_has_changed(north: Cluster) -> None:
    factories.node(north, "n-1", gpus=8, labels=OF_POOL)
    seen(north, claim("n-1", took_s=60))
    north.refresh_from_db()
    rev = north.inventory_rev
    found = Autoscaling((POOL,), (claim("n-1", took_s=60),))
    assert not autoscaling.sync(cluster=north, found=found, at=AT)
    north.refresh_from_db()
    assert north.inventory_rev == rev > 0


@pytest.mark.parametrize(
    ("wrong", "pointer"),
    [
        (replace(SHAPE, model=""), "/model"),
        (replace(SHAPE, gpus=129), "/gpus"),
        (replace(SHAPE, cpu_milli=0), "/cpu_milli"),
        (replace(SHAPE, memory_mib=2**31), "/memory_mib"),
    ],
)
def test_what_no_node_has_is_refused(north: Cluster, wrong: Described, pointer: str) -> None:
    with pytest.raises(Invalid) as refused:
        describe(seen(north), wrong)
    assert refused.value.pointer == pointer


def test_what_the_template_says_is_not_contradicted(north: Cluster) -> None:
    pool = seen(north, pool=replace(POOL, model="L4"))
    with pytest.raises(Conflict, match="The pool's template says that its GPUs are L4"):
        describe(pool)
    autoscaling.sync(cluster=north, found=Autoscaling(), at=AT)
    with pytest.raises(NotFound):
        describe(pool)


def test_nothing_is_learnt_of_a_claim_that_is_of_the_future(north: Cluster) -> None:
    factories.node(north, "n-1", gpus=8, labels=OF_POOL)
    year = AT.replace(year=9000)
    pool = seen(north, replace(claim("n-1"), initialized_at=year), claim("n-2", made_at=year))
    assert (pool.making_count, pool.start_count) == (0, 0)
    assert not NodeClaim.objects.exists()


def test_a_node_of_another_model_than_the_template_names_is_no_example(north: Cluster) -> None:
    factories.node(north, "n-1", gpus=8, labels=OF_POOL)
    pool = describe(seen(north), replace(SHAPE, model="L4", gpus=2))
    assert seen(north, pool=replace(POOL, model="L4")).like is None
    assert seen(north, pool=replace(POOL, accelerator="l4, h100")).like is None
    [one] = selectors.coming_nodes(cluster_id=north.id)
    assert one.node is not None
    assert (one.node.model, one.node.learnt) == ("L4", False)
    assert seen(north).like is not None
    assert pool.pk
