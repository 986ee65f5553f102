"""Pure: placeholder pods, which stand for work that no autoscaler sees, so that one makes nodes.

One asks for what work would have on a node of a certain pool, and does nothing should it come to
run. Its priority is below that of all that says nothing of it, so that it is in nobody's way.

It stands on no node that is there already, else none would be made. Karpenter passes over pods
that say anything of a hostname, or of its own labels; of any other label it takes it that a new
node has none. So it keeps off nodes with a label that GPU discovery gives each in time.
"""

from typing import Any

from clusters.adapters.kubernetes import manifests
from clusters.adapters.kubernetes.checks import Json, mapping, optional_word, word
from clusters.adapters.kubernetes.karpenter import POOL
from clusters.adapters.kubernetes.names import Names
from clusters.adapters.kubernetes.rights import SCHEDULING
from clusters.autoscaling import NodeRequest, PlaceholderReport, PlaceholderRequest
from clusters.port import PodRequest

IMAGE = "registry.k8s.io/pause:3.10"
PRIORITY = -10
"""Cluster autoscalers pass over what is lower."""
_DISCOVERED = ("nvidia.com/gpu.memory", "amd.com/gpu.vram")
"""Labels of nodes whose GPUs were discovered; no template of a pool has a reason to name them."""


def priority_class(*, names: Names) -> dict[str, Any]:  # Any: an object of the API, as JSON
    return {
        "apiVersion": f"{SCHEDULING}/v1",
        "kind": "PriorityClass",
        "metadata": {"name": names.placeholder},
        "value": PRIORITY,
        "preemptionPolicy": "Never",
        "globalDefault": False,
        "description": f"Of placeholders of Berth's installation {names.installation} alone.",
    }


def idle_pod(request: PlaceholderRequest | NodeRequest, *, names: Names) -> Json:
    """One that asks for that, does nothing and waits for nobody's word."""
    body = manifests.pod(
        PodRequest(
            namespace=names.home,
            name=request.name,
            workload="",
            attempt=0,
            rank=0,
            image=IMAGE,
            command=(),
            args=(),
            env=(),
            cpu_milli=request.cpu_milli,
            memory_mib=request.memory_mib,
            resources=tuple(sorted(request.resources.items())),
            grace_s=0,
        ),
        names=names,
    )
    del body["spec"]["schedulingGates"]
    return body


def pod(request: PlaceholderRequest, *, names: Names) -> Json:
    body = idle_pod(request, names=names)
    body["metadata"]["labels"] = {
        names.label_installation: names.installation,
        names.label_ask: request.ask,
    }
    del body["metadata"]["annotations"]
    spec = body["spec"]
    spec["priorityClassName"] = names.placeholder
    spec["nodeSelector"] = {POOL: request.pool}
    new = [{"key": key, "operator": "DoesNotExist"} for key in _DISCOVERED]
    terms = {"nodeSelectorTerms": [{"matchExpressions": new}]}
    spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    return body


def report(body: Json, *, names: Names) -> PlaceholderReport:
    """Raises Malformed."""
    metadata = mapping(body, "metadata")
    return PlaceholderReport(
        name=word(metadata, "name"),
        uid=word(metadata, "uid"),
        ask=word(mapping(metadata, "labels"), names.label_ask),
        node=optional_word(mapping(body, "spec"), "nodeName"),
        deleting=metadata.get("deletionTimestamp") is not None,
    )


def query(*, names: Names) -> dict[str, str]:
    """What selects this installation's: pods, and requests with their templates."""
    return {"labelSelector": f"{names.label_installation}={names.installation},{names.label_ask}"}
