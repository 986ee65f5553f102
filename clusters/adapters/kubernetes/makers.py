"""Pure: what a node says of GPUs that are not NVIDIA's. Raises Malformed for what makes no sense.

AMD's device plugin advertises `amd.com/gpu`, Intel's `gpu.intel.com/xe` or `…/i915`, after the
driver. Their models are told by labels, which are others' to set: AMD's node labeller has
`amd.com/gpu.product-name`, `.device-id` and `.vram`, and before those had values
`beta.amd.com/gpu.device-id.<id>` and so on, with counts; Intel's rules for node feature discovery
have `gpu.intel.com/product`, `.device-id.<class>-<id>.present` and `device.count`, and its plugin
`gpu.intel.com/memory.max`, the bytes of all GPUs together. All GPUs of a node are taken to be
alike, as those labels do.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from clusters.adapters.kubernetes.checks import Json, Malformed, count
from clusters.adapters.kubernetes.names import AMD_GPU, GPU, INTEL_GPUS, MIG
from clusters.adapters.kubernetes.quantities import pieces
from clusters.port import UNKNOWN

_AMD = ("amd.com/gpu.", "beta.amd.com/gpu.")
_VRAM = re.compile(r"([1-9][0-9]{0,4})GB?")
_INTEL = "gpu.intel.com/"
_INTEL_ID = re.compile(r"gpu\.intel\.com/device-id\.[0-9a-f]{4}-([0-9a-f]{4})\.present")
_MIB = 2**20
MOST_SHARES = 1000
"""Of one device."""


@dataclass(frozen=True, slots=True)
class Advertised:
    """The resource under which a node's GPUs are asked for, how many there are, and what they are.
    `shares` pods may have each GPU at once; `memory_mib` 0 and a `model` that ends in UNKNOWN are
    what no label tells."""

    resource: str
    devices: int
    model: str
    memory_mib: int
    shares: int = 1


def advertised(labels: Mapping[str, str], allocatable: Json, capacity: Json) -> Advertised | None:
    """GPUs of AMD or Intel; None where there are none. A node has GPUs of one maker: NVIDIA's go
    before, healthy or not, and of two drivers of Intel's the newer."""
    if _has_nvidias(labels, allocatable, capacity):
        return None
    held = _held(allocatable, AMD_GPU)
    if held:
        return Advertised(AMD_GPU, held, _amd_model(labels), _amd_memory_mib(labels))
    for resource in INTEL_GPUS:
        held = _held(allocatable, resource)
        if held:
            return _intel(resource, held, max(held, _held(capacity, resource)), labels)
    return None


def _has_nvidias(labels: Mapping[str, str], allocatable: Json, capacity: Json) -> bool:
    """All may be sick, or in MIG mode: then there are 0 whole ones. Network cards beside any GPUs
    are `nvidia.com/` too."""
    return any(name.startswith((GPU, MIG)) for name in (*allocatable, *capacity)) or any(
        f"{GPU}.{told}" in labels for told in ("count", "product")
    )


def _held(allocatable: Json, resource: str) -> int:
    value = allocatable.get(resource, "0")
    if not isinstance(value, str):
        raise Malformed(f"{resource} is no quantity")
    return pieces(value)


def _amd_model(labels: Mapping[str, str]) -> str:
    product = _amd(labels, "product-name")
    device = _amd(labels, "device-id")
    return product or f"AMD-{device or UNKNOWN}"


def _amd_memory_mib(labels: Mapping[str, str]) -> int:
    found = _VRAM.fullmatch(_amd(labels, "vram"))
    return int(found[1]) * 1024 if found else 0


def _amd(labels: Mapping[str, str], kind: str) -> str:
    """The value of one property, "" where none is told, or several are."""
    for prefix in _AMD:
        told = labels.get(f"{prefix}{kind}")
        if told:
            return told
    within = f"{_AMD[1]}{kind}."
    return _only(label.removeprefix(within) for label in labels if label.startswith(within))


def _intel(resource: str, held: int, fitted: int, labels: Mapping[str, str]) -> Advertised:
    """The plugin may advertise each GPU several times, for pods that share it: then there are more
    than rules count. How many share one is told by what is `fitted`, since what is `held` falls
    with health; what is left of a GPU that has gone sick meanwhile is no device."""
    devices = count(labels.get(f"{_INTEL}device.count"), most=1000) or fitted
    shares = max(1, -(-fitted // devices))
    if shares > MOST_SHARES:
        raise Malformed(f"more than {MOST_SHARES} shares of a device")
    matches = (_INTEL_ID.fullmatch(label) for label in labels)
    device = _only(found[1] for found in matches if found)
    model = labels.get(f"{_INTEL}product") or f"Intel-{device or UNKNOWN}"
    told = labels.get(f"{_INTEL}memory.max", "")
    memory = int(told) if told.isascii() and told.isdigit() and len(told) < 16 else 0
    return Advertised(resource, held // shares, model, memory // _MIB // devices, shares)


def _only(told: Iterable[str]) -> str:
    found = set(told)
    return found.pop() if len(found) == 1 else ""
