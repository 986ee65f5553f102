"""Pure: ProvisioningRequests (autoscaling.x-k8s.io/v1), by which cluster-autoscaler and GKE are
asked for several nodes at once, all or none.

A request names a PodTemplate of its own namespace, and how many such pods there are. Each of ours
asks for all devices of a node, so that it stands for one. Pods that use the nodes name the
request, so that no further ones are made for them.
"""

from typing import Any
from uuid import UUID

from clusters.adapters.kubernetes import placeholders
from clusters.adapters.kubernetes.checks import (
    Json,
    Malformed,
    label_words,
    mapping,
    moment,
    objects,
    word,
)
from clusters.adapters.kubernetes.failures import printable
from clusters.adapters.kubernetes.names import Names
from clusters.adapters.kubernetes.rights import REQUESTS
from clusters.autoscaling import NodeRequest, NodeRequestReport
from clusters.port import MOST_NODES

EVERYWHERE = f"/apis/{REQUESTS}/v1/provisioningrequests"
_ENDS = ("Failed", "CapacityRevoked", "BookingExpired")
"""Conditions after which no more comes of a request, the worst first."""


def requests_path(namespace: str) -> str:
    return f"/apis/{REQUESTS}/v1/namespaces/{namespace}/provisioningrequests"


def templates_path(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/podtemplates"


def template(request: NodeRequest, *, names: Names) -> Json:
    spec = placeholders.idle_pod(request, names=names)["spec"]
    spec["nodeSelector"] = dict(request.selector)
    return {
        "apiVersion": "v1",
        "kind": "PodTemplate",
        "metadata": _metadata(request, names=names),
        "template": {"spec": spec},
    }


def body(request: NodeRequest, *, names: Names) -> Json:
    return {
        "apiVersion": f"{REQUESTS}/v1",
        "kind": "ProvisioningRequest",
        "metadata": _metadata(request, names=names),
        "spec": {
            "provisioningClassName": request.request_class,
            "parameters": dict(request.parameters),
            "podSets": [{"podTemplateRef": {"name": request.name}, "count": request.count}],
        },
    }


def _metadata(request: NodeRequest, *, names: Names) -> dict[str, Any]:  # Any: JSON
    return {
        "name": request.name,
        "namespace": names.home,
        "labels": {
            names.label_installation: names.installation,
            names.label_ask: request.ask,
            names.label_node_pool: request.pool,
        },
    }


def report(found: Json, *, names: Names) -> NodeRequestReport:
    """Of others' requests too. Raises Malformed."""
    metadata, status = mapping(found, "metadata"), mapping(found, "status")
    labels = label_words(metadata)
    ours = (
        labels.get(names.label_installation) == names.installation
        and metadata.get("namespace") == names.home
    )
    conditions = {
        str(each.get("type")): each
        for each in objects(status, "conditions")
        if each.get("status") == "True"
    }
    end = next((kind for kind in _ENDS if kind in conditions), "")
    nodes = sum(map(_count, objects(mapping(found, "spec"), "podSets")))
    if nodes > MOST_NODES:
        raise Malformed(f"it is for more than {MOST_NODES:,} pods")
    return NodeRequestReport(
        name=word(metadata, "name"),
        uid=word(metadata, "uid", longest=128),
        ask=_id(labels, names.label_ask) if ours else "",
        pool=_id(labels, names.label_node_pool) if ours else "",
        nodes=nodes,
        created_at=moment(metadata, "creationTimestamp"),
        accepted="Accepted" in conditions,
        provisioned="Provisioned" in conditions,
        ended=printable(f"{end}: {conditions[end].get('message') or 'no word why'}")
        if end
        else "",
    )


def template_report(found: Json, *, names: Names) -> NodeRequestReport:
    """Of one whose request is not there, as far as its template tells. Raises Malformed."""
    metadata = mapping(found, "metadata")
    return NodeRequestReport(
        name=word(metadata, "name"),
        template_uid=word(metadata, "uid"),
        ask=_id(label_words(metadata), names.label_ask),
    )


def _id(labels: dict[str, str], key: str) -> str:
    try:
        return str(UUID(labels.get(key, "")))
    except ValueError:
        raise Malformed(f"its label {key} is no id") from None


def _count(pod_set: Json) -> int:
    count = pod_set.get("count")
    if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= MOST_NODES:
        raise Malformed("its count of pods makes no sense")
    return count
