"""Attacks on node pools, on the nodes that they are making and on those that are asked of them."""

from clusters.models import NodeClaim, NodePool
from scheduler.models import NodeAsk
from tests.constraints.attack import Attack, negative
from tests.constraints.moves import Sql, change, copy
from tests.constraints.rows import NOON

_SHAPE = {
    "node_model": "H100",
    "node_gpus": 8,
    "node_cpu_milli": 96000,
    "node_memory_mib": 1 << 20,
}

_DECLARED = {"selector": {"pool": "a3"}, "request_class": "queued-provisioning.gke.io"}

POOLS = (
    Attack("node_pool_once_a_cluster", "a cluster has a pool twice", copy(NodePool)),
    *(
        Attack("node_pool_shape_whole_or_none", what, change(NodePool, _SHAPE, **columns))
        for what, columns in (
            ("a node has GPUs of no model", {"node_model": ""}),
            ("a node has GPUs, nobody knows how many", {"node_gpus": None}),
            ("a node has no GPU", {"node_gpus": 0}),
            ("a node has too many GPUs", {"node_gpus": 129}),
            ("a node has no cores", {"node_cpu_milli": 0}),
            ("a node's memory is unknown", {"node_memory_mib": None}),
        )
    ),
    *(
        Attack("node_pool_declared_whole_or_not", what, change(NodePool, _DECLARED, **columns))
        for what, columns in (
            ("nobody knows which nodes are a declared pool's", {"selector": Sql("'{}'::jsonb")}),
            ("nobody knows how a declared pool is asked", {"request_class": ""}),
        )
    ),
    Attack(
        "node_pool_declared_whole_or_not",
        "requests for nodes of a pool that is not asked by any have parameters",
        change(NodePool, parameters=Sql('\'{"a": "b"}\'::jsonb')),
    ),
    *(
        negative(f"clusters_nodepool_{column}_check", NodePool, column)
        for column in ("making_count", "room_count", "start_count", "start_p50_s", "start_p90_s")
    ),
    negative(
        "clusters_nodepool_node_gpus_check", NodePool, "node_gpus", "node_pool_shape_whole_or_none"
    ),
    Attack("node_claim_once_a_pool", "a pool makes a node twice", copy(NodeClaim)),
)

ASKS = (
    Attack("node_ask_one_live_a_workload", "a pool is asked twice for one", copy(NodeAsk)),
    Attack(
        "node_ask_state_known",
        "an ask is in no state",
        change(NodeAsk, state="odd", outcome="given"),
    ),
    Attack(
        "node_ask_outcome_once_it_closes",
        "it is known how an ask ends that goes on",
        change(NodeAsk, outcome="given"),
    ),
    Attack(
        "node_ask_outcome_once_it_closes",
        "an ask closes, and nobody knows how it ends",
        change(NodeAsk, state="closing"),
    ),
    Attack(
        "node_ask_outcome_once_it_closes",
        "an ask ends in no way",
        change(NodeAsk, state="closing", outcome="odd"),
    ),
    Attack(
        "node_ask_ended_in_its_last_state",
        "an ask has ended and goes on",
        change(NodeAsk, ended_at=NOON),
    ),
    Attack(
        "node_ask_ended_in_its_last_state",
        "an ask was given and has not ended",
        change(NodeAsk, state="given", outcome="given"),
    ),
)

ATTACKS = (*POOLS, *ASKS)
