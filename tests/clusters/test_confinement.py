"""The objects that confine a project, and how what differs from them is told."""

import hashlib
from ipaddress import ip_network
from typing import Any

import orjson
import pytest
from django.core.exceptions import ImproperlyConfigured

from clusters.adapters.kubernetes import confinement, manifests
from clusters.adapters.kubernetes.checks import Malformed
from clusters.adapters.kubernetes.failures import status_failure
from clusters.adapters.kubernetes.names import Names
from clusters.confinement import CONFINEMENT, Confinement, Drift
from clusters.port import PRIORITIES, Fault
from controlplane.settings.env import reachable
from scheduler.services.specs import PRIORITY_CLASSES
from tests.clusters.acting import request

NAMES = Names(prefix="berth.dev", installation="lab")


def made(kind: str, **wanted: Any) -> dict[str, Any]:  # Any: as Confinement, and an object
    found = confinement.objects(Confinement("berth-project", **wanted), names=NAMES)
    return next(body for body in found if body["kind"] == kind)


def test_all_but_the_namespace_is_in_it_and_all_is_the_installations() -> None:
    space, *inside = confinement.objects(Confinement("berth-project"), names=NAMES)
    assert confinement.path(space) == "/api/v1/namespaces/berth-project"
    assert [body["metadata"]["namespace"] for body in inside] == ["berth-project"] * 4
    for body in (space, *inside):
        assert body["metadata"]["labels"]["berth.dev/installation"] == "lab"
    labels = space["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
    assert labels["pod-security.kubernetes.io/enforce-version"] == "latest"


def test_pods_run_as_an_account_that_no_token_is_mounted_of() -> None:
    account = made("ServiceAccount")
    assert account["automountServiceAccountToken"] is False
    pod = manifests.pod(request(), names=NAMES)
    assert pod["spec"]["serviceAccountName"] == account["metadata"]["name"] == "berth-lab-workload"


def test_the_network_is_shut_but_for_dns_and_the_namespaces_own_pods() -> None:
    spec = made("NetworkPolicy")["spec"]
    assert spec["podSelector"] == {}
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    assert spec["ingress"] == [{"from": [{"podSelector": {}}]}]
    own, dns = spec["egress"]
    assert own == {"to": [{"podSelector": {}}]}
    assert {(port["protocol"], port["port"]) for port in dns["ports"]} == {
        ("UDP", 53),
        ("TCP", 53),
    }


@pytest.mark.parametrize(
    ("network", "block"),
    [
        ("10.20.0.0/16", {"cidr": "10.20.0.0/16"}),
        (
            "0.0.0.0/0",
            {
                "cidr": "0.0.0.0/0",
                "except": [
                    "169.254.0.0/16",
                    "100.100.100.200/32",
                    "168.63.129.16/32",
                    "192.0.0.192/32",
                ],
            },
        ),
        (
            "::/0",
            {"cidr": "::/0", "except": ["fe80::/10", "fd00:ec2::/32", "fd20:ce::254/128"]},
        ),
        ("fd00::/16", {"cidr": "fd00::/16", "except": ["fd00:ec2::/32"]}),
    ],
)
def test_networks_that_are_listed_are_reached_and_a_clouds_metadata_never_is(
    network: str, block: dict[str, object]
) -> None:
    *_, listed = made("NetworkPolicy", egress=(network,))["spec"]["egress"]
    assert listed == {"to": [{"ipBlock": block}]}


def test_the_quota_counts_pods_of_berths_own_priorities_alone() -> None:
    spec = made("ResourceQuota", limits=(("nvidia.com/gpu", 8), ("nvidia.com/mig-1g.10gb", 0)))[
        "spec"
    ]
    assert spec["hard"] == {
        "requests.nvidia.com/gpu": "8",
        "requests.nvidia.com/mig-1g.10gb": "0",
    }
    [scope] = spec["scopeSelector"]["matchExpressions"]
    classes = confinement.priority_classes(names=NAMES)
    assert scope["values"] == [one["metadata"]["name"] for one in classes]


def test_each_priority_that_people_ask_for_is_a_class_of_its_own_in_the_same_order() -> None:
    assert tuple(PRIORITY_CLASSES) == PRIORITIES
    values = {one["metadata"]["name"]: one["value"] for one in _classes()}
    assert list(values) == [f"berth-lab-{priority}" for priority in PRIORITIES]
    assert list(values.values()) == [1000 + number for number in PRIORITY_CLASSES.values()]
    assert {one["preemptionPolicy"] for one in _classes()} == {"Never"}
    for priority in PRIORITIES:
        pod = manifests.pod(request(priority=priority), names=NAMES)
        assert pod["spec"]["priorityClassName"] == f"berth-lab-{priority}"


def _classes() -> list[dict[str, Any]]:
    return confinement.priority_classes(names=NAMES)


def test_drift_is_told_field_by_field_and_what_a_server_adds_is_none() -> None:
    body = made("ResourceQuota", limits=(("nvidia.com/gpu", 8),))
    applied = {**body, "status": {"used": {}}}
    metadata = body["metadata"] | {"resourceVersion": "7", "labels": {"more": "x"}}
    spec = body["spec"] | {"hard": {"requests.nvidia.com/gpu": "64"}, "scopes": ["BestEffort"]}
    found = {**body, "metadata": metadata, "spec": spec}
    assert list(confinement.drifts(body, applied, applied)) == []
    quota = "ResourceQuota berth-lab"
    assert list(confinement.drifts(body, found, applied)) == [
        Drift(quota, "metadata.labels.berth.dev/installation", "", '"lab"'),
        Drift(quota, "metadata.labels.more", '"x"', ""),
        Drift(quota, "spec.hard.requests.nvidia.com/gpu", '"64"', '"8"', follows=True),
        Drift(quota, "spec.scopes", '["BestEffort"]', ""),
    ]


def test_an_object_without_an_end_makes_no_sense() -> None:
    body = made("LimitRange")
    deep: Any = {}
    for _ in range(900):
        deep = {"a": deep}
    with pytest.raises(Malformed):
        list(confinement.drifts(body, {**body, "spec": deep}, body))
    [drift] = confinement.drifts(body, {**body, "spec": {"x": "y" * 10_000}}, {**body, "spec": {}})
    assert len(drift.found) <= 300


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        ('pods "w" is forbidden: exceeded quota: berth, requested: requests.x=1', Fault.QUOTA),
        ('pods "w" is forbidden: status unknown for quota: berth, resources: x', Fault.QUOTA),
        ('pods is forbidden: User "x" cannot create resource "pods"', Fault.FORBIDDEN),
    ],
)
def test_a_quota_that_is_used_up_is_told_from_a_missing_right(said: str, fault: Fault) -> None:
    error = status_failure({"kind": "Status", "message": said}, code=403)
    assert error.fault is fault
    assert said in str(error)


def test_what_is_made_changes_with_its_revision_alone() -> None:
    """A change of these objects reaches clusters by a new CONFINEMENT: then this is new too."""
    bodies = confinement.objects(Confinement("p", (("x", 1),), ("10.0.0.0/8",)), names=NAMES)
    digest = hashlib.sha256(orjson.dumps(bodies, option=orjson.OPT_SORT_KEYS)).hexdigest()
    assert (CONFINEMENT, digest[:16]) == (2, "27c96f39722514b8")


@pytest.mark.parametrize(
    "network",
    [
        "169.254.169.254/32",
        "fe80::/64",
        "168.63.129.16/32",
        "100.100.100.200/32",
        "192.0.0.192/32",
        "fd20:ce::254/128",
        "fd00:ec2::/64",
        "fd00:ec2::/32",
    ],
)
def test_a_network_on_a_link_or_of_metadata_is_none_to_reach(network: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="take it off BERTH_EGRESS_NETWORKS"):
        reachable((ip_network("10.0.0.0/8"), ip_network(network)))
    everything = (ip_network("0.0.0.0/0"), ip_network("::/0"))
    assert reachable(everything) == everything


@pytest.mark.parametrize("network", ["::ffff:10.0.0.0/104", "::ffff:169.254.169.254/128"])
def test_a_network_of_ipv4_is_written_so(network: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="write it as IPv4"):
        reachable((ip_network(network),))
