"""The port, where it reads what nodes can come, and asks for some: objects of Karpenter's that a
test makes, and requests."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from clusters.adapters.kubernetes.adapter import KubernetesCluster
from clusters.adapters.kubernetes.rights import OF_PARTS
from clusters.autoscaling import Amounts, Autoscaling, NodeRequest
from clusters.parts import Part
from clusters.port import Verdict
from controlplane.kernel.ids import uuid7
from tests.contract.stage import Stage

API = "/apis/karpenter.sh/v1"
AT_HOME = "/apis/autoscaling.x-k8s.io/v1/namespaces/berth-autoscale-system/provisioningrequests"


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
        for right in OF_PARTS[Part.AUTOSCALE]:
            fault = {"kind": "forbid", "verb": right.verb, "resource": right.resource}
            stage.admin("POST", "/_simulator/faults", {**fault, "count": 0})
    assert stage.port.read_autoscaling() is None
    steps = {step.name: step for step in stage.port.probe()}
    assert steps["autoscale"].verdict is Verdict.WORKS
    assert "does not see there which nodes can come" in steps["autoscale"].said
    assert "`manage.py cluster_manifest --autoscale`" in steps["autoscale"].said


def request(name: str = "nodes") -> NodeRequest:
    return NodeRequest(
        name=f"{name}-{uuid7()}",
        ask=str(uuid7()),
        pool=str(uuid7()),
        count=3,
        request_class="queued-provisioning.gke.io",
        parameters={"maxRunDurationSeconds": "600"},
        selector={"cloud.google.com/gke-nodepool": "a3"},
        resources={"nvidia.com/gpu": 8},
        cpu_milli=1000,
        memory_mib=1024,
    )


def test_a_request_is_made_once_found_again_and_taken_away(
    stage: Stage, port: KubernetesCluster
) -> None:
    asked = request()
    for _ in range(2):
        port.create_node_request(request=asked)
    [made] = port.list_node_requests()
    assert (made.name, made.ask, made.pool, made.nodes) == (
        asked.name,
        asked.ask,
        asked.pool,
        3,
    )
    assert all((made.uid, made.template_uid))
    assert (made.accepted, made.provisioned, made.ended) == (False, False, "")
    body = stage.admin("GET", f"{AT_HOME}/{asked.name}")
    assert body["spec"]["podSets"] == [{"podTemplateRef": {"name": asked.name}, "count": 3}]
    told = [
        {"type": "Accepted", "status": "True"},
        {"type": "Provisioned", "status": "False"},
        {"type": "Failed", "status": "True", "message": "no room"},
    ]
    stage.admin("PUT", f"{AT_HOME}/{asked.name}", {**body, "status": {"conditions": told}})
    [seen] = read(port).requests or ()
    assert (seen.accepted, seen.provisioned, seen.ended) == (True, False, "Failed: no room")
    port.delete_node_request(found=replace(made, uid="another"))
    assert [one.uid for one in port.list_node_requests()] == [made.uid]
    for _ in range(2):
        port.delete_node_request(found=made)
    assert port.list_node_requests() == ()


def test_a_template_without_its_request_is_found_and_completed(
    stage: Stage, port: KubernetesCluster
) -> None:
    asked = request()
    port.create_node_request(request=asked)
    stage.admin("DELETE", f"{AT_HOME}/{asked.name}")
    [left] = port.list_node_requests()
    assert (left.ask, left.uid, bool(left.template_uid)) == (asked.ask, "", True)
    port.create_node_request(request=asked)
    [made] = port.list_node_requests()
    assert made.uid
    port.delete_node_request(found=made)


def test_others_requests_are_told_without_an_ask(stage: Stage, port: KubernetesCluster) -> None:
    theirs = f"theirs-{uuid7()}"
    body = {
        "apiVersion": "autoscaling.x-k8s.io/v1",
        "kind": "ProvisioningRequest",
        "metadata": {"name": theirs},
        "spec": {"podSets": [{"count": 2}]},
    }
    stage.admin("POST", AT_HOME.replace("berth-autoscale-system", "default"), body)
    try:
        [found] = [one for one in read(port).requests or () if one.name == theirs]
        assert (found.ask, found.pool, found.nodes) == ("", "", 2)
        assert theirs not in {one.name for one in port.list_node_requests()}
    finally:
        path = f"{AT_HOME.replace('berth-autoscale-system', 'default')}/{theirs}"
        stage.admin("DELETE", path)
