"""Somebody with the usual rights in one namespace: what a project's people have in a cluster."""

from tests.kube.api import Api, Json
from tests.kube.control_plane import ControlPlane

_RBAC = "rbac.authorization.k8s.io"


def editor_of(kube: ControlPlane, namespace: str) -> Api:
    """As an account there that is bound to ClusterRole edit; its rights take a moment."""
    path = f"/api/v1/namespaces/{namespace}"
    account: Json = {"kind": "ServiceAccount", "name": "editor", "namespace": namespace}
    kube.admin.create(f"{path}/serviceaccounts", {"metadata": {"name": "editor"}})
    kube.admin.create(
        f"/apis/{_RBAC}/v1/namespaces/{namespace}/rolebindings",
        {
            "metadata": {"name": "editor"},
            "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": "edit"},
            "subjects": [account],
        },
    )
    made = kube.admin.create(f"{path}/serviceaccounts/editor/token", {"spec": {}})
    return Api(kube.server, kube.ca_pem, made["status"]["token"])
