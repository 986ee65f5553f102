"""Others' kinds, of which the API server needs to know the names alone."""

from tests.kube.api import Api, Json
from tests.kube.manifests import apply
from tests.waiting import eventually


def crd(group: str, version: str, kind: str, *, scope: str = "Namespaced") -> Json:
    """A kind whose objects are taken as they come."""
    plural = f"{kind.lower()}s"
    anything: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema: Json = {"type": "object", "properties": {"spec": anything, "status": anything}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


KINDS = (
    ("kubeflow.org", "v1", "PyTorchJob"),
    ("kubeflow.org", "v1", "TFJob"),
    ("kubeflow.org", "v2beta1", "MPIJob"),
    ("jobset.x-k8s.io", "v1alpha2", "JobSet"),
    ("trainer.kubeflow.org", "v1alpha1", "TrainJob"),
    ("ray.io", "v1", "RayCluster"),
    ("ray.io", "v1", "RayJob"),
    ("ray.io", "v1", "RayService"),
    ("leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet"),
)
KARPENTER = ("NodePool", "NodeClaim")


def serve_karpenter(admin: Api) -> None:
    """From now on: what is taken away and wanted again at once is not there for a while."""
    apply(admin, [crd("karpenter.sh", "v1", kind, scope="Cluster") for kind in KARPENTER])
    paths = [f"/apis/karpenter.sh/v1/{kind.lower()}s" for kind in KARPENTER]
    eventually(
        "Karpenter's kinds are served",
        lambda: all(admin.call("GET", path).status == 200 for path in paths),
    )


def serve_requests(admin: Api) -> None:
    """ProvisioningRequests, as above."""
    apply(admin, [crd("autoscaling.x-k8s.io", "v1", "ProvisioningRequest")])
    eventually(
        "requests are served",
        lambda: (
            admin.call("GET", "/apis/autoscaling.x-k8s.io/v1/provisioningrequests").status == 200
        ),
    )
