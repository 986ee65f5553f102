"""Controllers of others' kinds, as small as can be: they make the pods that the real ones make,
with the labels and the owners that those give them, and make anew what was deleted."""

from collections.abc import Iterator

from tests.kube.api import Api, Json


class Operator:
    """Of one namespace. `turn` is what a real one does whenever something changes."""

    def __init__(self, api: Api, namespace: str) -> None:
        self._api = api
        self._path = f"/api/v1/namespaces/{namespace}/pods"

    def turn(self, owner: Json) -> None:
        """Make what is missing of its pods, or of the Jobs by which the cluster makes them."""
        if owner["kind"] in ("JobSet", "TrainJob"):
            return self._make_jobs(owner)
        there = {pod["metadata"]["name"] for pod in self._api.get(self._path)["items"]}
        for pod in _pods(owner):
            if pod["metadata"]["name"] not in there:
                self._api.create(self._path, pod)

    def _make_jobs(self, owner: Json) -> None:
        """As JobSet's pkg/controllers/jobset_controller.go; a TrainJob has a JobSet first."""
        space = self._path.split("/")[4]
        if owner["kind"] == "TrainJob":
            body = {
                "apiVersion": "jobset.x-k8s.io/v1alpha2",
                "kind": "JobSet",
                "metadata": {
                    "name": owner["metadata"]["name"],
                    "ownerReferences": [_reference(owner)],
                },
                "spec": owner["spec"],
            }
            path = f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/{space}/jobsets"
            owner = self._api.create(path, body)
        name = owner["metadata"]["name"]
        for asked in owner["spec"]["replicatedJobs"]:
            spec = asked["template"]["spec"]
            labels = {
                "jobset.sigs.k8s.io/jobset-name": name,
                "jobset.sigs.k8s.io/replicatedjob-name": asked["name"],
            }
            template = spec["template"]
            metadata = {"labels": {**template["metadata"]["labels"], **labels}}
            for index in range(asked["replicas"]):
                body = {
                    "apiVersion": "batch/v1",
                    "kind": "Job",
                    "metadata": {
                        "name": f"{name}-{asked['name']}-{index}",
                        "labels": labels,
                        "ownerReferences": [_reference(owner)],
                    },
                    "spec": {**spec, "template": {**template, "metadata": metadata}},
                }
                self._api.create(f"/apis/batch/v1/namespaces/{space}/jobs", body)


def _pods(owner: Json) -> Iterator[Json]:
    match owner["kind"]:
        case "PyTorchJob":
            yield from _of_pytorch(owner)
        case "MPIJob":
            yield from _of_mpi(owner)
        case "RayCluster":
            yield from _of_ray(owner)
        case kind:
            raise NotImplementedError(f"there is no operator of {kind}")


def _of_pytorch(job: Json) -> Iterator[Json]:
    """As kubeflow/trainer's v1 branch, pkg/controller.v1/common: with no master the first worker
    has its role."""
    name, roles = job["metadata"]["name"], job["spec"]["pytorchReplicaSpecs"]
    for role, asked in roles.items():
        for index in range(asked.get("replicas", 1)):
            labels = {
                "training.kubeflow.org/job-name": name,
                "training.kubeflow.org/operator-name": "pytorchjob-controller",
                "training.kubeflow.org/replica-type": role.lower(),
                "training.kubeflow.org/replica-index": str(index),
            }
            if role == "Master" or ("Master" not in roles and index == 0):
                labels["training.kubeflow.org/job-role"] = "master"
            yield _pod(job, f"{name}-{role.lower()}-{index}", asked["template"], labels)


def _of_mpi(job: Json) -> Iterator[Json]:
    """As mpi-operator, pkg/controller/mpi_job_controller.go; its launcher comes by a Job."""
    name, roles = job["metadata"]["name"], job["spec"]["mpiReplicaSpecs"]
    for role, asked in roles.items():
        for index in range(asked.get("replicas", 1)):
            labels = {
                "training.kubeflow.org/job-name": name,
                "training.kubeflow.org/operator-name": "mpi-operator",
                "training.kubeflow.org/job-role": role.lower(),
            }
            yield _pod(job, f"{name}-{role.lower()}-{index}", asked["template"], labels)


def _of_ray(cluster: Json) -> Iterator[Json]:
    """As KubeRay, controllers/ray/common/pod.go."""
    name, spec = cluster["metadata"]["name"], cluster["spec"]
    head = {"ray.io/cluster": name, "ray.io/node-type": "head", "ray.io/group": "headgroup"}
    yield _pod(cluster, f"{name}-head", spec["headGroupSpec"]["template"], head)
    for group in spec["workerGroupSpecs"]:
        labels = head | {"ray.io/node-type": "worker", "ray.io/group": group["groupName"]}
        for index in range(group["replicas"]):
            of = f"{name}-{group['groupName']}-worker-{index}"
            yield _pod(cluster, of, group["template"], labels)


def _pod(owner: Json, name: str, template: Json, labels: Json) -> Json:
    metadata = template.get("metadata", {})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **metadata,
            "name": name,
            "labels": {**metadata.get("labels", {}), **labels},
            "ownerReferences": [_reference(owner)],
        },
        "spec": template["spec"],
    }


def _reference(owner: Json) -> Json:
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
