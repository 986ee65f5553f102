"""Others' kinds, of which the API server needs to know the names alone."""

from tests.kube.api import Json


def crd(group: str, version: str, kind: str) -> Json:
    """A namespaced kind whose objects are taken as they come."""
    plural = f"{kind.lower()}s"
    anything: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema: Json = {"type": "object", "properties": {"spec": anything, "status": anything}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
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
