"""What a pod is told of the device memory that it asked for, and how many replicas it asks."""

from dataclasses import replace
from uuid import UUID

import pytest

from clusters.published import Pin
from scheduler.loop.pods.claims import Pod
from scheduler.loop.pods.requests import pod_request

TOLD = {"BERTH_GPU_MEMORY_MIB": "5000"}
TO_HAMI = {"CUDA_DEVICE_MEMORY_LIMIT": "5000m"}
TO_MPS = {"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "0=5000M"}


def pod(
    kind: str = "share",
    isolation: str = "memory",
    *,
    mib: int | None = 5000,
    amount_milli: int = 326,
    env: tuple[tuple[str, str], ...] = (),
    mig_single: bool = False,
) -> Pod:
    return Pod(
        placement_id=UUID(int=1), workload_id=UUID(int=2), attempt=1, rank=0, peers=1,
        namespace="x", name="w2-1-0", uid="", hostname="n1", image="x", command=(), args=(),
        env=env, cpu_milli=1, memory_mib=1, flavor_kind=kind, profile="1g.10gb", gpu_count=1,
        amount_milli=amount_milli, gpu_memory_mib=mib, isolation=isolation, share_replicas=4,
        share_resource="nvidia.com/gpu.shared", gpu_resource="nvidia.com/gpu",
        mig_single=mig_single, run_time_limit_s=None, grace_s=30, notice_s=0,
        array_index=None, array_size=None, least=1, most=1, priority="high", opened=False,
        dismissed=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "isolation", "told"),
    [
        ("share", "memory", TOLD | TO_HAMI | TO_MPS),
        ("share", "none", TOLD | TO_HAMI),
        ("mig", "hardware", TOLD),
        ("whole", "hardware", TOLD),
    ],
)
def test_it_is_told_in_the_words_of_what_can_hold_it_to_that(
    kind: str, isolation: str, told: dict[str, str]
) -> None:
    assert dict(pod_request(pod(kind, isolation)).env) == told


def test_what_did_not_ask_for_memory_is_told_of_none() -> None:
    assert pod_request(pod(mib=None)).env == ()


def test_what_it_says_itself_does_not_raise_its_limit() -> None:
    said = (("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=15000M"),)
    assert dict(pod_request(pod(env=said)).env) == TOLD | TO_HAMI | TO_MPS


@pytest.mark.parametrize(("amount_milli", "replicas"), [(326, 2), (250, 1), (251, 2), (1000, 4)])
def test_it_asks_for_the_replicas_that_hold_what_it_was_given(
    amount_milli: int, replicas: int
) -> None:
    asked = pod_request(pod(amount_milli=amount_milli)).resources
    assert asked == (("nvidia.com/gpu.shared", replicas),)


@pytest.mark.parametrize(
    ("mig_single", "resource"), [(False, "nvidia.com/mig-1g.10gb"), (True, "nvidia.com/gpu")]
)
def test_a_slice_has_the_name_under_which_its_node_offers_it(
    mig_single: bool, resource: str
) -> None:
    made = pod_request(pod("mig", "hardware", mig_single=mig_single))
    assert made.resources == ((resource, 1),)


def test_it_has_the_priority_of_its_workload() -> None:
    assert pod_request(pod()).priority == "high"


def test_certain_devices_are_claimed_and_not_counted() -> None:
    pins = (Pin("gpu.nvidia.com", "GPU-1"), Pin("gpu.nvidia.com", "GPU-2"))
    asked = pod_request(replace(pod("whole"), pins=pins))
    assert (asked.pins, asked.resources) == (pins, ())
