"""Pure: what makes pods in a cluster, and how many of which belong together: a table of kinds.

A further framework is one row here, and, where its pods tell by a label of their own which part
they are, that label. Kinds that are not here own pods that start each by itself.

Sources: the Job API; the training operator's and mpi-operator's `ReplicaSpecs`; JobSet; KubeRay's
RayCluster; LeaderWorkerSet. Only parts whose pods are caught count: a launcher without a device
and without the queue label waits for nobody.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple
from urllib.parse import quote

from clusters.adapters.kubernetes.checks import Json, mapping, objects, word
from clusters.adapters.kubernetes.names import DEVICES, Names
from clusters.caught import OwnerRef, OwnerReport

type Sizes = Mapping[str, int]
"""Pods by part, "" where all are alike; {}: they start each by itself."""

MOST_HOPS = 4
"""Owners above each other: a pod's Job, its JobSet, its TrainJob, and one to spare."""
_LEADER = "leaderworkerset.sigs.k8s.io/worker-index"
_PARTS = (
    "jobset.sigs.k8s.io/replicatedjob-name",
    "training.kubeflow.org/replica-type",
    "training.kubeflow.org/job-role",  # of MPIJob; elsewhere a worker may be "master"
    "ray.io/group",
)
_VERSION = re.compile(r"v[0-9][a-z0-9]*")
_GANG = "leaderworkerset.sigs.k8s.io/group-index"


class Kind(NamedTuple):
    """`sizes` reads them from the object; None: what it owns tells them."""

    plural: str
    group: str
    sizes: Callable[[Json, Names], Sizes] | None


def part(labels: Mapping[str, str]) -> str:
    """Which part of its owner a pod is, "" where all are alike."""
    if _LEADER in labels:
        return "leader" if labels[_LEADER] == "0" else "worker"
    return next((labels[key].lower() for key in _PARTS if labels.get(key)), "")


def gang(labels: Mapping[str, str]) -> str:
    """Which of its owner's gangs it is of, "" where that is one."""
    return labels.get(_GANG, "")


def controller(metadata: Json) -> OwnerRef | None:
    """Who controls an object by its own word; None for nobody. Raises Malformed."""
    for reference in objects(metadata, "ownerReferences"):
        if reference.get("controller") is True:
            keys = ("apiVersion", "kind", "name", "uid")
            return OwnerRef(*(word(reference, key) for key in keys))
    return None


class Above:
    """The way up from an owner to who controls it, object by object as they are read."""

    def __init__(self, owner: OwnerRef, *, names: Names) -> None:
        self._names = names
        self._next: OwnerRef | None = owner
        self._hops = 0
        self.report: OwnerReport | None = OwnerReport(owner)
        """What is known by now; None when the owner itself is gone."""

    def path(self, namespace: str) -> str | None:
        """Where the next is read; None at the top, and for what is of no known kind."""
        kind = None if self._next is None else _kind(self._next)
        if self._next is None or kind is None or self._hops == MOST_HOPS:
            return None
        root = f"apis/{self._next.api_version}" if kind.group else "api/v1"
        space, name = quote(namespace, safe=""), quote(self._next.name, safe="")
        return f"/{root}/namespaces/{space}/{kind.plural}/{name}"

    def climb(self, found: Json | None) -> bool:
        """Take in what is there, None for nothing; whether it may go on. An object of that name
        that is another is nothing. Raises Malformed."""
        reference, self._next = self._next, None
        metadata = mapping(found or {}, "metadata")
        if reference is None or found is None or metadata.get("uid") != reference.uid:
            if self._hops == 0:
                self.report = None
            return False
        kind = _kind(reference)
        sizes = self.report.sizes if self.report else ()
        if kind and kind.sizes:
            told = kind.sizes(found, self._names)
            sizes = tuple((part, size) for part, size in sorted(told.items()) if size)
        self.report = OwnerReport(reference, sizes)
        self._next = controller(metadata)
        self._hops += 1
        return True


def _kind(reference: OwnerRef) -> Kind | None:
    """None too for what is no version: it is anybody's word, and becomes part of a path."""
    group, _, version = reference.api_version.rpartition("/")
    return KINDS.get((group, reference.kind)) if _VERSION.fullmatch(version) else None


def _job(body: Json, names: Names) -> Sizes:
    """Of a Job that has more to complete than runs at once, each pod comes and goes alone."""
    spec = mapping(body, "spec")
    if not _is_caught(spec, names):
        return {}
    at_once, completions = _count(spec, "parallelism"), spec.get("completions")
    if completions is None:
        return {"": at_once}
    left = _count(spec, "completions") - _count(mapping(body, "status"), "succeeded", default=0)
    return {"": left} if at_once >= _count(spec, "completions") else {}


def _replica_specs(body: Json, names: Names) -> Sizes:
    """PyTorchJob and its kin: `pytorchReplicaSpecs` and so on, by role."""
    spec = mapping(body, "spec")
    return {
        role.lower(): _count(mapping(roles, role), "replicas")
        for key in spec
        if key.endswith("ReplicaSpecs")
        for roles in [mapping(spec, key)]
        for role in roles
        if _is_caught(mapping(roles, role), names)
    }


def _job_set(body: Json, names: Names) -> Sizes:
    sizes = {}
    for job in objects(mapping(body, "spec"), "replicatedJobs"):
        template = mapping(mapping(job, "template"), "spec")
        if _is_caught(template, names):
            at_once = _count(template, "parallelism")
            each = min(at_once, _count(template, "completions", default=at_once))
            sizes[word(job, "name").lower()] = _count(job, "replicas") * each
    return sizes


def _ray_cluster(body: Json, names: Names) -> Sizes:
    spec = mapping(body, "spec")
    head = mapping(spec, "headGroupSpec")
    sizes = {"headgroup": 1} if _is_caught(head, names) else {}
    for group in objects(spec, "workerGroupSpecs"):
        if _is_caught(group, names):
            count = _count(group, "replicas") * _count(group, "numOfHosts")
            sizes[word(group, "groupName").lower()] = count
    return sizes


def _leader_worker_set(body: Json, names: Names) -> Sizes:
    """Of one of its groups, each of which is a gang."""
    template = mapping(mapping(body, "spec"), "leaderWorkerTemplate")
    workers = {"template": mapping(template, "workerTemplate")}
    leader = (
        {"template": mapping(template, "leaderTemplate")}
        if template.get("leaderTemplate")
        else workers
    )
    sizes = {"leader": 1} if _is_caught(leader, names) else {}
    return sizes | ({"worker": _count(template, "size") - 1} if _is_caught(workers, names) else {})


_KUBEFLOW = "kubeflow.org"
KINDS: Mapping[tuple[str, str], Kind] = {
    (kind.group, name): kind
    for name, kind in {
        "Pod": Kind("pods", "", None),  # a leader, of its workers' StatefulSet
        "Job": Kind("jobs", "batch", _job),
        "StatefulSet": Kind("statefulsets", "apps", None),
        "ReplicaSet": Kind("replicasets", "apps", None),
        "Deployment": Kind("deployments", "apps", None),
        "JobSet": Kind("jobsets", "jobset.x-k8s.io", _job_set),
        "TrainJob": Kind("trainjobs", "trainer.kubeflow.org", None),
        "PyTorchJob": Kind("pytorchjobs", _KUBEFLOW, _replica_specs),
        "TFJob": Kind("tfjobs", _KUBEFLOW, _replica_specs),
        "XGBoostJob": Kind("xgboostjobs", _KUBEFLOW, _replica_specs),
        "JAXJob": Kind("jaxjobs", _KUBEFLOW, _replica_specs),
        "MPIJob": Kind("mpijobs", _KUBEFLOW, _replica_specs),
        "RayCluster": Kind("rayclusters", "ray.io", _ray_cluster),
        "RayJob": Kind("rayjobs", "ray.io", None),
        "RayService": Kind("rayservices", "ray.io", None),
        "LeaderWorkerSet": Kind(
            "leaderworkersets", "leaderworkerset.x-k8s.io", _leader_worker_set
        ),
    }.items()
}


def _is_caught(holder: Json, names: Names) -> bool:
    """Whether pods of its `template` are: the same question as the policy's (`catching`)."""
    template = mapping(holder, "template")
    if names.label_queue in mapping(mapping(template, "metadata"), "labels"):
        return True
    spec = mapping(template, "spec")
    asks = any(resource.startswith(DEVICES) for resource in _asked(spec))
    return asks or bool(objects(spec, "resourceClaims"))


def _asked(spec: Json) -> Iterator[str]:
    for container in (*objects(spec, "containers"), *objects(spec, "initContainers")):
        resources = mapping(container, "resources")
        yield from (*mapping(resources, "limits"), *mapping(resources, "requests"))


def _count(body: Json, key: str, *, default: int = 1) -> int:
    """A number of pods; what makes no sense is `default`: it is the user's own object."""
    value = body.get(key)
    return value if type(value) is int and 0 <= value <= 10_000 else default
