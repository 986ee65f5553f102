"""Where a node comes from, by the labels of those who run clusters: its pool, its zone, and
whether it may be taken away. Pure.

Names: Karpenter's and Kubernetes' well-known labels; EKS, AKS and GKE document theirs with their
node pools, and with spot capacity.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

POOLS = (
    "karpenter.sh/nodepool",
    "eks.amazonaws.com/nodegroup",
    "kubernetes.azure.com/agentpool",
    "cloud.google.com/gke-nodepool",
    "agentpool",  # AKS before 2021
)
"""The first that a node has names its pool."""
ZONES = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")


class Capacity(StrEnum):
    """How a node is paid for, on which depends whether it may be taken away."""

    SPOT = "spot"  # at a few minutes' notice, whenever somebody pays more
    ON_DEMAND = "on-demand"
    RESERVED = "reserved"
    UNKNOWN = ""


_CAPACITY = {
    ("karpenter.sh/capacity-type", "spot"): Capacity.SPOT,
    ("karpenter.sh/capacity-type", "on-demand"): Capacity.ON_DEMAND,
    ("karpenter.sh/capacity-type", "reserved"): Capacity.RESERVED,
    ("eks.amazonaws.com/capacityType", "SPOT"): Capacity.SPOT,
    ("eks.amazonaws.com/capacityType", "ON_DEMAND"): Capacity.ON_DEMAND,
    ("eks.amazonaws.com/capacityType", "CAPACITY_BLOCK"): Capacity.RESERVED,
    ("kubernetes.azure.com/scalesetpriority", "spot"): Capacity.SPOT,
    ("cloud.google.com/gke-spot", "true"): Capacity.SPOT,
    ("cloud.google.com/gke-preemptible", "true"): Capacity.SPOT,
    ("cloud.google.com/gke-provisioning", "spot"): Capacity.SPOT,
    ("cloud.google.com/gke-provisioning", "preemptible"): Capacity.SPOT,
    ("cloud.google.com/gke-provisioning", "standard"): Capacity.ON_DEMAND,
}
_ON_DEMAND_ELSE = ("kubernetes.azure.com/agentpool", "cloud.google.com/gke-nodepool")
"""Whose nodes say that they are spot, and nothing where they are not."""


class Origin(NamedTuple):
    """ "" is unknown."""

    pool: str
    zone: str
    capacity: Capacity


def origin(labels: Mapping[str, str]) -> Origin:
    """As the labels of a node tell it."""
    known = (_CAPACITY[told] for told in labels.items() if told in _CAPACITY)
    told = sorted(known, key=list(Capacity).index)  # spot, whatever else is said
    if not told and any(key in labels for key in _ON_DEMAND_ELSE):
        told = [Capacity.ON_DEMAND]
    capacity = told[0] if told else Capacity.UNKNOWN
    return Origin(_first(labels, POOLS), _first(labels, ZONES), capacity)


def _first(labels: Mapping[str, str], keys: tuple[str, ...]) -> str:
    return next((labels[key] for key in keys if labels.get(key)), "")
