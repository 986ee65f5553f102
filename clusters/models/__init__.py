"""What hardware exists: one aggregate a file."""

from clusters.models.cluster import Cluster, ClusterState
from clusters.models.device import Device, DeviceMode, DeviceSlice
from clusters.models.flavor import Flavor, FlavorKind, Isolation, Placing
from clusters.models.node import Node

__all__ = [
    "Cluster",
    "ClusterState",
    "Device",
    "DeviceMode",
    "DeviceSlice",
    "Flavor",
    "FlavorKind",
    "Isolation",
    "Node",
    "Placing",
]
