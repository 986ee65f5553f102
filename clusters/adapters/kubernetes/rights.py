"""The rights that the adapter needs: to be granted, and to be probed. Those of a part are granted
where the cluster is to have that part of what Berth does, and only then.

A right that no request of the adapter uses does not belong here.
"""

from collections.abc import Mapping
from typing import NamedTuple

from clusters.adapters.kubernetes import owners
from clusters.parts import Part

NETWORKING = "networking.k8s.io"
SCHEDULING = "scheduling.k8s.io"
KARPENTER = "karpenter.sh"
REQUESTS = "autoscaling.x-k8s.io"


class Right(NamedTuple):
    """`group` is the API group of the resource, "" for the core one; `part` is None for what Berth
    needs everywhere."""

    verb: str
    resource: str
    why: str
    group: str = ""
    part: Part | None = None

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

MIG_RIGHTS = (  # ADR 0080; those on config maps are on one alone
    Right("get", "nodes", "see what one that is cut anew has come to", part=Part.MIG),
    Right("patch", "nodes", "cordon it, and say how it is to be cut", part=Part.MIG),
    Right("get", "configmaps", "see which ways to cut a node are known there", part=Part.MIG),
    Right("patch", "configmaps", "add the way that is meant", part=Part.MIG),
)
DEVICES = "resource.k8s.io"
DRA_RIGHTS = (  # ADR 0083
    Right("list", "resourceslices", "see which devices drivers publish", DEVICES, Part.DRA),
    Right(
        "watch", "resourceslices", "hear of devices that come, go and fall ill", DEVICES, Part.DRA
    ),
    Right("get", "deviceclasses", "probe whether that of its claims is there", DEVICES, Part.DRA),
    Right("list", "resourceclaims", "see which devices others hold by claims", DEVICES, Part.DRA),
    Right("watch", "resourceclaims", "hear of what claims are given", DEVICES, Part.DRA),
    Right("get", "resourceclaims", "see whose a claim is", DEVICES, Part.DRA),
    Right(
        "create",
        "resourceclaims",
        "claim the very devices that work was placed on",
        DEVICES,
        Part.DRA,
    ),
)
CLASS_RIGHTS = (  # ADR 0092; without them work is placed by claims all the same
    Right(
        "list",
        "deviceclasses",
        "see which devices pods of others ask for by a class",
        DEVICES,
        Part.DRA,
    ),
)
CLAIM_RIGHTS = (  # ADR 0093; as above
    Right(
        "get",
        "resourceclaimtemplates",
        "see which devices pods of others claim",
        DEVICES,
        Part.DRA,
    ),
    Right(
        "patch",
        "pods/status",
        "have such a pod claim the very devices that it was placed on",
        part=Part.DRA,
    ),
)
AUTOSCALE_RIGHTS = (  # ADR 0084
    Right("list", "nodepools", "see which nodes can come", KARPENTER, Part.AUTOSCALE),
    Right("list", "nodeclaims", "see which nodes are being made", KARPENTER, Part.AUTOSCALE),
    Right("list", "provisioningrequests", "see what is asked for nodes", REQUESTS, Part.AUTOSCALE),
)
REQUEST_RIGHTS = (  # ADR 0091; in Berth's own namespace alone
    Right("create", "provisioningrequests", "ask for nodes all at once", REQUESTS, Part.AUTOSCALE),
    Right("get", "provisioningrequests", "see whether it is that one", REQUESTS, Part.AUTOSCALE),
    Right("delete", "provisioningrequests", "ask for them no more", REQUESTS, Part.AUTOSCALE),
    Right("list", "podtemplates", "find those of requests that are gone", part=Part.AUTOSCALE),
    Right("create", "podtemplates", "say what such a node is for", part=Part.AUTOSCALE),
    Right("get", "podtemplates", "see whether it is that one", part=Part.AUTOSCALE),
    Right("delete", "podtemplates", "take that away with the request", part=Part.AUTOSCALE),
)
LOG_RIGHTS = (  # ADR 0087
    Right(
        "get", "pods/log", "show the end of a pod's log to who sees its workload", part=Part.LOGS
    ),
    Right("list", "events", "show what the cluster says of a pod", part=Part.LOGS),
)
CATCHING = tuple(
    Right("get", kind.plural, f"see how many pods of a {name} start together", group, Part.CATCH)
    for (group, name), kind in owners.KINDS.items()
    if group  # to read a pod is a right above
)
"""For what isn't installed it grants nothing."""
OF_PARTS: Mapping[Part, tuple[Right, ...]] = {
    Part.MIG: MIG_RIGHTS,
    Part.DRA: (*DRA_RIGHTS, *CLASS_RIGHTS, *CLAIM_RIGHTS),
    Part.CATCH: CATCHING,
    Part.AUTOSCALE: (*AUTOSCALE_RIGHTS, *REQUEST_RIGHTS),
    Part.LOGS: LOG_RIGHTS,
}
