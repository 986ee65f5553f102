"""Nodes with GPUs of AMD and Intel, as their device plugins and labels show them, as reports."""

from typing import Any

import pytest

from clusters.adapters.kubernetes.translate import Malformed
from clusters.models import Flavor
from tests.clusters.test_adapter_nodes import gpu_labels, node
from tests.clusters.test_manifests import pod

pytestmark = pytest.mark.part_simulator

BETA = "beta.amd.com/gpu."
PRODUCT = "AMD_Instinct_MI300X_OAM"
MI300X = {"amd.com/gpu.product-name": PRODUCT, "amd.com/gpu.vram": "192G"}
MAX = {
    "gpu.intel.com/product": "Max_1550",
    "gpu.intel.com/device.count": "4",
    "gpu.intel.com/memory.max": str(4 * 128 * 2**30),
}


def shown(labels: dict[str, str], **allocatable: str) -> tuple[set[tuple[str, int]], int, str]:
    """Models with their memory, how many devices, and the resource they are asked for by."""
    report = node(labels, allocatable=allocatable)
    kinds = {(device.model, device.memory_mib) for device in report.devices}
    return kinds, len(report.devices), report.gpu_resource


def amd(labels: dict[str, str], count: str = "8") -> tuple[set[tuple[str, int]], int, str]:
    return shown(labels, **{"amd.com/gpu": count})


@pytest.mark.parametrize(
    ("labels", "model", "memory_gib"),
    [
        (MI300X, PRODUCT, 192),
        (
            {f"beta.{label}": told for label, told in MI300X.items()},
            "AMD_Instinct_MI300X_OAM",
            192,
        ),
        ({"amd.com/gpu.device-id": "74a1"}, "AMD-74a1", 0),
        (
            {"beta.amd.com/gpu.device-id.6860": "8", "beta.amd.com/gpu.vram.16G": "8"},
            "AMD-6860",
            16,
        ),
        (
            {"beta.amd.com/gpu.device-id.1": "4", "beta.amd.com/gpu.device-id.2": "4"},
            "AMD-unknown",
            0,
        ),
        ({}, "AMD-unknown", 0),
    ],
)
def test_amds_are_what_the_node_labeller_says(
    labels: dict[str, str], model: str, memory_gib: int
) -> None:
    assert amd(labels) == ({(model, memory_gib * 1024)}, 8, "amd.com/gpu")


@pytest.mark.parametrize("driver", ["xe", "i915"])
def test_intels_are_what_the_rules_say_by_the_resource_of_their_driver(driver: str) -> None:
    resource = f"gpu.intel.com/{driver}"
    assert shown(MAX, **{resource: "4"}) == ({("Max_1550", 131_072)}, 4, resource)
    old = {"gpu.intel.com/device-id.0300-56c0.present": "true"}
    assert shown(old, **{resource: "2"}) == ({("Intel-56c0", 0)}, 2, resource)
    assert shown({}, **{resource: "2"}) == ({("Intel-unknown", 0)}, 2, resource)


def test_intels_that_pods_share_are_replicas() -> None:
    report = node(MAX, allocatable={"gpu.intel.com/xe": "40"})
    assert (len(report.devices), report.share_replicas) == (4, 10)
    assert (report.share_isolation, report.share_resource) == ("none", "gpu.intel.com/xe")


@pytest.mark.parametrize(
    ("fitted", "held", "devices", "replicas"), [(8, 7, 3, 2), (8, 6, 3, 2), (7, 7, 3, 2)]
)
def test_intels_that_pods_share_stay_shared_when_one_goes_sick(
    fitted: int, held: int, devices: int, replicas: int
) -> None:
    name = "gpu.intel.com/xe"
    report = node(MAX, allocatable={name: str(held)}, capacity={name: str(fitted)})
    assert (len(report.devices), report.share_replicas) == (devices, replicas)


@pytest.mark.parametrize(
    ("labels", "allocatable", "capacity"),
    [
        (gpu_labels(1), {"nvidia.com/gpu": "0", "nvidia.com/mig-1g.10gb": "7"}, {}),
        ({}, {"nvidia.com/mig-1g.10gb": "0"}, {}),
        ({}, {}, {"nvidia.com/gpu": "8"}),
        ({"nvidia.com/gpu.product": "Tesla-T4"}, {}, {}),
        ({"nvidia.com/gpu.count": "8"}, {}, {}),
    ],
)
def test_a_node_with_nvidias_is_never_another_makers(
    labels: dict[str, str], allocatable: dict[str, str], capacity: dict[str, str]
) -> None:
    intel = {"gpu.intel.com/i915": "1"}
    report = node(labels, allocatable=allocatable | intel, capacity=capacity)
    assert report.gpu_resource == "nvidia.com/gpu"


def test_network_cards_of_nvidias_hide_no_gpus_of_others() -> None:
    both = {"amd.com/gpu": "8", "nvidia.com/hostdev": "4"}
    assert shown(MI300X, **both) == ({(PRODUCT, 196_608)}, 8, "amd.com/gpu")


def test_of_a_node_with_two_makers_only_nvidias_are_seen() -> None:
    report = node(gpu_labels(2) | MI300X, allocatable={"nvidia.com/gpu": "2", "amd.com/gpu": "8"})
    assert (len(report.devices), report.gpu_resource) == (2, "nvidia.com/gpu")


def test_a_taint_by_the_name_of_its_gpus_keeps_nothing_of_berths_out() -> None:
    tainted = {"taints": [{"key": "amd.com/gpu", "effect": "NoSchedule"}]}
    gpus = {"amd.com/gpu": "8"}
    assert node(MI300X, allocatable=gpus, spec=tainted).schedulable
    assert not node(gpu_labels(8), allocatable={"nvidia.com/gpu": "8"}, spec=tainted).schedulable


def test_a_pod_tolerates_what_its_node_is_tainted_by() -> None:
    def keys(body: dict[str, Any]) -> list[str]:  # Any: JSON values
        return [each["key"] for each in body["spec"]["tolerations"]]

    queued = "cloud.google.com/gke-queued"
    assert keys(pod()) == ["nvidia.com/gpu", queued]
    assert keys(pod(tolerates="amd.com/gpu")) == ["nvidia.com/gpu", "amd.com/gpu", queued]


def test_a_node_that_came_by_a_request_takes_work() -> None:
    tainted = {"taints": [{"key": "cloud.google.com/gke-queued", "effect": "NoSchedule"}]}
    assert node(gpu_labels(8), allocatable={"nvidia.com/gpu": "8"}, spec=tainted).schedulable


@pytest.mark.parametrize("gpus", ["129", "x"])
def test_a_number_of_gpus_that_makes_no_sense_is_malformed(gpus: str) -> None:
    with pytest.raises(Malformed):
        amd(MI300X, gpus)


@pytest.mark.parametrize(
    ("model", "vendor"),
    [
        ("H100-80GB-HBM3", "nvidia"),
        ("L4", "nvidia"),
        ("RTX-A6000", "nvidia"),
        ("Tesla-T4", "nvidia"),
        ("AMD_Instinct_MI300X_OAM", "amd"),
        ("AMD-74a1", "amd"),
        ("MI250", "amd"),
        ("Max_1550", "intel"),
        ("Intel-unknown", "intel"),
        ("unknown", ""),
    ],
)
def test_makers_are_told_by_the_models_that_nodes_report(model: str, vendor: str) -> None:
    assert Flavor(model=model).vendor == vendor
