"""What Berth may do in a cluster beyond what it always does: each part is for whoever runs the
cluster to grant, and comes with rights of its own."""

from collections.abc import Mapping
from enum import StrEnum


class Part(StrEnum):
    MIG = "mig"
    DRA = "dra"
    CATCH = "catch"
    AUTOSCALE = "autoscale"
    LOGS = "logs"


WHAT: Mapping[Part, str] = {
    Part.MIG: "cut the MIG devices of nodes anew",
    Part.DRA: "give work its very GPU, or MIG slice, where drivers publish those by Dynamic"
    " Resource Allocation (Kubernetes 1.34 or newer)",
    Part.CATCH: "have pods that others make in projects' namespaces, with the queue label or"
    " asking for a device, wait in Berth's queue (Kubernetes 1.36 or newer)",
    Part.AUTOSCALE: "see which nodes Karpenter can still make, and makes, and ask for nodes by"
    " ProvisioningRequests",
    Part.LOGS: "show events and logs of pods to who sees their workload",
}
"""In words that follow "let Berth"."""
