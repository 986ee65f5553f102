"""Karpenter's NodePools and NodeClaims as reports, and what their limits leave room for."""

from typing import Any

import pytest

from clusters.adapters.kubernetes import karpenter
from clusters.adapters.kubernetes.translate import readable
from clusters.autoscaling import Amounts, nodes_left

type Json = dict[str, Any]  # Any: an object of the API

ONE = Amounts(cpu_milli=96_000, memory_mib=1_000_000, devices=8)


def node_pool(
    *, template: Json | None = None, limits: Json | None = None, **status: Json | list[Json]
) -> Json:
    return {
        "metadata": {"name": "h100s"},
        "spec": {"template": template or {}, "limits": limits or {}},
        "status": status,
    }


def node_claim(*conditions: tuple[str, str], **status: str) -> Json:
    told = [
        {"type": kind, "status": said, "lastTransitionTime": "2026-11-23T10:07:30Z"}
        for kind, said in conditions
    ]
    return {
        "metadata": {
            "name": "h100s-x7",
            "uid": "u-1",
            "creationTimestamp": "2026-11-23T10:00:00Z",
            "labels": {"karpenter.sh/nodepool": "h100s"},
        },
        "status": {"conditions": told, **status},
    }


def test_a_pool_tells_its_limits_and_what_is_used() -> None:
    found = karpenter.pool(
        node_pool(
            limits={"cpu": "200", "memory": "4Ti", "nvidia.com/gpu": 16, "nodes": "3"},
            resources={"cpu": "95500m", "nvidia.com/gpu": "8", "nodes": "1", "pods": "110"},
        )
    )
    assert found.limits == Amounts(200_000, 4 * 1024 * 1024, 16, 3)
    assert found.used == Amounts(95_500, None, 8, 1)
    assert found.ready


@pytest.mark.parametrize(
    ("template", "model", "accelerator"),
    [
        (
            {"metadata": {"labels": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}}},
            "H100-80GB-HBM3",
            "NVIDIA-H100-80GB-HBM3",
        ),
        (
            {
                "spec": {
                    "requirements": [
                        {
                            "key": "karpenter.k8s.aws/instance-gpu-name",
                            "operator": "In",
                            "values": ["a100", "h100"],
                        }
                    ]
                }
            },
            "",
            "a100, h100",
        ),
        (
            {"metadata": {"labels": {"cloud.google.com/gke-accelerator": "nvidia-l4"}}},
            "",
            "nvidia-l4",
        ),
        (
            {
                "spec": {
                    "requirements": [
                        {
                            "key": "nvidia.com/gpu.product",
                            "operator": "NotIn",
                            "values": ["Tesla-T4"],
                        }
                    ]
                }
            },
            "",
            "",
        ),
    ],
)
def test_a_model_is_told_by_its_exact_name_alone(
    template: Json, model: str, accelerator: str
) -> None:
    found = karpenter.pool(node_pool(template=template))
    assert (found.model, found.accelerator) == (model, accelerator)


def test_of_a_pool_that_is_not_ready_or_of_fixed_size_nothing_comes() -> None:
    broken = node_pool(conditions=[{"type": "Ready", "status": "False"}])
    fixed = node_pool()
    fixed["spec"]["replicas"] = 3
    assert not karpenter.pool(broken).ready
    assert not karpenter.pool(fixed).ready


@pytest.mark.parametrize(
    ("taint", "ready"),
    [
        ({"key": "team", "value": "a", "effect": "NoSchedule"}, False),
        ({"key": "team", "effect": "NoExecute"}, False),
        ({"key": "team", "effect": "PreferNoSchedule"}, True),
        ({"key": "nvidia.com/gpu", "effect": "NoSchedule"}, True),
    ],
)
def test_nodes_that_keep_berths_pods_off_do_not_count(taint: Json, ready: bool) -> None:
    assert karpenter.pool(node_pool(template={"spec": {"taints": [taint]}})).ready is ready
    at_first = node_pool(template={"spec": {"startupTaints": [taint]}})
    assert karpenter.pool(at_first).ready


def test_a_claim_is_ready_when_karpenter_has_seen_all_of_its_node() -> None:
    made = karpenter.claim(node_claim(("Launched", "True"), ("Registered", "Unknown")))
    assert (made.pool, made.launched, made.registered) == ("h100s", True, False)
    assert (made.node, made.initialized_at) == ("", None)
    states = ("Launched", "Registered", "Initialized")
    there = karpenter.claim(node_claim(*((s, "True") for s in states), nodeName="ip-10-0-0-7"))
    assert (there.registered, there.node) == (True, "ip-10-0-0-7")
    assert there.initialized_at is not None
    assert (there.initialized_at - there.created_at).total_seconds() == 450


def test_what_makes_no_sense_is_left_out_alone() -> None:
    hostile = [
        node_pool(limits={"cpu": "many"}),
        node_pool(limits={"cpu": True}),
        node_pool(limits={"nvidia.com/gpu": "-8"}),
        node_pool(template={"spec": {"taints": [{"key": "k"}]}}),
        node_pool(template={"spec": {"requirements": "all"}}),
    ]
    reports, left_out = readable([*hostile, node_pool()], karpenter.pool)
    assert ([one.name for one in reports], len(left_out)) == (["h100s"], 5)
    nobodys = node_claim()
    del nobodys["metadata"]["labels"]
    assert readable([nobodys], karpenter.claim)[0] == []


@pytest.mark.parametrize(
    ("limits", "used", "left"),
    [
        (Amounts(), Amounts(devices=80), None),
        (Amounts(devices=32), Amounts(), 4),
        (Amounts(devices=32), Amounts(devices=24), 1),
        (Amounts(devices=31), Amounts(devices=24), 0),  # a part of a node is none
        (Amounts(devices=8), Amounts(devices=24), 0),
        (Amounts(devices=800, nodes=5), Amounts(devices=8, nodes=3), 2),
        (Amounts(cpu_milli=200_000), Amounts(), 2),
    ],
)
def test_the_tightest_limit_says_how_many_nodes_can_come(
    limits: Amounts, used: Amounts, left: int | None
) -> None:
    assert nodes_left(limits=limits, used=used, node=ONE) == left
