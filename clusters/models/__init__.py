"""What hardware exists: one aggregate a file."""

from clusters.models.autoscaling import NodeClaim, NodePool
from clusters.models.cluster import Cluster, ClusterState
from clusters.models.credential import ClusterCredential
from clusters.models.device import Device, DeviceMode, DeviceSlice, ForeignSpan
from clusters.models.exposure import Exposure, ExposureVerdict
from clusters.models.flavor import (
    SEVENTHS,
    VENDORS,
    Flavor,
    FlavorKind,
    FlavorPart,
    Isolation,
    Placing,
)
from clusters.models.imprint import Imprint
from clusters.models.node import Node
from clusters.models.probe import ClusterProbe, ProbeStop
from clusters.models.queue import HardwareQueue

__all__ = [
    "SEVENTHS",
    "VENDORS",
    "Cluster",
    "ClusterCredential",
    "ClusterProbe",
    "ClusterState",
    "Device",
    "DeviceMode",
    "DeviceSlice",
    "Exposure",
    "ExposureVerdict",
    "Flavor",
    "FlavorKind",
    "FlavorPart",
    "ForeignSpan",
    "HardwareQueue",
    "Imprint",
    "Isolation",
    "Node",
    "NodeClaim",
    "NodePool",
    "Placing",
    "ProbeStop",
]
