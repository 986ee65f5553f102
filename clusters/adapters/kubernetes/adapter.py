"""ClusterPort for a Kubernetes API server. What is sent is in manifests, what comes back in
translate; here is only which request makes which method true."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from functools import partial
from urllib.parse import quote

from clusters.adapters.kubernetes import manifests, owners, recuts
from clusters.adapters.kubernetes.checks import Json
from clusters.adapters.kubernetes.client import MERGE_PATCH, Client
from clusters.adapters.kubernetes.confining import confine
from clusters.adapters.kubernetes.failures import printable
from clusters.adapters.kubernetes.lists import listing
from clusters.adapters.kubernetes.names import Names
from clusters.adapters.kubernetes.probe import Probe
from clusters.adapters.kubernetes.translate import Malformed, node, pod
from clusters.adapters.kubernetes.watch import watch
from clusters.caught import OwnerRef, OwnerReport
from clusters.confinement import Confinement, Drift, Repair
from clusters.port import (
    MOST_NODES,
    MOST_PODS,
    ClusterError,
    ClusterVersion,
    Fault,
    Listing,
    NodeReport,
    PodReport,
    PodRequest,
    ProbeStep,
    WatchEvent,
)

NODES = "/api/v1/nodes"
PODS = "/api/v1/pods"
NAMESPACES = "/api/v1/namespaces"
SIMULATED = "+berth.simulator"
_NOT_THAT_POD = frozenset({Fault.NOT_FOUND, Fault.CONFLICT})
"""Gone already, or no longer what is meant (409)."""


class KubernetesCluster:
    """One cluster's API under one token. Threads may share it; make it after a fork."""

    def __init__(
        self,
        client: Client,
        *,
        names: Names,
        page: int = 500,
        watch_timeout_s: int = 60,
        watch_read_timeout_s: float = 70.0,
    ) -> None:
        self._client = client
        self._names = names
        self._page = page
        self._watch_timeout_s = watch_timeout_s
        self._watch_read_timeout_s = watch_read_timeout_s
        self._node: Callable[[Json], NodeReport] = partial(node, names=names)
        self._pod: Callable[[Json], PodReport] = partial(pod, names=names)

    def probe(self) -> Iterator[ProbeStep]:
        probe = Probe(self._client, names=self._names, version=self.version, nodes=self.list_nodes)
        return probe.steps()

    def version(self) -> ClusterVersion:
        version = self._client.call("GET", "/version").get("gitVersion")
        if not isinstance(version, str):
            raise ClusterError(Fault.MALFORMED, "The server does not say which version it is.")
        return ClusterVersion(
            version=printable(version, longest=60), simulated=version.endswith(SIMULATED)
        )

    def list_nodes(self) -> Listing[NodeReport]:
        return listing(self._client, NODES, self._node, page=self._page, most=MOST_NODES)

    def list_pods(self) -> Listing[PodReport]:
        return listing(self._client, PODS, self._pod, page=self._page, most=MOST_PODS)

    def watch_nodes(
        self, *, resource_version: str
    ) -> AbstractContextManager[Iterator[WatchEvent[NodeReport]]]:
        return self._watch(NODES, self._node, resource_version)

    def watch_pods(
        self, *, resource_version: str
    ) -> AbstractContextManager[Iterator[WatchEvent[PodReport]]]:
        return self._watch(PODS, self._pod, resource_version)

    def confine(self, *, wanted: Confinement, repair: Repair = Repair.ALL) -> tuple[Drift, ...]:
        return confine(self._client, wanted=wanted, names=self._names, repair=repair)

    def ensure_service(self, *, namespace: str, name: str, workload: str, attempt: int) -> None:
        body = manifests.service(
            namespace=namespace, name=name, workload=workload, attempt=attempt, names=self._names
        )
        try:
            self._client.call("POST", _services(namespace), body=body)
        except ClusterError as error:
            if error.fault is not Fault.CONFLICT:
                raise
            found = self._found(_service(namespace, name))
            if found is None or not _has_labels(found, _labels(body)):
                raise

    def delete_service(self, *, namespace: str, name: str, workload: str, attempt: int) -> None:
        labels = manifests.service_labels(workload=workload, attempt=attempt, names=self._names)
        path = _service(namespace, name)
        found = self._found(path)
        if found is not None and _has_labels(found, labels):
            self._delete(path, {"uid": found["metadata"].get("uid")})

    def create_pod(self, *, request: PodRequest) -> PodReport:
        body = manifests.pod(request, names=self._names)
        path = _pods(request.namespace)
        try:
            return self._report(self._client.call("POST", path, body=body))
        except ClusterError as error:
            if error.fault is not Fault.CONFLICT:
                raise
            found = self._found(_pod(request.namespace, request.name))
            if found is None or not self._is_same(found, body):
                raise
            return self._report(found)

    def read_owner(self, *, namespace: str, owner: OwnerRef) -> OwnerReport | None:
        above = owners.Above(owner, names=self._names)
        while (path := above.path(namespace)) is not None:
            try:
                found = self._found(path)
            except ClusterError as error:
                if error.fault is not Fault.FORBIDDEN:
                    raise
                break
            try:
                if not above.climb(found):
                    break
            except Malformed as error:
                raise ClusterError(
                    Fault.MALFORMED, f"An owner of pods makes no sense: {error}"
                ) from None
        return above.report

    def adopt_pod(self, *, pod: PodReport, workload: str, attempt: int, rank: int) -> PodReport:
        labels = manifests.pod_labels(
            workload=workload, attempt=attempt, rank=rank, names=self._names
        )
        body = manifests.adoption(
            uid=pod.uid, resource_version=pod.resource_version, labels=labels
        )
        path = _pod(pod.namespace, pod.name)
        return self._report(self._client.call("PATCH", path, body=body, content_type=MERGE_PATCH))

    def open_gate(
        self, *, namespace: str, name: str, uid: str, resource_version: str, hostname: str
    ) -> PodReport:
        body = manifests.opening(uid=uid, resource_version=resource_version, hostname=hostname)
        return self._report(
            self._client.call("PATCH", _pod(namespace, name), body=body, content_type=MERGE_PATCH)
        )

    def read_pod(self, *, namespace: str, name: str) -> PodReport | None:
        found = self._found(_pod(namespace, name))
        return None if found is None else self._report(found)

    def give_notice(self, *, namespace: str, name: str, uid: str, until: datetime) -> None:
        body = manifests.notice(uid=uid, until=until, names=self._names)
        path = _pod(namespace, name)
        try:
            self._client.call("PATCH", path, body=body, content_type=MERGE_PATCH)
        except ClusterError as error:
            if error.fault not in _NOT_THAT_POD:
                raise

    def delete_pod(
        self, *, namespace: str, name: str, uid: str, grace_s: int, resource_version: str = ""
    ) -> None:
        preconditions = {"uid": uid}
        if resource_version:
            preconditions["resourceVersion"] = resource_version
        self._delete(_pod(namespace, name), preconditions, gracePeriodSeconds=grace_s)

    def read_node(self, *, name: str) -> NodeReport | None:
        found = self._found(_node(name))
        try:
            return None if found is None else self._node(found)
        except Malformed as error:
            raise ClusterError(
                Fault.MALFORMED, f"The node {name} makes no sense: {error}"
            ) from None

    def write_mig_config(
        self, *, config: str, cuts: Sequence[Mapping[str, int]], keep: Collection[str]
    ) -> frozenset[str]:
        return recuts.write_config(
            self._client, config=config, cuts=cuts, keep=keep, names=self._names
        )

    def cordon(self, *, node: NodeReport, recut: str) -> None:
        self._patch_node(node, recuts.cordoning(recut=recut, names=self._names))

    def uncordon(self, *, node: NodeReport) -> None:
        self._patch_node(node, recuts.uncordoning(names=self._names))

    def cut(self, *, node: NodeReport, config: str) -> None:
        self._patch_node(node, recuts.cutting(config=config))

    def close(self) -> None:
        self._client.close()

    def _patch_node(self, node: NodeReport, body: Json) -> None:
        """If it is still that node at that version."""
        body.setdefault("metadata", {}).update(uid=node.uid, resourceVersion=node.resource_version)
        self._client.call("PATCH", _node(node.name), body=body, content_type=MERGE_PATCH)

    def _watch[Report](
        self, path: str, translate: Callable[[Json], Report], resource_version: str
    ) -> AbstractContextManager[Iterator[WatchEvent[Report]]]:
        return watch(
            self._client,
            path,
            resource_version=resource_version,
            translate=translate,
            timeout_s=self._watch_timeout_s,
            read_timeout_s=self._watch_read_timeout_s,
        )

    def _delete(self, path: str, preconditions: Json, **options: int) -> None:
        body = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": preconditions,
            **options,
        }
        try:
            self._client.call("DELETE", path, body=body)
        except ClusterError as error:
            if error.fault not in _NOT_THAT_POD:
                raise

    def _found(self, path: str) -> Json | None:
        try:
            return self._client.call("GET", path)
        except ClusterError as error:
            if error.fault is Fault.NOT_FOUND:
                return None
            raise

    def _report(self, body: Json) -> PodReport:
        try:
            return self._pod(body)
        except Malformed as error:
            raise ClusterError(
                Fault.MALFORMED, f"The cluster's pod makes no sense: {error}"
            ) from None

    def _is_same(self, found: Json, wanted: manifests.Json) -> bool:
        """Whether a pod is what we would have made: its hash and each of our labels."""
        key = self._names.annotation_hash
        digest = _mapping(wanted, "annotations")[key]
        return _mapping(found, "annotations").get(key) == digest and _has_labels(
            found, _labels(wanted)
        )


def _node(name: str) -> str:
    return f"{NODES}/{quote(name, safe='')}"


def _pods(namespace: str) -> str:
    return f"{NAMESPACES}/{quote(namespace, safe='')}/pods"


def _pod(namespace: str, name: str) -> str:
    return f"{_pods(namespace)}/{quote(name, safe='')}"


def _services(namespace: str) -> str:
    return f"{NAMESPACES}/{quote(namespace, safe='')}/services"


def _service(namespace: str, name: str) -> str:
    return f"{_services(namespace)}/{quote(name, safe='')}"


def _mapping(body: Json, key: str) -> Json:
    metadata = body.get("metadata")
    found = metadata.get(key) if isinstance(metadata, dict) else None
    return found if isinstance(found, dict) else {}


def _labels(body: Json) -> Json:
    return _mapping(body, "labels")


def _has_labels(body: Json, wanted: Json) -> bool:
    labels = _labels(body)
    return all(labels.get(name) == value for name, value in wanted.items())
