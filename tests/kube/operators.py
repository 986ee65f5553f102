"""Controllers of others' kinds, as small as can be: they make the pods that the real ones make,
with the labels and the owners that those give them, and make anew what was deleted."""

from collections.abc import Iterator

from tests.kube.api import MERGE_PATCH, Api, Json
from tests.waiting import eventually

_LWS = "leaderworkerset.sigs.k8s.io"
_OF_RAY = {"RayJob": "rayClusterSpec", "RayService": "rayClusterConfig"}
"""Where they have the RayCluster that is made for them."""


class Operator:
    """Of one namespace. `turn` is what a real one does whenever something changes."""

    def __init__(self, api: Api, namespace: str) -> None:
        self._api = api
        self._path = f"/api/v1/namespaces/{namespace}/pods"

    def turn(self, owner: Json) -> None:
        """Make what is missing of its pods, or of the Jobs by which the cluster makes them."""
        if owner["kind"] in ("JobSet", "TrainJob"):
            return self._make_jobs(owner)
        if owner["kind"] == "LeaderWorkerSet":
            return self._make_sets(owner)
        if owner["kind"] in _OF_RAY:
            owner = self._make_ray_cluster(owner)
        there = {pod["metadata"]["name"] for pod in self._api.get(self._path)["items"]}
        for pod in _pods(owner):
            if pod["metadata"]["name"] not in there:
                self._api.create(self._path, pod)

    def _make_ray_cluster(self, owner: Json) -> Json:
        """As KubeRay's rayjob_controller.go and rayservice_controller.go: in its stead."""
        space, name = self._path.split("/")[4], owner["metadata"]["name"]
        body = {
            "apiVersion": owner["apiVersion"],
            "kind": "RayCluster",
            "metadata": {"name": f"{name}-x7k2p", "ownerReferences": [_reference(owner)]},
            "spec": owner["spec"][_OF_RAY[owner["kind"]]],
        }
        return self._api.create(f"/apis/ray.io/v1/namespaces/{space}/rayclusters", body)

    def _make_sets(self, owner: Json) -> None:
        """As LeaderWorkerSet's leaderworkerset_controller.go: a StatefulSet of all leaders, whose
        controller is the cluster's own, and of each leader one of its workers. The indices are
        labels that its webhook, pod_webhook.go, gives to the pods."""
        name, spec = owner["metadata"]["name"], owner["spec"]
        asked = spec["leaderWorkerTemplate"]
        set_name, workers = {f"{_LWS}/name": name}, asked["workerTemplate"]
        template = asked.get("leaderTemplate", workers)
        index, group = f"{_LWS}/worker-index", f"{_LWS}/group-index"
        leaders = self._make_set(owner, name, spec["replicas"], template, {**set_name, index: "0"})
        for nth, leader in enumerate(leaders):
            self._label(leader, {group: str(nth)})
            of = {**set_name, group: str(nth)}
            # The leader has no kind of its own in a list of pods.
            above = {"apiVersion": "v1", "kind": "Pod", "metadata": leader["metadata"]}
            count, begins = asked["size"] - 1, {"ordinals": {"start": 1}}
            made = self._make_set(above, leader["metadata"]["name"], count, workers, of, **begins)
            for rank, worker in enumerate(made, start=1):
                self._label(worker, {index: str(rank)})

    def _make_set(
        self, owner: Json, name: str, count: int, template: Json, labels: Json, **spec: Json
    ) -> list[Json]:
        """Its pods, by name, once they are there."""
        given = {**template["metadata"]["labels"], **labels}
        body = {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": {"name": name, "ownerReferences": [_reference(owner)]},
            "spec": {
                "replicas": count,
                "podManagementPolicy": "Parallel",
                "serviceName": name,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": given}, "spec": template["spec"]},
                **spec,
            },
        }
        space = self._path.split("/")[4]
        made = self._api.create(f"/apis/apps/v1/namespaces/{space}/statefulsets", body)

        def pods() -> list[Json]:
            found = [
                pod
                for pod in self._api.get(self._path)["items"]
                for above in pod["metadata"].get("ownerReferences", [])
                if above["uid"] == made["metadata"]["uid"]
            ]
            return found if len(found) == count else []

        found = eventually(f"the pods of {name} are there", pods)
        return sorted(found, key=lambda pod: str(pod["metadata"]["name"]))

    def _label(self, pod: Json, labels: Json) -> None:
        path, body = f"{self._path}/{pod['metadata']['name']}", {"metadata": {"labels": labels}}
        self._api.do("PATCH", path, body, content_type=MERGE_PATCH)

    def _make_jobs(self, owner: Json) -> None:
        """As JobSet's pkg/controllers/jobset_controller.go; for a TrainJob one is made first."""
        space = self._path.split("/")[4]
        if owner["kind"] == "TrainJob":
            body = {
                "apiVersion": "jobset.x-k8s.io/v1alpha2",
                "kind": "JobSet",
                "metadata": {
                    "name": owner["metadata"]["name"],
                    "ownerReferences": [_reference(owner)],
                },
                "spec": _job_set(owner["spec"]),
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


def _job_set(asked: Json) -> Json:
    """As Kubeflow Trainer's pkg/runtime/framework/plugins makes it of a runtime like its
    torch-distributed, whose containers are restricted: one Job of as many nodes as are asked."""
    trainer, [override] = asked["trainer"], asked["podTemplateOverrides"]
    assert (asked["runtimeRef"], override["targetJobs"]) == (
        {"name": "torch-distributed"},
        [{"name": "node"}],
    )
    container = {
        "name": "node",
        "image": trainer["image"],
        "command": trainer["command"],
        "resources": trainer["resourcesPerNode"],
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    pod = {
        "metadata": override["metadata"],
        "spec": {
            "restartPolicy": "Never",
            "securityContext": override["spec"]["securityContext"],
            "containers": [container],
        },
    }
    nodes = trainer["numNodes"]
    job = {"parallelism": nodes, "completions": nodes, "template": pod}
    return {"replicatedJobs": [{"name": "node", "replicas": 1, "template": {"spec": job}}]}


def _pods(owner: Json) -> Iterator[Json]:
    match owner["kind"]:
        case "PyTorchJob" | "TFJob":
            yield from _of_kubeflow(owner)
        case "MPIJob":
            yield from _of_mpi(owner)
        case "RayCluster":
            yield from _of_ray(owner)
        case kind:
            raise NotImplementedError(f"there is no operator of {kind}")


def _of_kubeflow(job: Json) -> Iterator[Json]:
    """As kubeflow/trainer's v1 branch, pkg/controller.v1/common: with no master, nor a chief, the
    first worker has its role."""
    framework = job["kind"].lower().removesuffix("job")
    name, roles = job["metadata"]["name"], job["spec"][f"{framework}ReplicaSpecs"]
    first = {"Master", "Chief"} & roles.keys()
    for role, asked in roles.items():
        for index in range(asked.get("replicas", 1)):
            labels = {
                "training.kubeflow.org/job-name": name,
                "training.kubeflow.org/operator-name": f"{framework}job-controller",
                "training.kubeflow.org/replica-type": role.lower(),
                "training.kubeflow.org/replica-index": str(index),
            }
            if role in first or (not first and index == 0):
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
