"""Apply a manifest as `kubectl apply --server-side` would."""

from collections.abc import Iterable

import yaml

from clusters.adapters.kubernetes import access
from clusters.adapters.kubernetes.names import Names
from clusters.parts import Part
from tests.kube.api import APPLY_PATCH, Api, Json
from tests.waiting import eventually

_COLLECTIONS = {
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": "/api/v1/namespaces/{namespace}/serviceaccounts",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "DeviceClass": "/apis/resource.k8s.io/v1/deviceclasses",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "MutatingAdmissionPolicy": "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies",
    "MutatingAdmissionPolicyBinding": (
        "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings"
    ),
    "MutatingWebhookConfiguration": (
        "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
    ),
    "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "ValidatingAdmissionPolicy": (
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    ),
    "ValidatingAdmissionPolicyBinding": (
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
    ),
}


def parsed(manifest: str) -> list[Json]:
    """The objects of a manifest, in its order."""
    return list(yaml.safe_load_all(manifest))


def added_by(part: Part, *, names: Names) -> list[Json]:
    """What a manifest with that part has beyond one without."""
    plain = {(each["kind"], each["metadata"]["name"]) for each in access.documents(names=names)}
    return [
        each
        for each in access.documents(names=names, parts=[part])
        if (each["kind"], each["metadata"]["name"]) not in plain
    ]


def apply(api: Api, documents: Iterable[Json]) -> None:
    """Apply each, in order."""
    for document in documents:
        api.do(
            "PATCH",
            f"{_path(document)}?fieldManager=tests&force=true",
            document,
            content_type=APPLY_PATCH,
        )


def remove(api: Api, documents: Iterable[Json]) -> None:
    """Delete each, until none is there: what is made of a kind that is going goes with it."""
    paths = [_path(document) for document in documents]
    for path in paths:
        api.delete(path)
    eventually("all are gone", lambda: all(api.call("GET", path).status == 404 for path in paths))


def _path(document: Json) -> str:
    metadata = document["metadata"]
    collection = _COLLECTIONS[document["kind"]].format(namespace=metadata.get("namespace", ""))
    return f"{collection}/{metadata['name']}"
