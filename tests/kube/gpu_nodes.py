"""Fake GPU nodes as NVIDIA's device plugin and GPU feature discovery present real ones."""

from collections.abc import Mapping

from tests.kube.api import Json

# Family and compute capability by a word of the model's name.
_ARCHITECTURES = {
    "V100": ("volta", 7, 0),
    "T4": ("turing", 7, 5),
    "A100": ("ampere", 8, 0),
    "A30": ("ampere", 8, 0),
    "A10": ("ampere", 8, 6),
    "L4": ("ada-lovelace", 8, 9),
    "L40S": ("ada-lovelace", 8, 9),
    "H100": ("hopper", 9, 0),
    "H200": ("hopper", 9, 0),
    "B200": ("blackwell", 10, 0),
}
_MIG_CAPABLE = {"A100", "A30", "H100", "H200", "B200"}


def gpu_node(
    name: str,
    *,
    model: str,
    gpus: int,
    memory_mib: int,
    cpu_milli: int,
    ram_mib: int,
    mig: Mapping[str, int],
    mig_gpus: int | None = None,
) -> Json:
    """The Node of a machine with `gpus` whole GPUs and, by profile ("1g.10gb"), `mig` slices.

    `mig_gpus` is how many more physical GPUs the slices are cut from; left out, as few as can be.
    """
    resources = {
        "cpu": f"{cpu_milli}m",
        "memory": f"{ram_mib}Mi",
        "ephemeral-storage": "1Ti",
        "pods": "110",
        "nvidia.com/gpu": str(gpus),
    } | {_mig_resource(profile): str(count) for profile, count in mig.items()}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                **_discovered(model, gpus, memory_mib, mig, mig_gpus),
            },
        },
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "nodeInfo": {"operatingSystem": "linux", "architecture": "amd64"},
        },
    }


def _discovered(
    model: str, gpus: int, memory_mib: int, mig: Mapping[str, int], mig_gpus: int | None
) -> dict[str, str]:
    """The labels of GPU feature discovery (its mig-strategy is mixed where there are slices).

    `gpu.count` counts the physical GPUs, cut up or not; `gpu.replicas` is 0 where all are cut up.
    """
    product = model.replace(" ", "-")
    cut_up = _gpus_cut_up(mig) if mig_gpus is None else mig_gpus
    words = set(product.split("-"))
    labels = {
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.product": product,
        "nvidia.com/gpu.memory": str(memory_mib),
        "nvidia.com/gpu.count": str(gpus + cut_up),
        "nvidia.com/gpu.replicas": "1" if gpus else "0",
        "nvidia.com/mig.capable": "true" if mig or words & _MIG_CAPABLE else "false",
        "nvidia.com/mig.strategy": "mixed" if mig else "single",
    }
    for word, (family, major, minor) in _ARCHITECTURES.items():
        if word in words:
            labels["nvidia.com/gpu.family"] = family
            labels["nvidia.com/gpu.compute.major"] = str(major)
            labels["nvidia.com/gpu.compute.minor"] = str(minor)
    for profile, count in mig.items():
        resource = _mig_resource(profile)
        labels[f"{resource}.count"] = str(count)
        labels[f"{resource}.product"] = f"{product}-MIG-{profile.replace('+', '.')}"
        labels[f"{resource}.replicas"] = "1"
        labels[f"{resource}.slices.gi"] = str(_compute_slices(profile))
        labels[f"{resource}.slices.ci"] = str(_compute_slices(profile))
    return labels


def _mig_resource(profile: str) -> str:
    return f"nvidia.com/mig-{profile.replace('+', '.')}"


def _compute_slices(profile: str) -> int:
    return int(profile.split("g.", 1)[0])


def _gpus_cut_up(mig: Mapping[str, int]) -> int:
    """Seven compute slices make one GPU."""
    return -(-sum(_compute_slices(profile) * count for profile, count in mig.items()) // 7)
