"""Where a node comes from, by the labels of those who run clusters: its pool, its zone, and
whether it may be taken away. Pure.

Names: Karpenter's and Kubernetes' well-known labels; EKS, AKS and GKE document theirs with their
node pools, and with spot capacity.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

NODE_POOLS = (
    "karpenter.sh/nodepool",
    "eks.amazonaws.com/nodegroup",
    "kubernetes.azure.com/agentpool",
    "cloud.google.com/gke-nodepool",
    "agentpool",  # AKS before 2021
)
"""The first that a node has names its pool."""
ZONES = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")


class CapacityType(StrEnum):
    """How a node is paid for, on which depends whether it may be taken away."""

    SPOT = "spot"  # at a few minutes' notice, whenever somebody pays more
    ON_DEMAND = "on-demand"
    RESERVED = "reserved"
    UNKNOWN = ""


_CAPACITY = {
    ("karpenter.sh/capacity-type", "spot"): CapacityType.SPOT,
    ("karpenter.sh/capacity-type", "on-demand"): CapacityType.ON_DEMAND,
    ("karpenter.sh/capacity-type", "reserved"): CapacityType.RESERVED,
    ("eks.amazonaws.com/capacityType", "SPOT"): CapacityType.SPOT,
    ("eks.amazonaws.com/capacityType", "ON_DEMAND"): CapacityType.ON_DEMAND,
    ("eks.amazonaws.com/capacityType", "CAPACITY_BLOCK"): CapacityType.RESERVED,
    ("kubernetes.azure.com/scalesetpriority", "spot"): CapacityType.SPOT,
    ("cloud.google.com/gke-spot", "true"): CapacityType.SPOT,
    ("cloud.google.com/gke-preemptible", "true"): CapacityType.SPOT,
    ("cloud.google.com/gke-provisioning", "spot"): CapacityType.SPOT,
    ("cloud.google.com/gke-provisioning", "preemptible"): CapacityType.SPOT,
    ("cloud.google.com/gke-provisioning", "standard"): CapacityType.ON_DEMAND,
}
SPOT_LABELS = tuple({key: value} for (key, value), told in _CAPACITY.items() if told == "spot")
"""Each of them alone says that a node is spot."""
_ON_DEMAND_ELSE = ("kubernetes.azure.com/agentpool", "cloud.google.com/gke-nodepool")
"""Whose nodes say that they are spot, and nothing where they are not."""


class Origin(NamedTuple):
    """ "" is unknown."""

    node_pool: str
    zone: str
    capacity: CapacityType


def origin(labels: Mapping[str, str]) -> Origin:
    """As the labels of a node tell it."""
    known = (_CAPACITY[told] for told in labels.items() if told in _CAPACITY)
    told = sorted(known, key=list(CapacityType).index)  # spot, whatever else is said
    if not told and any(key in labels for key in _ON_DEMAND_ELSE):
        told = [CapacityType.ON_DEMAND]
    capacity = told[0] if told else CapacityType.UNKNOWN
    return Origin(_first(labels, NODE_POOLS), _first(labels, ZONES), capacity)


def _first(labels: Mapping[str, str], keys: tuple[str, ...]) -> str:
    return next((labels[key] for key in keys if labels.get(key)), "")
