"""The rights that the adapter needs: to be granted, and to be probed. Those of a part are granted
where the cluster is to have that part of what Berth does, and only then.

A right that no request of the adapter uses does not belong here.
"""

from typing import NamedTuple

from clusters.adapters.kubernetes import owners

NETWORKING = "networking.k8s.io"
SCHEDULING = "scheduling.k8s.io"
KARPENTER = "karpenter.sh"


class Right(NamedTuple):
    """`group` is the API group of the resource, "" for the core one; `part` is "" for what Berth
    needs everywhere."""

    verb: str
    resource: str
    why: str
    group: str = ""
    part: str = ""

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}" + (f".{self.group}" if self.group else "")


RIGHTS = (
    Right("list", "nodes", "see what hardware there is"),
    Right("watch", "nodes", "hear of machines that come, go and fall ill"),
    Right("list", "pods", "see what runs, and what others hold of the machines"),
    Right("watch", "pods", "hear of starts and ends"),
    Right("get", "pods", "read one before its gate is opened"),
    Right("create", "pods", "create one, behind its gate"),
    Right("patch", "pods", "open its gate, and give it notice"),
    Right("delete", "pods", "stop it, and collect what ended"),
    Right("get", "namespaces", "see whose a project's namespace is"),
    Right("create", "namespaces", "make one for each project"),
    Right("patch", "namespaces", "keep it as it should be (server-side apply)"),
    Right("get", "serviceaccounts", "see whose the account is as which pods run"),
    Right("create", "serviceaccounts", "make one, without any right, for each project"),
    Right("patch", "serviceaccounts", "keep it as it should be"),
    Right("get", "networkpolicies", "see whose a network policy is", NETWORKING),
    Right("create", "networkpolicies", "keep projects' networks apart", NETWORKING),
    Right("patch", "networkpolicies", "keep it as it should be", NETWORKING),
    Right("get", "limitranges", "see whose the defaults for containers are"),
    Right("create", "limitranges", "give containers that say nothing a size"),
    Right("patch", "limitranges", "keep it as it should be"),
    Right("get", "resourcequotas", "see whose a project's limit is"),
    Right("create", "resourcequotas", "limit what a project's pods ask for together"),
    Right("patch", "resourcequotas", "raise and lower that with the project's quota"),
    Right("get", "priorityclasses", "probe whether those of its pods are there", SCHEDULING),
    Right("get", "services", "see whose a gang's service is"),
    Right("create", "services", "let the ranks of a gang find each other"),
    Right("delete", "services", "take a gang's service away after its end"),
)

MIG = "mig"
"""The part that cuts nodes anew (ADR 0080). Its rights on config maps are on one alone."""
MIG_RIGHTS = (
    Right("get", "nodes", "see what one that is cut anew has come to", part=MIG),
    Right("patch", "nodes", "cordon it, and say how it is to be cut", part=MIG),
    Right("get", "configmaps", "see which ways to cut a node are known there", part=MIG),
    Right("patch", "configmaps", "add the way that is meant", part=MIG),
)
DEVICES = "resource.k8s.io"
DRA = "dra"
"""The part that gives work its certain devices, by Dynamic Resource Allocation (ADR 0083)."""
DRA_RIGHTS = (
    Right("list", "resourceslices", "see which devices drivers publish", DEVICES, DRA),
    Right("watch", "resourceslices", "hear of devices that come, go and fall ill", DEVICES, DRA),
    Right("get", "deviceclasses", "probe whether that of its claims is there", DEVICES, DRA),
    Right("list", "resourceclaims", "see which devices others hold by claims", DEVICES, DRA),
    Right("watch", "resourceclaims", "hear of what claims are given", DEVICES, DRA),
    Right("get", "resourceclaims", "see whose a claim is", DEVICES, DRA),
    Right(
        "create", "resourceclaims", "claim the very devices that work was placed on", DEVICES, DRA
    ),
)
AUTOSCALE = "autoscale"
"""The part that sees what nodes can come, and asks for them (ADR 0084)."""
AUTOSCALE_RIGHTS = (
    Right("list", "nodepools", "see which nodes can come", KARPENTER, AUTOSCALE),
    Right("list", "nodeclaims", "see which nodes are being made", KARPENTER, AUTOSCALE),
)
LOGS = "logs"
"""The part that shows people what a cluster says of their pods (ADR 0087)."""
LOG_RIGHTS = (
    Right("get", "pods/log", "show the end of a pod's log to who sees its workload", part=LOGS),
    Right("list", "events", "show what the cluster says of a pod", part=LOGS),
)
CATCHING = tuple(
    Right("get", kind.plural, f"see how many pods of a {name} start together", group)
    for (group, name), kind in owners.KINDS.items()
    if group  # to read a pod is a right above
)
"""What is needed besides where others' work is caught; for what isn't installed it grants
nothing."""
