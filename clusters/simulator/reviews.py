"""What a server says to somebody who asks about themselves: who they are, and what they may."""

from collections.abc import Callable

import orjson

from clusters.simulator.answers import USER, Json
from clusters.simulator.faults import Faults
from clusters.simulator.inspected import INSPECTED
from clusters.simulator.store import GROUPS, RESOURCES

_VERBS = {"get", "list", "watch", "create", "patch", "delete"}
_NEVER_ASKED = {
    ("", "pods/status"): "patch",
    ("resource.k8s.io", "resourceclaimtemplates"): "get",
}
"""Of the manifest, for pods whose claims are made from templates: here are none."""


def find(method: str, path: str) -> Callable[[Json, Faults], bytes] | None:
    """What answers such a request; None where it is no review."""
    return _REVIEWS.get((method, path))


def _who(body: Json, faults: Faults) -> bytes:
    groups = ["system:serviceaccounts", "system:authenticated"]
    return _reviewed(body, {"userInfo": {"username": USER, "groups": groups}})


def _may(body: Json, faults: Faults) -> bytes:
    """All that is simulated, unless a fault forbids it."""
    asked = (body.get("spec") or {}).get("resourceAttributes") or {}
    act, resource = str(asked.get("verb")), str(asked.get("resource"))
    if part := asked.get("subresource"):
        resource = f"{resource}/{part}"
    group = str(asked.get("group", ""))
    if _NEVER_ASKED.get((group, resource)) == act:
        known = True
    elif group and resource not in RESOURCES:  # some owner of pods, which can only be read
        known, resource = act == "get", f"{resource}.{group}"
    else:
        known = (act in _VERBS and resource in RESOURCES) or INSPECTED.get(resource) == act
        known = known and group == GROUPS.get(resource, "")
    allowed = known and not faults.forbids(verb=act, resource=resource)
    return _reviewed(body, {"allowed": allowed})


def _reviewed(body: Json, status: Json) -> bytes:
    return orjson.dumps({**body, "metadata": {}, "status": status})


_REVIEWS = {
    ("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews"): _who,
    ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"): _may,
}
