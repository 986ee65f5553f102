"""The port, where it reads what nodes can come: objects of Karpenter's that a test makes."""

from collections.abc import Iterator
from typing import Any

import pytest

from clusters.adapters.kubernetes.adapter import KubernetesCluster
from clusters.autoscaling import Amounts, Autoscaling
from tests.contract.stage import Stage

API = "/apis/karpenter.sh/v1"


@pytest.fixture
def port(stage: Stage) -> Iterator[KubernetesCluster]:
    """Of an installation that may see it, in a cluster that has Karpenter's kinds."""
    with stage.autoscaling() as port:
        yield port


def pool(stage: Stage, name: str) -> dict[str, Any]:  # Any: JSON
    body = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {"limits": {"nvidia.com/gpu": "16"}, "template": {"spec": {}}},
        "status": {"resources": {"nvidia.com/gpu": "8", "nodes": "1"}},
    }
    return dict(stage.admin("POST", f"{API}/nodepools", body))


def claim(stage: Stage, name: str, of: str) -> dict[str, Any]:  # Any: JSON
    body = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": name, "labels": {"karpenter.sh/nodepool": of}},
        "spec": {},
        "status": {"conditions": [{"type": "Launched", "status": "True"}]},
    }
    return dict(stage.admin("POST", f"{API}/nodeclaims", body))


def read(port: KubernetesCluster) -> Autoscaling:
    found = port.read_autoscaling()
    assert found is not None
    return found


def test_pools_and_claims_are_read_as_they_are(stage: Stage, port: KubernetesCluster) -> None:
    name = f"pool-{stage.namespace}"
    pool(stage, name)
    made = claim(stage, f"{name}-1", name)
    found = read(port)
    [of] = [one for one in found.pools if one.name == name]
    assert (of.limits, of.used) == (Amounts(devices=16), Amounts(devices=8, nodes=1))
    [one] = [one for one in found.claims if one.pool == name]
    assert (one.name, one.uid, one.launched) == (f"{name}-1", made["metadata"]["uid"], True)
    assert (one.node, one.initialized_at) == ("", None)
    for kind, each in (("nodeclaims", f"{name}-1"), ("nodepools", name)):
        stage.admin("DELETE", f"{API}/{kind}/{each}")
    assert name not in {one.name for one in read(port).pools}


def test_the_probe_says_that_it_is_seen(port: KubernetesCluster) -> None:
    said = {step.name: step.said for step in port.probe()}
    assert said["autoscale"] == "Berth sees which nodes can come there"


def test_without_the_rights_nothing_is_known_and_that_is_no_failure(stage: Stage) -> None:
    if stage.simulated:
        for resource in ("nodepools", "nodeclaims"):
            fault = {"kind": "forbid", "verb": "list", "resource": resource}
            stage.admin("POST", "/_simulator/faults", {**fault, "count": 0})
    assert stage.port.read_autoscaling() is None
    steps = {step.name: step for step in stage.port.probe()}
    assert "may not list nodepools.karpenter.sh" in steps["autoscale"].said
    assert steps["autoscale"].verdict == "works"
