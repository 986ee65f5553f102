"""Pure: Karpenter's NodePools and NodeClaims (karpenter.sh/v1) as reports. Raises Malformed for an
object that makes no sense.

A pool's template tells of its GPUs in the cloud's words at best; only NVIDIA's own label has the
name that nodes will have.
"""

from collections.abc import Iterator
from typing import Any

from clusters.adapters.kubernetes.checks import (
    Json,
    Malformed,
    mapping,
    moment,
    objects,
    optional_word,
    word,
)
from clusters.adapters.kubernetes.failures import printable
from clusters.adapters.kubernetes.models import model_of
from clusters.adapters.kubernetes.names import GPU
from clusters.adapters.kubernetes.quantities import BadQuantity, mebibytes, milli, pieces
from clusters.adapters.kubernetes.rights import KARPENTER
from clusters.autoscaling import (
    Amounts,
    NodeClaimReport,
    NodePoolReport,
)

MOST_POOLS = 1000
POOLS = f"/apis/{KARPENTER}/v1/nodepools"
CLAIMS = f"/apis/{KARPENTER}/v1/nodeclaims"
POOL = f"{KARPENTER}/nodepool"
"""The label of nodes and claims that names their pool."""
_PRODUCT = f"{GPU}.product"
_ACCELERATORS = ("karpenter.k8s.aws/instance-gpu-name", "cloud.google.com/gke-accelerator")
_MOST = 2**31 - 1


def pool(body: Json) -> NodePoolReport:
    spec, status = mapping(body, "spec"), mapping(body, "status")
    template = mapping(spec, "template")
    of_nodes = mapping(template, "spec")
    product = _said(template, of_nodes, _PRODUCT)
    taints = objects(of_nodes, "taints")
    cloud = (_said(template, of_nodes, key) for key in _ACCELERATORS)
    try:
        return NodePoolReport(
            name=word(mapping(body, "metadata"), "name"),
            ready=_makes_nodes(spec, status) and not any(map(_repels, taints)),
            model=model_of(product[0])[:80] if len(product) == 1 else "",
            accelerator=printable(", ".join(next(filter(None, cloud), product)), longest=80),
            limits=_amounts(mapping(spec, "limits")),
            used=_amounts(mapping(status, "resources")),
        )
    except BadQuantity as error:
        raise Malformed(str(error)) from None


def claim(body: Json) -> NodeClaimReport:
    metadata, status = mapping(body, "metadata"), mapping(body, "status")
    created_at = moment(metadata, "creationTimestamp")
    if created_at is None:
        raise Malformed("it does not say when it was made")
    ready_at = next(
        (
            moment(each, "lastTransitionTime")
            for each in objects(status, "conditions")
            if each.get("type") == "Initialized" and each.get("status") == "True"
        ),
        None,
    )
    return NodeClaimReport(
        name=word(metadata, "name"),
        uid=word(metadata, "uid"),
        pool=word(mapping(metadata, "labels"), POOL),
        created_at=created_at,
        launched=_is(status, "Launched") is True,
        registered=_is(status, "Registered") is True,
        node=optional_word(status, "nodeName"),
        initialized_at=ready_at,
    )


def _said(template: Json, of_nodes: Json, key: str) -> list[str]:
    """The values that a pool's nodes may have of a label, as its template says; [] for any."""
    label = mapping(mapping(template, "metadata"), "labels").get(key)
    if label is not None:
        if not _is_word(label):
            raise Malformed(f"its label {key} is no word")
        return [label[:253]]
    for each in objects(of_nodes, "requirements"):
        if each.get("key") == key and each.get("operator") == "In":
            values = each.get("values")
            if not isinstance(values, list) or not all(map(_is_word, values)):
                raise Malformed(f"the values of {key} are no words")
            return [value[:253] for value in values[:20]]
    return []


def _is_word(value: object) -> bool:
    return isinstance(value, str) and value.isprintable()


def _amounts(resources: Json) -> Amounts:
    def read(key: str, parse: Any) -> int | None:  # Any: one of the readers of quantities
        value = resources.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise Malformed(f"{key} is no quantity")
        return min(_MOST, int(parse(str(value))))

    return Amounts(
        cpu_milli=read("cpu", milli),
        memory_mib=read("memory", mebibytes),
        devices=read(GPU, pieces),
        nodes=read("nodes", pieces),
    )


def _makes_nodes(spec: Json, status: Json) -> bool:
    """For pods: one of a fixed size makes as many as it was told to."""
    return _is(status, "Ready") is not False and spec.get("replicas") is None


def _repels(taint: Json) -> bool:
    """Whether Berth's pods stay off such a node for good. A taint of the start goes by itself."""
    return word(taint, "effect") in {"NoSchedule", "NoExecute"} and word(taint, "key") != GPU


def _is(status: Json, kind: str) -> bool | None:
    """What a condition says; None where nothing does."""
    told: Iterator[Json] = (e for e in objects(status, "conditions") if e.get("type") == kind)
    found = next(told, None)
    return None if found is None else found.get("status") == "True"
