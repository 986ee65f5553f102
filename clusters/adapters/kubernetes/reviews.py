"""What a cluster lets Berth do, asked of itself (SelfSubjectAccessReview)."""

from collections.abc import Iterable

from clusters.adapters.kubernetes.checks import Malformed, mapping
from clusters.adapters.kubernetes.client import Client
from clusters.adapters.kubernetes.rights import Right

_ACCESS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


def lacking(client: Client, rights: Iterable[Right], **within: str) -> list[str]:
    """Those that it has not, in all namespaces or `within` the one that is named. Raises Malformed
    for an answer that is none, and ClusterError."""
    return [str(right) for right in rights if not may(client, **_asked(right), **within)]


def may(client: Client, **asked: str) -> bool:
    """In all namespaces, unless one is asked for. Raises as `lacking`."""
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": asked},
    }
    answer = client.call("POST", _ACCESS, body=review)
    allowed = mapping(answer, "status").get("allowed")
    if not isinstance(allowed, bool):
        raise Malformed("it says neither yes nor no")
    return allowed


def _asked(right: Right) -> dict[str, str]:
    """Of a part of objects, such as pods/log, a review names object and part."""
    resource, _, part = right.resource.partition("/")
    asked = {"verb": right.verb, "group": right.group, "resource": resource}
    return {**asked, "subresource": part} if part else asked
