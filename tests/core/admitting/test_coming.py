"""Nodes that can come: who waits for one is told so, and nobody is told so who lacks another
thing."""

from collections.abc import Sequence
from dataclasses import replace

from scheduler.core.cycle import never_admissible, plan
from scheduler.core.explaining.explain import explain
from scheduler.core.fleet.node_pools import MOST_NODES
from scheduler.core.memory import Memory
from scheduler.core.policy import Policy
from scheduler.core.reasons import ReasonCode as Code
from scheduler.core.reasons import describe
from scheduler.core.snapshot import ClusterView, ComingView, NodeView, Snapshot, TopologyView
from tests.core.build import (
    H100,
    Outcome,
    cluster,
    decide,
    job,
    node,
    pods,
    queue,
    runs,
    snapshot,
)

ONE = [node("n1", gpus=8)]
FULL = [runs("r", "a", *(f"n1/{n}" for n in range(8)), preemptible=False)]


def comes(count: int = 2, *, of: NodeView | None = None, **fields: int) -> ComingView:
    return ComingView("p", "h100s", of or node("like", gpus=8), count, **fields)


def growing(*pools: ComingView, nodes: Sequence[NodeView] = (), **fields: object) -> ClusterView:
    made = replace(cluster("c1", nodes), coming=pools)
    return replace(made, **fields)  # type: ignore[arg-type]  # of those that the view has


def waiting(of: ClusterView, count: int = 1, gpus: int = 8, quota: int = 32) -> Snapshot:
    return snapshot(
        clusters=[of],
        queues=[queue("a", h100=quota)],
        holding=FULL if of.nodes else [],
        pending=[job("w", "a", pods(count, gpus=gpus))],
    )


def told(of: Snapshot) -> Outcome:
    return decide(of)


def test_it_waits_for_as_many_nodes_as_it_takes() -> None:
    made = told(waiting(growing(comes(3, making_count=1, start_s=400), nodes=ONE), count=2))
    assert made.reason("w") is Code.WAITING_FOR_NODE
    assert describe(made.hold("w").reason) == (
        "16 h100 asked, 0 free in one cluster. It would start with 2 more nodes of h100s, of"
        " which 1 is being made; one takes 7 min as a rule."
    )


def test_of_more_than_can_come_nobody_speaks_of_a_node() -> None:
    made = told(waiting(growing(comes(2), nodes=ONE), count=3))
    assert made.reason("w") is Code.NO_FREE_CAPACITY


def test_a_gang_of_hundreds_of_nodes_waits_for_them() -> None:
    of = waiting(growing(comes(300)), count=MOST_NODES, quota=8 * MOST_NODES)
    made = told(of)
    assert made.reason("w") is Code.WAITING_FOR_NODE
    assert made.numbers("w")["nodes_count"] == MOST_NODES == 256
    assert never_admissible(of, of.pending[0]) is None


def test_what_is_free_is_taken_before_a_node_is_waited_for() -> None:
    made = told(waiting(growing(comes(2), nodes=[*ONE, node("n2", gpus=8)]), count=2))
    assert made.numbers("w")["nodes_count"] == 1


def test_a_pool_that_stands_at_zero_is_no_reason_to_refuse_work() -> None:
    empty = waiting(growing(), count=2)
    assert told(empty).reason("w") is Code.NO_MATCHING_FLAVOR
    of = waiting(growing(comes(2)), count=2)
    assert told(of).reason("w") is Code.WAITING_FOR_NODE
    assert never_admissible(of, of.pending[0]) is None
    large = waiting(growing(comes(2)), count=3)
    refused = never_admissible(large, large.pending[0])
    assert refused is not None
    assert refused.code is Code.EXCEEDS_CAPACITY


def test_quota_is_told_first() -> None:
    made = told(waiting(growing(comes(2)), count=2, quota=8))
    assert made.reason("w") is Code.NEVER_ADMISSIBLE
    of = waiting(growing(comes(2), nodes=ONE), quota=12)
    assert told(of).reason("w") is Code.QUOTA_USED


def test_no_node_is_waited_for_where_nothing_new_starts() -> None:
    shut = waiting(growing(comes(2), nodes=ONE, usable=False, held=True))
    assert told(shut).reason("w") is Code.HARDWARE_HELD
    held = waiting(growing(comes(2), nodes=ONE, held_models=(H100,)))
    assert told(held).reason("w") is not Code.WAITING_FOR_NODE
    closed = replace(
        waiting(growing(comes(2))), queues=(replace(queue("a", h100=32), held_by=("a",)),)
    )
    assert told(closed).reason("w") is Code.QUEUE_HELD


def test_a_node_that_is_out_hides_none_that_can_come() -> None:
    nodes = [*ONE, node("n0", gpus=8, usable=False)]
    assert told(waiting(growing(nodes=nodes))).reason("w") is Code.CLUSTER_UNAVAILABLE
    assert told(waiting(growing(comes(1), nodes=nodes))).reason("w") is Code.WAITING_FOR_NODE


def test_the_flavor_of_which_nodes_can_come_is_told_of() -> None:
    of = waiting(growing(comes(1, of=node("like", gpus=8, model="NVIDIA-A30")), nodes=ONE))
    asks = job("w", "a", pods(1, gpus=8, flavors="h100 a30"))
    queues = (queue("a", h100=32, a30=8),)
    made = told(replace(of, pending=(asks,), queues=queues))
    assert (made.reason("w"), made.numbers("w")["flavor"]) == (Code.WAITING_FOR_NODE, "a30")


def test_what_stands_nowhere_yet_is_in_no_rack() -> None:
    of = waiting(growing(comes(2), nodes=[node("n1", gpus=8, at="rack-1")]), count=2)
    of = replace(of, levels=("rack",))
    assert told(of).reason("w") is Code.WAITING_FOR_NODE
    together = replace(of.pending[0], topology=TopologyView("rack", required=True))
    assert told(replace(of, pending=(together,))).reason("w") is not Code.WAITING_FOR_NODE


def test_a_plan_with_a_memory_tells_the_same_as_pools_change() -> None:
    memory = Memory()
    for pools in ((), (comes(1),), (comes(2, making_count=1),), (comes(2, start_s=60),), ()):
        of = waiting(growing(*pools, nodes=ONE), count=2)
        assert plan(of, Policy(), memory) == plan(of, Policy())


def test_nothing_is_ever_placed_on_a_node_that_is_not_there() -> None:
    of = waiting(growing(comes(4), nodes=ONE), gpus=4)
    many = tuple(replace(job(f"w{n}", "a", pods(1, gpus=4)), submitted_at=n) for n in range(4))
    made = plan(replace(of, pending=many, holding=()), Policy())
    assert {place.node for admit in made.admits for place in admit.places} == {"n1"}
    assert {reason.code for reason in made.reasons().values()} == {Code.WAITING_FOR_NODE}


def test_the_chain_of_checks_stops_at_the_nodes() -> None:
    of = waiting(growing(comes(2), nodes=ONE))
    found = explain(snapshot=of, policy=Policy(), pending=of.pending[0])
    [chain] = found.chains
    [failed] = [check.code for check in chain.checks if check.passed is False][:1]
    assert failed == "nodes"
