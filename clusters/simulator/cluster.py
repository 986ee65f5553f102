"""The simulated cluster as a whole: store, scheduler, kubelets, and the acts on its machines."""

from collections.abc import Iterable
from datetime import timedelta

import orjson

from clusters.simulator import layouts, moments
from clusters.simulator.answers import Json, bad_request, check_preconditions, not_found
from clusters.simulator.binder import Binder
from clusters.simulator.inspected import Inspected
from clusters.simulator.kubelets import Kubelets, disrupt
from clusters.simulator.mig_manager import TROUBLES, MigManagers
from clusters.simulator.pods import Pods, merged
from clusters.simulator.store import Store

NAMESPACES = ("default", "kube-system", "berth-system", "gpu-operator")
PRIORITY_CLASSES = {
    "berth-low": 900,
    "berth-normal": 1000,
    "berth-high": 1100,
    "berth-urgent": 1200,
}
DEVICE_CLASS = "berth"
"""As if the manifest of the installation "berth" had been applied, `--dra` included."""
_UNREACHABLE = "node.kubernetes.io/unreachable"
_AFTER_RESTART = 1_000_000  # revisions that a lost tail of the state may have used


class Cluster:
    """What exists. Everything happens in one event loop; nothing here waits."""

    def __init__(
        self,
        nodes: Iterable[Json],
        *,
        start_delay_s: float = 0.2,
        speed: float | None = None,
        window: int = 10_000,
        saved: Json | None = None,
    ) -> None:
        revision = int(saved["revision"]) + _AFTER_RESTART if saved else 1000
        self.store = Store(revision=revision, window=window)
        self.binder = Binder(self.store, bound=lambda key: self.kubelets.begin(key))
        self.kubelets = Kubelets(
            self.store, freed=self.binder.release, start_delay_s=start_delay_s, speed=speed
        )
        self.inspected = Inspected(self.store)
        self.pods = Pods(self.store, self.binder, self.kubelets)
        self._saved_pods = self._restore(saved) if saved else []
        self.mig_managers = MigManagers(self.store, self.binder, delay_s=start_delay_s * 5)
        for node in nodes:
            self.store.put("nodes", node["metadata"]["name"], node)
            self.binder.set_node(node)
        for name in NAMESPACES:
            if self.store.find("namespaces", name) is None:
                self.store.put("namespaces", name, namespace(name))
        for name, value in PRIORITY_CLASSES.items():
            if self.store.find("priorityclasses", name) is None:
                self.store.put("priorityclasses", name, _priority_class(name, value))
        if self.store.find("deviceclasses", DEVICE_CLASS) is None:
            self.store.put("deviceclasses", DEVICE_CLASS, _device_class(DEVICE_CLASS))

    def resume(self) -> None:
        """Take up the pods of the saved state; call it inside the event loop."""
        for key in self._saved_pods:
            pod = self.store.find("pods", key)
            if pod is None or pod["status"]["phase"] in ("Succeeded", "Failed"):
                continue
            if "nodeName" in pod["spec"]:
                self.binder.hold(key, pod)
                self.kubelets.resume(key, pod)
            elif not pod["spec"].get("schedulingGates"):
                self.binder.add(key, pod)
        self._saved_pods = []

    def state(self) -> bytes:
        """Everything but the nodes, which the layout makes anew."""
        tables = [
            b'"%s":[%s]' % (name.encode(), b",".join(entry.raw for entry in table.values()))
            for name, table in self.store.tables.items()
            if name != "nodes"
        ]
        return b'{"revision":%d,"objects":{%s}}' % (self.store.revision, b",".join(tables))

    def lose_node(self, name: str) -> None:
        """The kubelet falls silent: NotReady, and its pods stand still."""
        node = self._node(name)
        self._set_ready(node, "Unknown", "NodeStatusUnknown")
        taint = {"key": _UNREACHABLE, "effect": "NoSchedule"}
        node["spec"]["taints"] = [*node["spec"].get("taints", ()), taint]
        self.kubelets.lose(name)
        self._changed(node)

    def return_node(self, name: str) -> None:
        node = self._node(name)
        self._set_ready(node, "True", "KubeletReady")
        taints = [item for item in node["spec"].get("taints", ()) if item["key"] != _UNREACHABLE]
        node["spec"]["taints"] = taints
        self.kubelets.recover(name)
        self._changed(node)

    def cordon_node(self, name: str, *, cordoned: bool) -> None:
        node = self._node(name)
        node["spec"]["unschedulable"] = cordoned
        self._changed(node)

    def add_node(self, name: str, body: Json) -> bytes:
        """A machine joins, and its kubelet reports it ready."""
        node = layouts.bare_node(name)
        node["metadata"] = {**body["metadata"], **node["metadata"]}
        node["spec"] = body.get("spec") or {}
        node["status"].update(body.get("status") or {})
        raw = self.store.put("nodes", name, node)
        self.binder.set_node(node)
        return raw

    def patch_node(self, name: str, body: Json) -> bytes:
        """A merge patch, bound to a uid and a version where it has them."""
        node = self._node(name)
        check_preconditions("nodes", node["metadata"], {"preconditions": body.get("metadata")})
        node.update(merged(node, body))
        self._changed(node)
        self.mig_managers.look(node)
        return self.store.tables["nodes"][name].raw

    def trouble_cut(self, name: str, how: str) -> None:
        """The next cut of the node goes wrong."""
        if how not in TROUBLES:
            bad_request(f"a cut goes wrong as one of {', '.join(TROUBLES)}, not {how!r}")
        self.mig_managers.trouble(self._node(name)["metadata"]["name"], how)

    def delete_node(self, name: str) -> bytes:
        """The machine is gone for good; its pods are failed and collected."""
        self._node(name)
        raw = self.store.remove("nodes", name)
        self.binder.drop_node(name)
        for key, entry in list(self.store.tables["pods"].items()):
            if entry.body["spec"].get("nodeName") == name:
                if entry.body["status"]["phase"] not in ("Succeeded", "Failed"):
                    message = "PodGC: node no longer exists"
                    by = "DeletionByPodGC"
                    self.kubelets.fail(key, reason="NodeLost", message=message, by=by)
                self.pods.remove(key)
        return raw

    def evict_pod(self, key: str) -> None:
        """Its node has too little memory or disk left: the kubelet ends it."""
        self._pod(key)
        message = "The node was low on resource: memory."
        self.kubelets.fail(key, reason="Evicted", message=message, by="TerminationByKubelet")

    def disrupt_pod(self, key: str, *, by: str) -> None:
        """Somebody takes it away, with its grace: `by` is EvictionByEvictionAPI or the like."""
        pod = self._pod(key)
        disrupt(pod, by=by)
        self.store.put("pods", key, pod)
        namespace, _, name = key.partition("/")
        self.pods.delete(namespace, name, {})

    def set_allocatable(self, name: str, resources: Json) -> None:
        """What the kubelet offers changes, as when a device falls ill; capacity stays."""
        node = self._node(name)
        node["status"]["allocatable"].update(
            {resource: str(amount) for resource, amount in resources.items()}
        )
        self._changed(node)

    def skew_clocks(self, seconds: float) -> None:
        self.kubelets.skew = timedelta(seconds=seconds)

    def forget_history(self) -> None:
        for history in self.store.histories.values():
            history.forget(self.store.revision)

    def _restore(self, saved: Json) -> list[str]:
        for resource, bodies in saved["objects"].items():
            for body in bodies:
                metadata = body["metadata"]
                where = f"{metadata['namespace']}/" if "namespace" in metadata else ""
                self.store.restore(resource, where + metadata["name"], body)
        return list(self.store.tables["pods"])

    def _pod(self, key: str) -> Json:
        pod = self.store.find("pods", key)
        if pod is None:
            not_found("pods", key)
        return pod

    def _node(self, name: str) -> Json:
        node = self.store.find("nodes", name)
        if node is None:
            not_found("nodes", name)
        return node

    def _set_ready(self, node: Json, status: str, reason: str) -> None:
        at = moments.rfc3339(moments.now())
        condition = {"type": "Ready", "status": status, "reason": reason, "message": ""}
        node["status"]["conditions"] = [{**condition, "lastTransitionTime": at}]

    def _changed(self, node: Json) -> None:
        self.store.put("nodes", node["metadata"]["name"], node)
        self.binder.set_node(node)


def namespace(name: str, labels: Json | None = None) -> Json:
    return {
        "kind": "Namespace",
        "apiVersion": "v1",
        "metadata": {
            "name": name,
            "uid": name,
            "creationTimestamp": moments.rfc3339(moments.now()),
            "labels": {**(labels or {}), "kubernetes.io/metadata.name": name},
        },
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }


def _priority_class(name: str, value: int) -> Json:
    return {
        "kind": "PriorityClass",
        "apiVersion": "scheduling.k8s.io/v1",
        "metadata": {"name": name, "uid": name},
        "value": value,
        "preemptionPolicy": "Never",
    }


def _device_class(name: str) -> Json:
    return {
        "kind": "DeviceClass",
        "apiVersion": "resource.k8s.io/v1",
        "metadata": {"name": name, "uid": name},
        "spec": {},
    }


def object_of(data: bytes) -> Json:
    """The JSON object of a request's body. Raises Refusal (400)."""
    try:
        body = orjson.loads(data)
    except ValueError:
        body = None
    if not isinstance(body, dict):
        bad_request("the request's body is no JSON object")
    return body
