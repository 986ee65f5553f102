"""ClusterPort for a Kubernetes API server. What is sent is in manifests, what comes back in
translate; here is only which request makes which method true."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from urllib.parse import quote

from clusters.adapters.kubernetes import (
    claim_templates,
    device_claims,
    device_classes,
    exposure,
    inspecting,
    manifests,
    owners,
    recuts,
)
from clusters.adapters.kubernetes.asked import Asked
from clusters.adapters.kubernetes.checks import Json
from clusters.adapters.kubernetes.client import MERGE_PATCH
from clusters.adapters.kubernetes.confining import confine, owns
from clusters.adapters.kubernetes.device_claims import (
    DEVICE_CLAIMS,
    DEVICE_CLASSES,
    RESOURCE_SLICES,
    claims_path,
    template_path,
)
from clusters.adapters.kubernetes.failures import printable
from clusters.adapters.kubernetes.objects import NOT_THAT_ONE, has_labels, labels_of
from clusters.adapters.kubernetes.probe import Probe
from clusters.adapters.kubernetes.resource_slices import resource_slice
from clusters.adapters.kubernetes.reviews import lacking
from clusters.adapters.kubernetes.rights import DRA_RIGHTS
from clusters.adapters.kubernetes.translate import Malformed, node, pod
from clusters.caught import OwnerRef, OwnerReport
from clusters.claiming import ClaimTemplateReport, GivenDevices
from clusters.confinement import Confinement, Drift, Repair
from clusters.exposure import ExposureReport
from clusters.inspection import EventReport, LogTail
from clusters.port import (
    MOST_NODES,
    MOST_PODS,
    ClusterError,
    ClusterVersion,
    Fault,
    Listing,
    MigConfigs,
    NodeReport,
    PodReport,
    PodRequest,
    ProbeStep,
    WatchEvent,
)
from clusters.published import DeviceClaimReport, DeviceClassReport, ResourceSliceReport
from controlplane.kernel.crash import crash

NODES = "/api/v1/nodes"
PODS = "/api/v1/pods"
NAMESPACES = "/api/v1/namespaces"
SIMULATED = "+berth.simulator"


class KubernetesCluster(Asked):
    """One cluster, as `ClusterPort` asks it."""

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
        return self._list(NODES, self._node, most=MOST_NODES)

    def list_resource_slices(self) -> Listing[ResourceSliceReport]:
        found = self._list(RESOURCE_SLICES, resource_slice)
        # What can't be claimed there, or is not heard of, is not placed by a claim.
        try:
            lacks = lacking(self._client, DRA_RIGHTS)
        except Malformed as error:
            raise ClusterError(Fault.MALFORMED, f"A review makes no sense: {error}") from None
        if lacks:
            raise ClusterError(Fault.FORBIDDEN, f"Berth may not {', '.join(lacks)} there.")
        if self._found(f"{DEVICE_CLASSES}/{self._names.own}") is None:
            why = f"There is no device class {self._names.own} for Berth's claims."
            raise ClusterError(Fault.FORBIDDEN, why)
        return found

    def watch_resource_slices(
        self, *, resource_version: str
    ) -> AbstractContextManager[Iterator[WatchEvent[ResourceSliceReport]]]:
        return self._watch(RESOURCE_SLICES, resource_slice, resource_version)

    def list_device_claims(self) -> Listing[DeviceClaimReport]:
        return self._list(DEVICE_CLAIMS, self._device_claim)

    def watch_device_claims(
        self, *, resource_version: str
    ) -> AbstractContextManager[Iterator[WatchEvent[DeviceClaimReport]]]:
        return self._watch(DEVICE_CLAIMS, self._device_claim, resource_version)

    def read_device_classes(self) -> tuple[DeviceClassReport, ...]:
        most = device_classes.MOST_CLASSES
        return self._list(DEVICE_CLASSES, device_classes.device_class, most=most).items

    def list_pods(self) -> Listing[PodReport]:
        return self._list(PODS, self._pod, most=MOST_PODS)

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

    def owns_namespace(self, *, namespace: str) -> bool:
        return owns(self._client, namespace=namespace, names=self._names)

    def ensure_service(self, *, namespace: str, name: str, workload: str, attempt: int) -> None:
        body = manifests.service(
            namespace=namespace, name=name, workload=workload, attempt=attempt, names=self._names
        )
        try:
            self._client.call("POST", _services(namespace), body=body)
        except ClusterError as error:
            if not has_labels(self._namesake(_service(namespace, name), error), labels_of(body)):
                raise

    def delete_service(self, *, namespace: str, name: str, workload: str, attempt: int) -> None:
        labels = manifests.service_labels(workload=workload, attempt=attempt, names=self._names)
        path = _service(namespace, name)
        found = self._found(path)
        if found is not None and has_labels(found, labels):
            self._delete(path, {"uid": found["metadata"].get("uid")})

    def create_pod(self, *, request: PodRequest) -> PodReport:
        body = manifests.pod(request, names=self._names)
        path = _pods(request.namespace)
        try:
            made = self._client.call("POST", path, body=body)
        except ClusterError as error:
            made = self._namesake(_pod(request.namespace, request.name), error)
            if not self._is_same(made, body):
                raise
        report = self._report(made)
        if request.pins:
            self._ensure_claim(device_claims.claim(request, uid=report.uid, names=self._names))
        return report

    def _ensure_claim(self, body: Json) -> None:
        metadata = body["metadata"]
        space, name = metadata["namespace"], metadata["name"]
        try:
            self._client.call("POST", claims_path(space), body=body)
        except ClusterError as error:
            found = self._namesake(claims_path(space, name), error)
            if not has_labels(found, metadata["labels"]):
                raise
            if found["metadata"].get("ownerReferences") != metadata["ownerReferences"]:
                # Its pod is gone, so the cluster takes it away.
                why = f"The claim {name} of an earlier pod is still there."
                raise ClusterError(Fault.SERVER, why) from None
            if not self._is_same(found, body):
                raise

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

    def read_claim_template(
        self, *, namespace: str, name: str, claim: str
    ) -> ClaimTemplateReport | None:
        found = self._found(template_path(namespace, name))
        try:
            return (
                None
                if found is None
                else claim_templates.template(
                    found,
                    claim=claim,
                    read_class=lambda of: self._found(f"{DEVICE_CLASSES}/{quote(of, safe='')}"),
                )
            )
        except Malformed as error:
            why = f"The template {name}, or a class that it names, makes no sense: {error}"
            raise ClusterError(Fault.MALFORMED, why) from None

    def give_devices(self, *, given: GivenDevices) -> str:
        claims = device_claims.instead(given, names=self._names)
        for body in claims.values():
            self._ensure_claim(body)
        body = manifests.given(
            uid=given.uid,
            resource_version=given.resource_version,
            claims={name: each["metadata"]["name"] for name, each in claims.items()},
        )
        crash("D7")
        path = f"{_pod(given.namespace, given.name)}/status"
        try:
            made = self._client.call("PATCH", path, body=body, content_type=MERGE_PATCH)
        except ClusterError as error:
            if error.fault is not Fault.CONFLICT:
                raise
            # Not CONFLICT, which is hopeless: whether it is still that pod, the next try sees.
            why = f"The pod {given.name} was changed by others meanwhile, or replaced."
            raise ClusterError(Fault.SERVER, why) from None
        return self._report(made).resource_version

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
            if error.fault not in NOT_THAT_ONE:
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
    ) -> MigConfigs:
        return recuts.write_config(
            self._client, config=config, cuts=cuts, keep=keep, names=self._names
        )

    def cordon(self, *, node: NodeReport, recut: str) -> None:
        self._patch_node(node, recuts.cordoning(recut=recut, names=self._names))

    def uncordon(self, *, node: NodeReport) -> None:
        self._patch_node(node, recuts.uncordoning(names=self._names))

    def cut(self, *, node: NodeReport, config: str) -> None:
        self._patch_node(node, recuts.cutting(config=config))

    def start_exposure_probe(self, *, hostname: str, tolerates: str, image: str) -> str:
        body = exposure.pod(hostname=hostname, tolerates=tolerates, image=image, names=self._names)
        return self._report(self._client.call("POST", _pods(self._names.home), body=body)).uid

    def read_exposure_probe(self) -> ExposureReport | None:
        found = self._found(_pod(self._names.home, exposure.NAME))
        try:
            return None if found is None else exposure.report(found, names=self._names)
        except Malformed as error:
            raise ClusterError(
                Fault.MALFORMED, f"The pod that looks for devices makes no sense: {error}"
            ) from None

    def end_exposure_probe(self, *, uid: str) -> None:
        self.delete_pod(namespace=self._names.home, name=exposure.NAME, uid=uid, grace_s=0)

    def read_events(self, *, namespace: str, uid: str) -> Sequence[EventReport]:
        return inspecting.read_events(self._client, namespace=namespace, uid=uid)

    def read_log(self, *, namespace: str, name: str, uid: str) -> LogTail:
        return inspecting.read_log(self._client, namespace=namespace, name=name, uid=uid)

    def close(self) -> None:
        self._client.close()

    def _patch_node(self, node: NodeReport, body: Json) -> None:
        """If it is still that node at that version."""
        body.setdefault("metadata", {}).update(uid=node.uid, resourceVersion=node.resource_version)
        self._client.call("PATCH", _node(node.name), body=body, content_type=MERGE_PATCH)

    def _node(self, body: Json) -> NodeReport:
        return node(body, names=self._names)

    def _pod(self, body: Json) -> PodReport:
        return pod(body, names=self._names)

    def _device_claim(self, body: Json) -> DeviceClaimReport:
        return device_claims.device_claim(body, names=self._names)

    def _report(self, body: Json) -> PodReport:
        try:
            return self._pod(body)
        except Malformed as error:
            raise ClusterError(
                Fault.MALFORMED, f"The cluster's pod makes no sense: {error}"
            ) from None


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
