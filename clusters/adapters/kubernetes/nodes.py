"""Pure: a raw Node as a NodeReport. Raises Malformed for a node that makes no sense.

The labels are those of NVIDIA's GPU feature discovery: `gpu.count` counts every physical device,
cut into MIG slices or not, and the device plugin's `nvidia.com/gpu` only the uncut ones. Where
others' GPUs are, `makers` reads them.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import accumulate, islice
from math import ceil
from typing import Any

from clusters.adapters.kubernetes import hami
from clusters.adapters.kubernetes.checks import (
    Json,
    Malformed,
    count,
    label_words,
    mapping,
    objects,
    optional_word,
    word,
)
from clusters.adapters.kubernetes.makers import MOST_SHARES, Advertised, advertised
from clusters.adapters.kubernetes.models import LONGEST_MODEL, model_of
from clusters.adapters.kubernetes.names import (
    GPU,
    GPU_SHARED,
    HOSTNAME,
    MIG,
    MIG_CONFIG,
    MIG_STATE,
    QUEUED,
    Names,
)
from clusters.adapters.kubernetes.quantities import BadQuantity, mebibytes, milli, pieces
from clusters.port import MOST_DEVICES, DeviceReport, NodeReport

MOST_SLICES = 16 * MOST_DEVICES
MOST_LABELS, MOST_LABELLED = 256, 8192
"""Of one node that are kept, and how many characters of them."""
_ISOLATION = {"none": "", "time-slicing": "none", "mps": "memory"}
"""By what GPU feature discovery calls the strategy; "" is not shared. Before 0.15 it told the
replicas alone."""
_LEAVING = {
    "karpenter.sh/disrupted",  # by Karpenter, whatever for
    "aws-node-termination-handler/spot-itn",
    "cloud.google.com/impending-node-termination",
    "remediator.kubernetes.azure.com/unschedulable",  # AKS node auto-drain
}
"""Taints of those who drain a node that will be taken away."""
_FEATURES = "feature.node.kubernetes.io/"
_PROFILE = re.compile(r"([1-9][0-9]?)g\.([1-9][0-9]{0,3})gb((?:\.[a-z]{2,8}){0,2})")


def node(body: Json, *, names: Names) -> NodeReport:
    """The report of one node, its devices in the order: those in MIG mode, then the whole ones.

    So a sick device, which leaves allocatable only, takes the last ordinal of its kind with it.
    """
    metadata, spec, status = (mapping(body, key) for key in ("metadata", "spec", "status"))
    name = word(metadata, "name")
    labels = label_words(metadata)
    allocatable = mapping(status, "allocatable")
    try:
        capacity = mapping(status, "capacity")
        others = advertised(labels, allocatable, capacity)
        in_parts = hami.registered(mapping(metadata, "annotations"))
        told: dict[str, Any]  # Any: fields of a NodeReport
        if in_parts is not None:  # what it advertises is many times what there is
            told = {"devices": in_parts, "unused": hami.UNUSED}
        elif others is None:
            told = _Gpus(labels, allocatable, capacity, names=names).reported()
        else:
            told = _reported(others)
        leaving = any(taint.get("key") in _LEAVING for taint in objects(spec, "taints"))
        return NodeReport(
            name=name,
            hostname=labels.get(HOSTNAME) or name,
            uid=word(metadata, "uid"),
            ready=_is_ready(status),
            schedulable=not leaving
            and _is_schedulable(spec, GPU if others is None else others.resource),
            cpu_milli=milli(_quantity(allocatable, "cpu")),
            memory_mib=mebibytes(_quantity(allocatable, "memory")),
            **told,
            labels=_few(labels),
            resource_version=optional_word(metadata, "resourceVersion"),
            cordoned=spec.get("unschedulable") is True,
            leaving=leaving,
            recut=optional_word(mapping(metadata, "annotations"), names.annotation_recut),
            mig_config=labels.get(MIG_CONFIG, ""),
            mig_state=labels.get(MIG_STATE, ""),
        )
    except BadQuantity as error:
        raise Malformed(str(error)) from None


def _few(labels: Mapping[str, str]) -> dict[str, str]:
    """Those of NFD's features last: a sound node may have hundreds, and Berth asks for none."""
    ordered = sorted(labels.items(), key=lambda label: label[0].startswith(_FEATURES))
    first = list(islice(ordered, MOST_LABELS))
    lengths = accumulate(len(key) + len(value) for key, value in first)
    return dict(islice(first, sum(length <= MOST_LABELLED for length in lengths)))


def profile_of(resource: str) -> str:
    """The MIG profile of a resource: "nvidia.com/mig-1g.10gb.me" -> "1g.10gb+me"; "" of others."""
    if not resource.startswith(MIG):
        return ""
    return _profile(resource.removeprefix(MIG))


def _profile(name: str) -> str:
    match = _PROFILE.fullmatch(name)
    return f"{match[1]}g.{match[2]}gb{match[3].replace('.', '+', 1)}" if match else ""


class _Gpus:
    """What a node's labels and resources say about its devices."""

    def __init__(
        self, labels: Mapping[str, str], allocatable: Json, capacity: Json, *, names: Names
    ) -> None:
        self._labels = labels
        self._dynamic = labels.get(names.label_geometry) == "dynamic"
        self.model = model_of(labels.get(f"{GPU}.product", ""))
        self.isolation, self.replicas = self._sharing()
        self.share_resource = GPU_SHARED
        if self.replicas > 1 and GPU_SHARED not in capacity:
            self.share_resource = GPU
        resource = self.share_resource if self.replicas > 1 else GPU
        self.single = "-MIG-" in labels.get(f"{GPU}.product", "")
        if self.single:
            self.mig_counts = self._single_counts(allocatable)
            self._whole, self._cut = 0, 1
        else:
            self.mig_counts = {} if self._dynamic else _mig_counts(allocatable)
            self._whole = _devices(allocatable, resource, self.replicas)
            self._cut = self._cut_up(_devices(capacity, resource, self.replicas))

    def reported(self) -> dict[str, Any]:  # Any: fields of a NodeReport
        return {
            "devices": self.devices(),
            "share_replicas": self.replicas,
            "share_isolation": self.isolation,
            "share_resource": self.share_resource,
            "mig_counts": self.mig_counts,
            "mig_single": self.single,
        }

    def devices(self) -> tuple[DeviceReport, ...]:
        # With the strategy "single" it is that of a slice.
        memory_mib = 0 if self.single else count(self._labels.get(f"{GPU}.memory"), most=2**24)
        if self._cut + self._whole > MOST_DEVICES:
            raise Malformed(f"more than {MOST_DEVICES} devices")
        mode = "mig-dynamic" if self._dynamic else "mig-static"
        modes = [mode] * self._cut + ["whole"] * self._whole
        return tuple(
            DeviceReport(ordinal=ordinal, model=self.model, memory_mib=memory_mib, mode=mode)
            for ordinal, mode in enumerate(modes)
        )

    def _sharing(self) -> tuple[str, int]:
        # Of replicas by a strategy that is not known the least is expected.
        isolation = _ISOLATION.get(self._labels.get(f"{GPU}.sharing-strategy", ""), "none")
        replicas = count(self._labels.get(f"{GPU}.replicas"), most=MOST_SHARES)
        return (isolation, replicas) if isolation and replicas > 1 else ("", 1)

    def _single_counts(self, allocatable: Json) -> dict[str, int]:
        """MIG strategy "single" shows slices, all of one profile, under the name of whole devices
        (NVIDIA, "MIG Support in Kubernetes"). {} where they are shared, or not of one profile."""
        profile = _profile(self._labels[f"{GPU}.product"].split("-MIG-", 1)[1])
        slices = _slices(allocatable, GPU)
        return {profile: slices} if profile and slices and self.replicas == 1 else {}

    def _cut_up(self, whole: int) -> int:
        """How many devices are in MIG mode: all that are counted and not advertised whole."""
        counted = count(self._labels.get(f"{GPU}.count"), most=MOST_DEVICES)
        if self._dynamic:
            return max(0, counted - whole)
        if not self.mig_counts:
            return 0
        return counted - whole if counted > whole else _fewest_devices(self.mig_counts)


def _reported(of: Advertised) -> dict[str, Any]:  # Any: fields of a NodeReport
    if of.devices > MOST_DEVICES:
        raise Malformed(f"more than {MOST_DEVICES} devices")
    device = DeviceReport(ordinal=0, model=of.model[:LONGEST_MODEL], memory_mib=of.memory_mib)
    return {
        "devices": tuple(replace(device, ordinal=ordinal) for ordinal in range(of.devices)),
        "share_replicas": of.shares,
        "share_isolation": "none" if of.shares > 1 else "",
        "share_resource": of.resource,
        "gpu_resource": of.resource,
    }


def _fewest_devices(mig_counts: Mapping[str, int]) -> int:
    """The least number of devices that the slices could be cut from, if each had seven compute
    slices. An A30 has four, so of those there may be more: `nvidia.com/gpu.count` goes before."""
    slices = sum(int(profile.split("g.", 1)[0]) * held for profile, held in mig_counts.items())
    return ceil(slices / 7)


def _mig_counts(allocatable: Json) -> dict[str, int]:
    counts: dict[str, int] = {}
    for resource in allocatable:
        profile = profile_of(resource)
        if not profile:
            continue
        if held := _slices(allocatable, resource):
            counts[profile] = held
    if sum(counts.values()) > MOST_SLICES:
        raise Malformed(f"more than {MOST_SLICES} MIG slices")
    return counts


def _slices(allocatable: Json, resource: str) -> int:
    held = pieces(_quantity(allocatable, resource))
    if held > MOST_SLICES:
        raise Malformed(f"more than {MOST_SLICES} MIG slices")
    return held


def _devices(resources: Json, name: str, replicas: int) -> int:
    """Whole devices behind a resource, a started one not counted."""
    devices = pieces(_quantity(resources, name)) // replicas
    if devices > MOST_DEVICES:
        raise Malformed(f"more than {MOST_DEVICES} devices")
    return devices


def _quantity(resources: Json, name: str) -> str:
    value = resources.get(name, "0")
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        raise Malformed(f"{name} is no quantity")
    return value


def _is_ready(status: Json) -> bool:
    return any(
        condition.get("type") == "Ready" and condition.get("status") == "True"
        for condition in objects(status, "conditions")
    )


def _is_schedulable(spec: Json, tolerated: str) -> bool:
    """Not cordoned, and without a taint that Berth's pods do not tolerate there."""
    return spec.get("unschedulable") is not True and not any(
        taint.get("effect") in {"NoSchedule", "NoExecute"}
        and taint.get("key") not in {GPU, QUEUED, tolerated}
        for taint in objects(spec, "taints")
    )
