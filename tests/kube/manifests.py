"""Apply a manifest file as `kubectl apply --server-side` would, without a YAML parser.

The API server reads YAML itself; all that has to be known here is where each document goes.
"""

import re
from pathlib import Path

from tests.kube.api import APPLY_PATCH, Api

_COLLECTIONS = {
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": "/api/v1/namespaces/{namespace}/serviceaccounts",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
}


def apply(api: Api, manifest: Path) -> None:
    """Apply each document of `manifest`, in order."""
    for document in re.split(r"^---$", manifest.read_text(), flags=re.MULTILINE):
        metadata = document[document.index("\nmetadata:") :]
        namespace = re.search(r"^  namespace: (\S+)$", metadata, re.MULTILINE)
        collection = _COLLECTIONS[_only(r"^kind: (\S+)$", document)].format(
            namespace=namespace.group(1) if namespace else ""
        )
        name = _only(r"^  name: (\S+)$", metadata[: metadata.find("\nroleRef:")])
        path = f"{collection}/{name}?fieldManager=tests&force=true"
        api.do("PATCH", path, document, content_type=APPLY_PATCH)


def _only(pattern: str, text: str) -> str:
    found = re.findall(pattern, text, re.MULTILINE)
    if len(found) != 1:
        raise ValueError(f"{pattern} matched {len(found)} times in {text[:200]!r}")
    return str(found[0])
