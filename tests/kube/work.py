"""What people make in a project's namespace where that is caught, and the policies in force."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from clusters.adapters.kubernetes import catching, manifests
from clusters.adapters.kubernetes.hook import Hook
from tests.kube.api import MERGE_PATCH, Answer, Api, Json
from tests.kube.control_plane import NAMES, ControlPlane
from tests.kube.editors import editor_of
from tests.kube.hooking import serving
from tests.kube.manifests import apply, remove
from tests.waiting import eventually

STRATEGIC_PATCH = "application/strategic-merge-patch+json"
ADMISSION = "admissionregistration.k8s.io/v1"
BERTH = "system:serviceaccount:berth-system:berth"


@contextmanager
def catches(kube: ControlPlane, *, hook: Hook | None = None) -> Iterator[None]:
    """What `cluster_manifest --catch` adds is applied, or what it adds with a --catch-url: that
    too where the cluster is too old for the other."""
    with ExitStack() as stack:
        if hook is None and not kube.serves(ADMISSION, "mutatingadmissionpolicies"):
            hook = stack.enter_context(serving())
        documents = catching.documents(names=NAMES, user=BERTH, hook=hook)
        apply(kube.admin, documents)
        yield
        remove(kube.admin, documents)


class Work:
    """What an editor of a project's namespace makes there, and then tries."""

    def __init__(self, kube: ControlPlane, namespace: str) -> None:
        self.kube = kube
        self.namespace = namespace
        self.path = f"/api/v1/namespaces/{namespace}"
        self.editor = editor_of(kube, namespace)

    def pod(self, name: str, *, gpus: int = 1, **labels: str) -> Json:
        """A pod as the namespace admits it: nothing in it is of Berth."""
        limits = {"nvidia.com/gpu": str(gpus)} if gpus else {}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "labels": {f"berth.dev/{key}": value for key, value in labels.items()},
            },
            "spec": {
                "restartPolicy": "Never",
                "securityContext": {
                    "runAsNonRoot": True,
                    "runAsUser": 1000,
                    "seccompProfile": {"type": "RuntimeDefault"},
                },
                "containers": [
                    {
                        "name": "main",
                        "image": "example.test/train:1",
                        "command": ["sleep", "600"],
                        "resources": {"limits": limits, "requests": {"cpu": "100m"}},
                        "securityContext": {
                            "allowPrivilegeEscalation": False,
                            "capabilities": {"drop": ["ALL"]},
                        },
                    }
                ],
            },
        }

    def create(self, pod: Json, *, by: Api | None = None) -> Answer:
        return (by or self.editor).call("POST", f"{self.path}/pods", pod)

    def patch(
        self, name: str, body: Json, *, subresource: str = "", by: Api | None = None
    ) -> Answer:
        path = f"{self.path}/pods/{name}{subresource}"
        return (by or self.editor).call("PATCH", path, body, content_type=STRATEGIC_PATCH)

    def get(self, name: str) -> Json:
        return self.kube.admin.get(f"{self.path}/pods/{name}")


def work_in(kube: ControlPlane, namespace: str) -> Work:
    """Once the policies are in force there: the API server takes a moment to see them."""
    ours = manifests.namespace(namespace, names=NAMES)
    path = f"/api/v1/namespaces/{namespace}"
    kube.admin.do("PATCH", path, ours, content_type=MERGE_PATCH)
    work = Work(kube, namespace)
    dry = f"{path}/pods?dryRun=All"

    def tried(**labels: str) -> Answer:
        return work.editor.call("POST", dry, work.pod("probe", gpus=1, **labels))

    eventually("an editor may make pods", lambda: tried().status == 201)
    eventually("they are gated", lambda: "schedulingGates" in tried().body.get("spec", ()))
    eventually("one policy refuses", lambda: tried(queue="another").status == 403)
    return work
