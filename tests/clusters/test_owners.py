"""How many pods of each kind of owner start together, as its object says it."""

from typing import Any

import pytest

from clusters.adapters.kubernetes import owners
from clusters.adapters.kubernetes.names import Names
from clusters.caught import OwnerRef, OwnerReport

NAMES = Names(prefix="berth.dev", installation="berth")

type Json = dict[str, Any]  # Any: an object of the API


def template(*, gpus: int = 8, queue: bool = False, claims: bool = False) -> Json:
    limits = {"nvidia.com/gpu": gpus} if gpus else {}
    spec: Json = {"containers": [{"name": "main", "resources": {"limits": limits}}]}
    if claims:
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "one"}]
    return {
        "metadata": {"labels": {"berth.dev/queue": ""} if queue else {}},
        "spec": spec,
    }


def part(count: int, **asked: Any) -> Json:  # Any: as `template`
    return {"replicas": count, "template": template(**asked)}


OBJECTS: dict[str, tuple[str, Json, dict[str, int]]] = {
    "PyTorchJob": (
        "kubeflow.org/v1",
        {"pytorchReplicaSpecs": {"Master": {"template": template()}, "Worker": part(3)}},
        {"master": 1, "worker": 3},
    ),
    "TFJob": (
        "kubeflow.org/v1",
        {
            "tfReplicaSpecs": {
                "PS": part(2, gpus=0, queue=True),
                "Worker": part(4),
                "Evaluator": part(1, gpus=0, claims=True),
            }
        },
        {"ps": 2, "worker": 4, "evaluator": 1},
    ),
    "MPIJob": (  # the launcher has no device, so nobody catches it
        "kubeflow.org/v2beta1",
        {"mpiReplicaSpecs": {"Launcher": part(1, gpus=0), "Worker": part(2)}},
        {"worker": 2},
    ),
    "JobSet": (
        "jobset.x-k8s.io/v1alpha2",
        {
            "replicatedJobs": [
                {
                    "name": "Slices",
                    "replicas": 2,
                    "template": {"spec": {"parallelism": 4, "template": template()}},
                },
                {"name": "coordinator", "template": {"spec": {"template": template(gpus=0)}}},
            ]
        },
        {"slices": 8},
    ),
    "RayCluster": (
        "ray.io/v1",
        {
            "headGroupSpec": {"template": template(gpus=0, queue=True)},
            "workerGroupSpecs": [
                {"groupName": "gpu", "numOfHosts": 2, **part(3)},
                {"groupName": "none-yet", **part(0)},
            ],
        },
        {"headgroup": 1, "gpu": 6},
    ),
    "LeaderWorkerSet": (
        "leaderworkerset.x-k8s.io/v1",
        {"replicas": 5, "leaderWorkerTemplate": {"size": 4, "workerTemplate": template()}},
        {"leader": 1, "worker": 3},
    ),
    "Deployment": ("apps/v1", part(9), {}),
    "Workflow": ("example.test/v1", {"pods": 9}, {}),
}


def above(body: Json) -> OwnerRef:
    metadata = body["metadata"]
    return OwnerRef(body["apiVersion"], body["kind"], metadata["name"], metadata["uid"])


def top(*objects: Json, lost: int | None = None) -> OwnerReport | None:
    """What is found on the way from the first of these objects, each controlled by the next."""
    way = owners.Above(above(objects[0]), names=NAMES)
    for index, (body, owner) in enumerate(zip(objects, [*objects[1:], None], strict=True)):
        if owner is not None:
            keys = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], **owner["metadata"]}
            body["metadata"]["ownerReferences"] = [{**keys, "controller": True}]
        if way.path("ns") is None or not way.climb(None if index == lost else body):
            break
    return way.report


def made(kind: str, version: str, spec: Json) -> Json:
    metadata = {"name": f"a-{kind.lower()}", "uid": f"uid-{kind}"}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


@pytest.mark.parametrize("kind", OBJECTS)
def test_it_tells_how_many_start_together_of_each_part(kind: str) -> None:
    version, spec, sizes = OBJECTS[kind]
    body = made(kind, version, spec)
    expected = tuple((name, size) for name, size in sorted(sizes.items()))
    assert top(body) == OwnerReport(above(body), expected)


def test_the_topmost_is_the_owner_and_the_highest_that_tells_them_has_the_sizes() -> None:
    job = made("Job", "batch/v1", {"parallelism": 4, "template": template()})
    version, spec, _ = OBJECTS["JobSet"]
    job_set, train_job = (
        made("JobSet", version, spec),
        made("TrainJob", "trainer.kubeflow.org/v1alpha1", {}),
    )
    assert top(job, job_set, train_job) == OwnerReport(above(train_job), (("slices", 8),))
    # What is above and can't be found is as if nobody were above.
    assert top(job, job_set, lost=1) == OwnerReport(above(job), (("", 4),))
    assert top(job, lost=0) is None


def test_it_asks_where_the_object_is_and_not_for_ever() -> None:
    chain = [made("Job", "batch/v1", {}) for _ in range(owners.MOST_HOPS + 2)]
    way = owners.Above(above(chain[0]), names=NAMES)
    assert way.path("ns") == "/apis/batch/v1/namespaces/ns/jobs/a-job"
    for body in chain:
        body["metadata"]["ownerReferences"] = [
            {"apiVersion": "batch/v1", "kind": "Job", **body["metadata"], "controller": True}
        ]
        if way.path("ns"):
            assert way.climb(body)
    assert way.path("ns") is None


@pytest.mark.parametrize("version", ["v1?watch=true#", "v1/../v1", "..", "", "V1", "1"])
def test_what_is_no_version_is_part_of_no_path(version: str) -> None:
    owner = OwnerRef(f"batch/{version}", "Job", "train", "u")
    assert owners.Above(owner, names=NAMES).path("ns") is None


@pytest.mark.parametrize(
    ("labels", "part"),
    [
        ({}, ""),
        ({"training.kubeflow.org/replica-type": "worker"}, "worker"),
        ({"jobset.sigs.k8s.io/replicatedjob-name": "Slices"}, "slices"),
        ({"ray.io/group": "gpu"}, "gpu"),
        ({"leaderworkerset.sigs.k8s.io/worker-index": "0"}, "leader"),
        ({"leaderworkerset.sigs.k8s.io/worker-index": "2"}, "worker"),
    ],
)
def test_a_pod_tells_its_part_by_the_label_of_its_framework(
    labels: dict[str, str], part: str
) -> None:
    assert owners.part(labels) == part
