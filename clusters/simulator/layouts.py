"""The machines of a simulated cluster: built-in layouts, a JSON file, or a CSV of nodes.

A layout is a list of pools; each pool is a number of like machines. Nodes look as NVIDIA's device
plugin and GPU feature discovery make them, or those of AMD and Intel.
"""

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

import orjson

from clusters.simulator.answers import Json

ZONE = "topology.kubernetes.io/zone"
SPINE = "network.topology.nvidia.com/spine"
LEAF = "network.topology.nvidia.com/leaf"
SHARES = 1000  # into how many a device of a node CSV is cut


@dataclass(frozen=True, slots=True)
class Pool:
    """`count` machines named <name>-0, <name>-1, ...

    Of `gpus` physical devices `mig_gpus` are in MIG mode: cut into the slices of `mig` (profile ->
    slices a node), or, when `mig_dynamic`, into any that fit, of which `mig` is the most of each.
    `replicas` above 1 shares each other device among so many pods. `stands` says where they stand,
    as labels; with `racks` they stand in so many, as many in each, rack-1 first. Of another
    `maker`, amd or intel, GPUs are whole; without a `product` no label tells what they are.
    """

    name: str
    count: int
    cpu_milli: int
    memory_mib: int
    gpus: int = 0
    product: str = ""
    gpu_memory_mib: int = 0
    mig: Mapping[str, int] = field(default_factory=dict)
    mig_gpus: int = 0
    mig_dynamic: bool = False
    replicas: int = 1
    pods: int = 110
    stands: Mapping[str, str] = field(default_factory=dict)
    racks: int = 0
    maker: str = "nvidia"


_GIB = 1024
_A100 = {"gpus": 8, "product": "NVIDIA-A100-SXM4-80GB", "gpu_memory_mib": 81920}
_H100 = {"gpus": 8, "product": "NVIDIA-H100-80GB-HBM3", "gpu_memory_mib": 81559}
_BIG = {"cpu_milli": 128_000, "memory_mib": 1024 * _GIB}
_MIDDLE = {"cpu_milli": 64_000, "memory_mib": 256 * _GIB}
_ON_DEMAND = {
    "1g.10gb": 56,
    "1g.20gb": 32,
    "2g.20gb": 24,
    "3g.40gb": 16,
    "4g.40gb": 8,
    "7g.80gb": 8,
}


def _stands(zone: str, block: str) -> dict[str, object]:
    return {"stands": {ZONE: zone, SPINE: block}}


BUILT_IN: dict[str, tuple[dict[str, object], ...]] = {
    "demo-north": (
        {"name": "a100", "count": 2, **_BIG, **_A100, **_stands("north-a", "a")},
        {
            "name": "a100-mig",
            "count": 2,
            **_BIG,
            **_A100,
            "mig_gpus": 4,
            "mig": {"1g.10gb": 15, "2g.20gb": 3, "3g.40gb": 2},
        },
        {"name": "h100", "count": 4, **_BIG, **_H100, **_stands("north-a", "h"), "racks": 2},
        {"name": "cpu", "count": 2, **_MIDDLE},
    ),
    "demo-south": (
        {"name": "h100", "count": 2, **_BIG, **_H100, **_stands("south-a", "h"), "racks": 1},
        {
            "name": "h100-flex",
            "count": 1,
            **_BIG,
            **_H100,
            "mig_gpus": 8,
            "mig_dynamic": True,
            "mig": _ON_DEMAND,
        },
        {
            "name": "l4",
            "count": 2,
            **_MIDDLE,
            "gpus": 4,
            "product": "NVIDIA-L4",
            "gpu_memory_mib": 23034,
            "replicas": 4,
        },
        {
            "name": "t4",
            "count": 2,
            **_MIDDLE,
            "gpus": 4,
            "product": "Tesla-T4",
            "gpu_memory_mib": 15360,
            "replicas": 4,
        },
        {"name": "cpu", "count": 3, **_MIDDLE},
    ),
}


class BadLayout(ValueError):
    """A layout can't be used; the message says why."""


def load(layout: str, *, prefix: str) -> list[Json]:
    """The nodes of a built-in layout, of a JSON file of pools, or of a CSV file of nodes."""
    if layout in BUILT_IN:
        return nodes((_pool(row) for row in BUILT_IN[layout]), prefix=prefix)
    path = Path(layout)
    if not path.is_file():
        known = ", ".join(sorted(BUILT_IN))
        raise BadLayout(f"{layout!r} is neither a file nor one of {known}.")
    if path.suffix == ".csv":
        return from_csv(path, prefix=prefix)
    try:
        rows = orjson.loads(path.read_bytes())
        return nodes((_pool(row) for row in rows), prefix=prefix)
    except (ValueError, TypeError, AttributeError) as error:
        raise BadLayout(f"{path.name} is no list of pools: {error}") from None


def _pool(row: Mapping[str, object]) -> Pool:
    return Pool(**row)  # type: ignore[arg-type]  # a wrong field raises TypeError, said above


def from_csv(path: Path, *, prefix: str) -> list[Json]:
    """The nodes of a CSV with the columns sn, cpu_milli, memory_mib, gpu, model (as openb's).

    Each device is shared in thousandths, as `nvidia.com/gpu.shared`.
    """
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    if not rows or not {"sn", "cpu_milli", "memory_mib", "gpu", "model"} <= rows[0].keys():
        raise BadLayout(f"{path.name} lacks one of the columns sn,cpu_milli,memory_mib,gpu,model.")
    try:
        return [node(_machine(row), row["sn"], prefix=prefix) for row in rows]
    except (ValueError, TypeError) as error:
        raise BadLayout(f"{path.name} has a row that is no machine: {error}.") from None


def _machine(row: Mapping[str, str]) -> Pool:
    gpus = int(row["gpu"])
    return Pool(
        name=row["sn"],
        count=1,
        cpu_milli=int(row["cpu_milli"]),
        memory_mib=int(row["memory_mib"]),
        gpus=gpus,
        product=row["model"],
        replicas=SHARES if gpus else 1,
        pods=1000,
    )


def nodes(pools: Iterable[Pool], *, prefix: str) -> list[Json]:
    return [
        node(pool, f"{pool.name}-{index}", prefix=prefix, rack=index * pool.racks // pool.count)
        for pool in pools
        for index in range(pool.count)
    ]


def node(pool: Pool, name: str, *, prefix: str, rack: int = 0) -> Json:
    """One machine of a pool, in its rack of that number, from 0, if it has racks."""
    resources = _resources(pool)
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        **(_discovered(pool) if pool.gpus else {}),
        **pool.stands,
    }
    if pool.racks:
        labels[LEAF] = f"rack-{rack + 1}"
    if pool.mig_dynamic:
        labels[f"{prefix}/mig-geometry"] = "dynamic"
    body = bare_node(name)
    body["metadata"]["labels"] = labels
    body["status"].update(capacity=resources, allocatable=dict(resources))
    return body


def bare_node(name: str) -> Json:
    """A ready machine with nothing in it. Its uid follows from its name and outlives a restart."""
    return {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {
            "name": name,
            "uid": str(uuid5(NAMESPACE_URL, f"simulated-node/{name}")),
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {},
        "status": {
            "capacity": {},
            "allocatable": {},
            "conditions": [
                {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}
            ],
            "nodeInfo": {"operatingSystem": "linux", "architecture": "amd64"},
        },
    }


def _resources(pool: Pool) -> dict[str, str]:
    resources = {
        "cpu": f"{pool.cpu_milli}m",
        "memory": f"{pool.memory_mib}Mi",
        "ephemeral-storage": "1Ti",
        "pods": str(pool.pods),
    }
    whole = pool.gpus - pool.mig_gpus
    if pool.maker in _RESOURCES:
        return resources | {_RESOURCES[pool.maker]: str(whole)}
    if pool.replicas > 1:
        resources["nvidia.com/gpu.shared"] = str(whole * pool.replicas)
    elif pool.gpus:
        resources["nvidia.com/gpu"] = str(whole)
    for profile, count in pool.mig.items():
        resources[f"nvidia.com/mig-{profile.replace('+', '.')}"] = str(count)
    return resources


def _discovered(pool: Pool) -> dict[str, str]:
    """The labels of GPU feature discovery; `gpu.count` counts devices in MIG mode too. Of others'
    GPUs those of AMD's node labeller, and of Intel's rules and plugin."""
    if pool.maker != "nvidia":
        return _labelled(pool) if pool.product else {}
    labels = {
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.product": pool.product,
        "nvidia.com/gpu.memory": str(pool.gpu_memory_mib),
        "nvidia.com/gpu.count": str(pool.gpus),
        "nvidia.com/gpu.replicas": str(pool.replicas if pool.gpus > pool.mig_gpus else 0),
        "nvidia.com/gpu.sharing-strategy": "time-slicing" if pool.replicas > 1 else "none",
        "nvidia.com/mig.capable": "true" if pool.mig_gpus else "false",
        "nvidia.com/mig.strategy": "mixed" if pool.mig_gpus else "none",
    }
    if not pool.mig_dynamic:
        for profile, count in pool.mig.items():
            resource = f"nvidia.com/mig-{profile.replace('+', '.')}"
            labels[f"{resource}.count"] = str(count)
            labels[f"{resource}.product"] = f"{pool.product}-MIG-{profile.replace('+', '.')}"
    return labels


_RESOURCES = {"amd": "amd.com/gpu", "intel": "gpu.intel.com/xe"}


def _labelled(pool: Pool) -> dict[str, str]:
    if pool.maker == "amd":
        vram = f"{pool.gpu_memory_mib // _GIB}G"
        return {"amd.com/gpu.product-name": pool.product, "amd.com/gpu.vram": vram}
    return {
        "gpu.intel.com/product": pool.product,
        "gpu.intel.com/device.count": str(pool.gpus),
        "gpu.intel.com/memory.max": str(pool.gpus * pool.gpu_memory_mib * 2**20),
    }
