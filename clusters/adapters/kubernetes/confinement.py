"""Pure: the objects that confine a project's pods in a cluster, and how drift from them is told.

No I/O: `confining` asks and applies.
"""

from collections.abc import Iterator
from ipaddress import ip_network
from typing import Any
from urllib.parse import quote

import orjson

from clusters.adapters.kubernetes import manifests
from clusters.adapters.kubernetes.checks import Malformed, mapping
from clusters.adapters.kubernetes.failures import printable
from clusters.adapters.kubernetes.names import Names
from clusters.adapters.kubernetes.rights import NETWORKING, SCHEDULING
from clusters.confinement import Confinement, Drift
from clusters.port import PRIORITIES
from controlplane.kernel.networks import LINKS_AND_METADATA, Network, lies_in

type Json = dict[str, Any]  # Any: an object of the API, as JSON

PRIORITY_VALUES = dict(zip(PRIORITIES, (900, 1000, 1100, 1200), strict=True))
"""Above 0, so that no pod that says nothing of its priority pushes one of Berth's out."""
_NODE_DNS = "169.254.20.10/32"  # where NodeLocal DNSCache listens, by Kubernetes' documentation
_FOLLOWING = ("spec.hard.requests.", "spec.egress")
"""Fields of the limits and the egress that are wanted: of the quota and the policy alone."""
_LONGEST = 300
_COLLECTIONS = {
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "NetworkPolicy": f"/apis/{NETWORKING}/v1/namespaces/{{}}/networkpolicies",
    "LimitRange": "/api/v1/namespaces/{}/limitranges",
    "ResourceQuota": "/api/v1/namespaces/{}/resourcequotas",
}


DEFAULT_REQUESTS = {"cpu": "100m", "memory": "128Mi"}
"""What a container in a project's namespace asks for that says nothing."""


def objects(wanted: Confinement, *, names: Names) -> list[Json]:
    """The namespace first, then what is in it."""
    space = wanted.namespace
    return [
        manifests.namespace(space, names=names),
        account(space, names=names),
        _network_policy(wanted, names=names),
        _limit_range(space, names=names),
        _resource_quota(wanted, names=names),
    ]


def path(body: Json) -> str:
    """Where the API has such an object."""
    space, name = (quote(body["metadata"].get(key, ""), safe="") for key in ("namespace", "name"))
    return f"{_COLLECTIONS[body['kind']].format(space)}/{name}"


def title(body: Json) -> str:
    """What people call one of ours: "ResourceQuota berth"."""
    return f"{body['kind']} {body['metadata']['name']}"


def priority_classes(*, names: Names) -> list[Json]:
    """Of the whole cluster, so that an administrator makes them. Berth alone decides who gives way
    to whom: its pods push nobody out."""
    return [
        {
            "apiVersion": f"{SCHEDULING}/v1",
            "kind": "PriorityClass",
            "metadata": {"name": names.priority_class(priority)},
            "value": value,
            "preemptionPolicy": "Never",
            "globalDefault": False,
            "description": f"Of pods of Berth's installation {names.installation} alone.",
        }
        for priority, value in PRIORITY_VALUES.items()
    ]


def priority_class_path(name: str) -> str:
    return f"/apis/{SCHEDULING}/v1/priorityclasses/{quote(name, safe='')}"


def account(space: str, *, names: Names) -> Json:
    """No role is bound to it, and no pod gets its token."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": _metadata(names.workload_account, space, names=names),
        "automountServiceAccountToken": False,
    }


def drifts(body: Json, found: Json, applied: Json) -> Iterator[Drift]:
    """Each field in which one of our objects, as it was found, differs from what the server makes
    of it once it is applied. What the server or others own is the same in both. Raises
    Malformed."""
    for key in ("labels", "annotations"):
        before, after = (mapping(mapping(body, "metadata"), key) for body in (found, applied))
        yield from _differences(title(body), f"metadata.{key}", before, after)
    for key in sorted((found.keys() | applied.keys()) - {"metadata", "status"}):
        yield from _differences(title(body), key, found.get(key), applied.get(key))


def foreign_limits(body: Json, applied: Json) -> list[str]:
    """What our own quota limits by somebody else's word, which an apply leaves as theirs: a pod
    that it keeps out is none that was not to be let in. Raises Malformed."""
    if body["kind"] != "ResourceQuota":
        return []
    return sorted(mapping(mapping(applied, "spec"), "hard").keys() - body["spec"]["hard"].keys())


def _differences(of: str, field: str, found: object, wanted: object) -> Iterator[Drift]:
    if found == wanted:
        return
    if isinstance(found, dict) and isinstance(wanted, dict) and len(field) < _LONGEST:
        for key in sorted(found.keys() | wanted.keys()):
            below = f"{field}.{printable(key)}"
            yield from _differences(of, below, found.get(key), wanted.get(key))
    else:
        follows = field.startswith(_FOLLOWING)
        yield Drift(of, field, found=_shown(found), wanted=_shown(wanted), follows=follows)


def _shown(value: object) -> str:
    try:
        text = "" if value is None else orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    except orjson.JSONEncodeError:
        raise Malformed("it is nested without an end") from None
    return printable(text, longest=_LONGEST)


def _network_policy(wanted: Confinement, *, names: Names) -> Json:
    """One that says both ways denies all that it does not name."""
    own: Json = {"podSelector": {}}
    kube_system = {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}
    dns = [{"namespaceSelector": kube_system}, {"ipBlock": {"cidr": _NODE_DNS}}]
    egress: list[Json] = [
        {"to": [own]},
        {"to": dns, "ports": [{"protocol": way, "port": 53} for way in ("UDP", "TCP")]},
    ]
    if wanted.egress:
        egress.append({"to": [{"ipBlock": _block(ip_network(cidr))} for cidr in wanted.egress]})
    return {
        "apiVersion": f"{NETWORKING}/v1",
        "kind": "NetworkPolicy",
        "metadata": _metadata(names.own, wanted.namespace, names=names),
        "spec": {
            "podSelector": {},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"from": [own]}],
            "egress": egress,
        },
    }


def _block(network: Network) -> Json:
    inside = [str(never) for never in LINKS_AND_METADATA if lies_in(never, network)]
    return {"cidr": str(network), **({"except": inside} if inside else {})}


def _limit_range(space: str, *, names: Names) -> Json:
    """For containers that say nothing; Berth's own always do."""
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": _metadata(names.own, space, names=names),
        "spec": {
            "limits": [
                # No limits: those of a default would refuse who requests more and says none.
                {"type": "Container", "defaultRequest": dict(DEFAULT_REQUESTS)}
            ]
        },
    }


def _resource_quota(wanted: Confinement, *, names: Names) -> Json:
    """It counts the pods of Berth's own priorities alone: others' may wait here, gated."""
    classes = [names.priority_class(priority) for priority in PRIORITIES]
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": _metadata(names.own, wanted.namespace, names=names),
        "spec": {
            "hard": {f"requests.{resource}": str(most) for resource, most in wanted.limits},
            "scopeSelector": {
                "matchExpressions": [
                    {"scopeName": "PriorityClass", "operator": "In", "values": classes}
                ]
            },
        },
    }


def _metadata(name: str, space: str, *, names: Names) -> Json:
    labels = {names.label_installation: names.installation}
    return {"name": name, "namespace": space, "labels": labels}
