"""Nodes as NVIDIA's device plugin and GPU feature discovery show them, as reports."""

from typing import Any

import pytest

from clusters.adapters.kubernetes import translate
from clusters.adapters.kubernetes.models import model_of
from clusters.adapters.kubernetes.names import Names
from clusters.adapters.kubernetes.nodes import profile_of
from clusters.adapters.kubernetes.translate import Malformed
from clusters.port import NodeReport

pytestmark = pytest.mark.part_simulator

NAMES = Names(prefix="berth.dev", installation="lab")
type Json = dict[str, Any]  # Any: an object of the API


def node(
    labels: Json | None = None,
    *,
    allocatable: Json | None = None,
    capacity: Json | None = None,
    spec: Json | None = None,
    ready: str = "True",
    annotations: Json | None = None,
) -> NodeReport:
    resources = {"cpu": "64", "memory": "256Gi", **(allocatable or {})}
    body = {
        "metadata": {
            "name": "n1",
            "uid": "u1",
            "resourceVersion": "7",
            "labels": labels or {},
            "annotations": annotations or {},
        },
        "spec": spec or {},
        "status": {
            "allocatable": resources,
            "capacity": {**resources, **(capacity or {})},
            "conditions": [{"type": "Ready", "status": ready}],
        },
    }
    return translate.node(body, names=NAMES)


def gpu_labels(count: int, **more: str) -> dict[str, str]:
    return {
        "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB",
        "nvidia.com/gpu.memory": "81920",
        "nvidia.com/gpu.count": str(count),
        "nvidia.com/gpu.replicas": "1",
        "nvidia.com/mig.strategy": "mixed",
    } | {f"nvidia.com/{key.replace('_', '.')}": value for key, value in more.items()}


def test_a_plain_machine_has_cpu_and_memory_and_no_devices() -> None:
    report = node()
    assert (report.cpu_milli, report.memory_mib, report.devices) == (64_000, 262_144, ())
    assert (report.hostname, report.ready, report.schedulable) == ("n1", True, True)


def test_whole_devices_carry_model_and_memory() -> None:
    report = node(gpu_labels(8), allocatable={"nvidia.com/gpu": "8"})
    assert [device.ordinal for device in report.devices] == list(range(8))
    assert {(device.model, device.memory_mib, device.mode) for device in report.devices} == {
        ("A100-SXM4-80GB", 81_920, "whole")
    }
    assert (report.share_replicas, report.share_isolation, report.mig_counts) == (1, "", {})


def test_devices_in_mig_mode_are_those_that_are_counted_and_not_advertised_whole() -> None:
    slices = {"nvidia.com/mig-1g.10gb": "7", "nvidia.com/mig-3g.40gb": "2"}
    report = node(gpu_labels(8), allocatable={"nvidia.com/gpu": "6", **slices})
    assert [device.mode for device in report.devices] == ["mig-static"] * 2 + ["whole"] * 6
    assert report.mig_counts == {"1g.10gb": 7, "3g.40gb": 2}


def test_a_sick_whole_device_leaves_and_takes_the_last_ordinal_with_it() -> None:
    report = node(
        gpu_labels(8),
        allocatable={"nvidia.com/gpu": "5", "nvidia.com/mig-7g.80gb": "2"},
        capacity={"nvidia.com/gpu": "6"},
    )
    assert [device.mode for device in report.devices] == ["mig-static"] * 2 + ["whole"] * 5


def test_a_node_without_a_count_still_shows_the_devices_its_slices_need() -> None:
    labels = {"nvidia.com/gpu.product": "NVIDIA-A30"}
    report = node(labels, allocatable={"nvidia.com/mig-1g.6gb": "8"})
    assert [device.mode for device in report.devices] == ["mig-static"] * 2


def test_a_geometry_made_on_demand_is_dynamic_and_advertises_no_counts() -> None:
    labels = gpu_labels(8) | {"berth.dev/mig-geometry": "dynamic"}
    slices = {"nvidia.com/mig-1g.10gb": "56"}
    report = node(labels, allocatable={"nvidia.com/gpu": "0", **slices})
    assert [device.mode for device in report.devices] == ["mig-dynamic"] * 8
    assert report.mig_counts == {}


@pytest.mark.parametrize(("strategy", "isolation"), [("time-slicing", "none"), ("mps", "memory")])
def test_shared_devices_say_into_how_many_and_what_keeps_the_shares_apart(
    strategy: str, isolation: str
) -> None:
    labels = gpu_labels(4, gpu_replicas="10") | {"nvidia.com/gpu.sharing-strategy": strategy}
    renamed = node(labels, allocatable={"nvidia.com/gpu.shared": "40"})
    assert (len(renamed.devices), renamed.share_replicas) == (4, 10)
    assert renamed.share_isolation == isolation
    assert renamed.share_resource == "nvidia.com/gpu.shared"
    in_place = node(labels, allocatable={"nvidia.com/gpu": "40"})
    assert (len(in_place.devices), in_place.share_resource) == (4, "nvidia.com/gpu")


@pytest.mark.parametrize("strategy", [None, "", "by-turns"])
def test_replicas_by_a_strategy_that_is_not_told_or_not_known_are_not_devices(
    strategy: str | None,
) -> None:
    """GPU feature discovery before 0.15 told the replicas alone."""
    labels = gpu_labels(8, gpu_replicas="4")
    if strategy is not None:
        labels |= {"nvidia.com/gpu.sharing-strategy": strategy}
    report = node(labels, allocatable={"nvidia.com/gpu": "32"})
    assert (len(report.devices), report.share_replicas) == (8, 4)
    assert report.share_isolation == "none"


@pytest.mark.parametrize(
    ("label", "value"),
    [
        ("gpu.count", "-8"),
        ("gpu.count", "eight"),
        ("gpu.count", "99999999999"),
        ("gpu.replicas", "-4"),
        ("gpu.replicas", "0x10"),
        ("gpu.memory", "-81559"),
        ("gpu.memory", "1e30"),
        ("gpu.memory", "٤٢"),
    ],
)
def test_a_node_with_nonsense_in_a_label_is_refused(label: str, value: str) -> None:
    labels = gpu_labels(8) | {f"nvidia.com/{label}": value}
    with pytest.raises(Malformed, match="is no count up to"):
        node(labels, allocatable={"nvidia.com/gpu": "8"})


def test_replicas_that_are_said_not_to_be_shared_are_not_shares() -> None:
    labels = gpu_labels(4, gpu_replicas="4") | {"nvidia.com/gpu.sharing-strategy": "none"}
    report = node(labels, allocatable={"nvidia.com/gpu": "4"})
    assert (len(report.devices), report.share_replicas) == (4, 1)


def single(product: str, slices: int = 14) -> NodeReport:
    labels = gpu_labels(slices) | {"nvidia.com/gpu.product": product}
    return node(labels, allocatable={"nvidia.com/gpu": str(slices)})


@pytest.mark.parametrize(
    ("product", "profile"),
    [
        ("NVIDIA-A100-SXM4-80GB-MIG-1g.10gb", "1g.10gb"),
        ("A100-SXM4-40GB-MIG-1g.5gb.me", "1g.5gb+me"),
    ],
)
def test_slices_under_the_name_of_whole_devices_are_slices(product: str, profile: str) -> None:
    report = single(product)
    assert (report.mig_counts, report.mig_single) == ({profile: 14}, True)
    [device] = report.devices
    assert (device.mode, device.memory_mib) == ("mig-static", 0), "of how much memory is not told"


@pytest.mark.parametrize(
    "report",
    [
        single("NVIDIA-A100-SXM4-80GB-MIG-INVALID", 0),
        single("NVIDIA-A100-SXM4-80GB-MIG-1g.10gb", 0),
        single("NVIDIA-A100-SXM4-80GB-MIG-1g.10gb-SHARED", 28),
    ],
    ids=["more than one profile", "none", "shared slices"],
)
def test_of_other_slices_under_that_name_nothing_is_placed_on(report: NodeReport) -> None:
    assert (len(report.devices), report.mig_counts, report.mig_single) == (1, {}, True)


@pytest.mark.parametrize(
    ("product", "model"),
    [
        ("NVIDIA-A100-SXM4-80GB", "A100-SXM4-80GB"),
        ("NVIDIA-H100-80GB-HBM3", "H100-80GB-HBM3"),
        ("NVIDIA-L4-SHARED", "L4"),
        ("Tesla-T4", "Tesla-T4"),
        ("NVIDIA-A100-SXM4-80GB-MIG-1g.10gb", "A100-SXM4-80GB"),
        ("NVIDIA-A100-SXM4-80GB-MIG-1g.10gb-SHARED", "A100-SXM4-80GB"),
        ("", "unknown"),
    ],
)
def test_a_product_is_shortened_to_its_model(product: str, model: str) -> None:
    assert model_of(product) == model


@pytest.mark.parametrize(
    ("resource", "profile"),
    [
        ("nvidia.com/mig-1g.10gb", "1g.10gb"),
        ("nvidia.com/mig-1g.10gb.me", "1g.10gb+me"),
        ("nvidia.com/mig-7g.141gb", "7g.141gb"),
        ("nvidia.com/mig-0g.10gb", ""),
        ("nvidia.com/mig-../../etc", ""),
        ("nvidia.com/gpu", ""),
    ],
)
def test_a_mig_resource_names_its_profile(resource: str, profile: str) -> None:
    assert profile_of(resource) == profile


@pytest.mark.parametrize("ready", ["False", "Unknown"])
def test_a_node_is_ready_only_when_it_says_so(ready: str) -> None:
    assert not node(ready=ready).ready


@pytest.mark.parametrize(
    ("spec", "schedulable"),
    [
        ({"unschedulable": True}, False),
        ({"taints": [{"key": "maintenance", "effect": "NoSchedule"}]}, False),
        ({"taints": [{"key": "maintenance", "effect": "PreferNoSchedule"}]}, True),
        ({"taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]}, True),
    ],
)
def test_cordons_and_taints_keep_work_away(spec: Json, schedulable: bool) -> None:
    assert node(spec=spec).schedulable is schedulable


@pytest.mark.parametrize(
    ("key", "leaving"),
    [
        ("karpenter.sh/disrupted", True),
        ("aws-node-termination-handler/spot-itn", True),
        ("cloud.google.com/impending-node-termination", True),
        ("remediator.kubernetes.azure.com/unschedulable", True),
        ("kubernetes.azure.com/scalesetpriority", False),
        ("node.kubernetes.io/unschedulable", False),
    ],
)
def test_a_taint_of_who_drains_a_node_for_good_tells_that_it_is_leaving(
    key: str, leaving: bool
) -> None:
    report = node(spec={"taints": [{"key": key, "effect": "NoSchedule"}]})
    assert (report.leaving, report.schedulable) == (leaving, False)


@pytest.mark.parametrize(
    "allocatable",
    [
        {"nvidia.com/gpu": "1000000000000"},
        {"nvidia.com/gpu": "129"},
        {"nvidia.com/gpu": "-1"},
        {"nvidia.com/gpu": ["8"]},
        {"nvidia.com/mig-1g.10gb": "1e18"},
        {"cpu": "1e18"},
        {"memory": "999999999999Ei"},
        {"memory": "many"},
        {"memory": "1" * 5000},
    ],
)
def test_a_node_with_impossible_amounts_is_malformed(allocatable: Json) -> None:
    with pytest.raises(Malformed):
        node(gpu_labels(8), allocatable=allocatable)


def test_labels_are_bounded_and_printable() -> None:
    labels: Json = {f"k{i}": "v" for i in range(1000)} | {"nul": "a\x00b", "number": 3}
    report = node(labels)
    assert len(report.labels) <= 256
    assert not {"nul", "number"} & report.labels.keys()
    long = node({f"k{i}": "v" * 250 for i in range(1000)}).labels
    assert sum(len(key) + len(value) for key, value in long.items()) in range(7500, 8193)


HAMI_LINE = (
    "GPU-00552014-5c87,10,32768,100,NVIDIA-Tesla V100-PCIE-32GB,0,true,0,hami-core:"
    "GPU-0fc3eda5-e98b,10,32768,100,NVIDIA-Tesla V100-PCIE-32GB,0,true,1,hami-core:"
)
HAMI_JSON = (
    '[{"id":"GPU-1","count":10,"devmem":32768,"devcore":100,"type":"NVIDIA-Tesla V100-PCIE-32GB"},'
    '{"id":"GPU-2","count":10,"devmem":32768,"devcore":100,"type":"NVIDIA-Tesla V100-PCIE-32GB"}]'
)


@pytest.mark.parametrize("told", [HAMI_LINE, HAMI_JSON])
def test_gpus_that_hami_parts_are_known_and_never_given_as_many(told: str) -> None:
    report = node(
        gpu_labels(2),
        allocatable={"nvidia.com/gpu": "160"},
        annotations={"hami.io/node-nvidia-register": told},
    )
    assert [(d.model, d.memory_mib, d.usable) for d in report.devices] == [
        ("Tesla-V100-PCIE-32GB", 32_768, False)
    ] * 2
    assert report.unused == "HAMi gives its GPUs away in parts, so nothing is placed there"


@pytest.mark.parametrize(
    "told",
    [
        "[",
        "[1]",
        "GPU-1,10,x",
        "GPU-1,10,lots,1,t,0,true",
        "GPU-1,10,1,1,H100\x00,0,true",
        '[{"type":"H100\\u0000"}]',
    ],
)
def test_what_hami_says_in_no_way_that_makes_sense_is_left_out(told: str) -> None:
    with pytest.raises(Malformed):
        node(annotations={"hami.io/node-nvidia-register": told})
